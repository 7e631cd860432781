"""The placement of a model larger than one device: memory limits in bytes per device, processes that share it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbpx.errors import RbpxError

MemoryLimits = Mapping[int | str, int]  # GPU by its number, or "cpu" -> bytes
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_HOW = "write memory='{0: 20GiB, cpu: 60GiB}'"


@dataclass(frozen=True)
class Split:
    """A model's parts go to all GPUs, then to the CPU's memory, then to disk; see device=split.

    Attributes:
        folder: for the parts on disk that cannot be read from the model's own files; it must outlive the model.
        limits: bytes of weights on each GPU and the CPU, none on devices not named; None uses the free memory.
    """

    folder: Path
    limits: MemoryLimits | None = None


@dataclass
class ParallelConfig:
    """How the processes of a launch divide the work (conf/parallel/*.yaml).

    Attributes:
        tensor: processes that hold one model together; 1 gives each a model of its own, `all` makes one group.
    """

    tensor: Any = 1

    def __post_init__(self) -> None:
        """Refuse what is no number of processes.

        Raises:
            RbpxError: `tensor` is neither a whole number from 1 nor `all`.
        """
        self.n_processes()

    def n_processes(self) -> int | None:
        """Processes that hold one model together; None for all of the launch."""
        if self.tensor == "all":
            return None
        if isinstance(self.tensor, bool) or not isinstance(self.tensor, int) or self.tensor < 1:
            raise RbpxError(f"parallel.tensor={self.tensor} is not a number of processes; give one from 1, or all")
        return self.tensor


def read_limits(memory: Any) -> MemoryLimits:
    """The memory limit, in bytes, of each device that a user named.

    Args:
        memory: GPU number or `cpu` -> an amount, such as 20GiB, 500MB or a number of bytes.

    Raises:
        RbpxError: it is not such a mapping.
    """
    if not isinstance(memory, dict) or not memory:
        raise RbpxError(f"memory={memory} names no devices; {_HOW}")
    return {_device(device): _n_bytes(device, amount) for device, amount in memory.items()}


def _device(name: Any) -> int | str:
    if name == "cpu" or (isinstance(name, int) and not isinstance(name, bool) and name >= 0):
        device: int | str = name
        return device
    raise RbpxError(f"memory: {name} is not a device; name GPUs by number, or cpu; the rest goes to disk: {_HOW}")


def _n_bytes(device: Any, amount: Any) -> int:
    match = re.fullmatch(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})?", str(amount))
    if match is None or isinstance(amount, bool):
        raise RbpxError(
            f"memory: {device}: {amount} is not an amount; give a number with {', '.join(_UNITS)}, or of bytes"
        )
    return math.floor(float(match[1]) * _UNITS.get(match[2], 1))
