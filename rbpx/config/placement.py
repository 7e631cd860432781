"""Where the parts of a model lie that is larger than one device: limits as a user types them in, bytes a device out."""

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
        folder: for the parts on disk that its own files cannot stand for; it must outlive the model.
        limits: bytes of weights that each GPU and the CPU may hold, what is not named nothing; None: what is free.
    """

    folder: Path
    limits: MemoryLimits | None = None


def read_limits(memory: Any) -> MemoryLimits:
    """Bytes of each device that a user named.

    Args:
        memory: GPU number or `cpu` -> an amount, as 20GiB, 500MB or a number of bytes.

    Raises:
        RbpxError: it is no such mapping.
    """
    if not isinstance(memory, dict) or not memory:
        raise RbpxError(f"memory={memory} names no devices; {_HOW}")
    return {_device(device): _n_bytes(device, amount) for device, amount in memory.items()}


def _device(name: Any) -> int | str:
    if name == "cpu" or (isinstance(name, int) and not isinstance(name, bool) and name >= 0):
        device: int | str = name
        return device
    raise RbpxError(f"memory: {name} is no device; name GPUs by number, or cpu, what is left goes to disk: {_HOW}")


def _n_bytes(device: Any, amount: Any) -> int:
    found = re.fullmatch(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})?", str(amount))
    if found is None or isinstance(amount, bool):
        raise RbpxError(f"memory: {device}: {amount} is no amount; give a number with {', '.join(_UNITS)}, or of bytes")
    return math.floor(float(found[1]) * _UNITS.get(found[2], 1))
