"""The placement of a model larger than one device: memory limits in bytes per device, processes that share it.

The configuration of another engine that measures in place of rbpx, as a file of conf/engine or overrides give it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from rbpx.config.keys.key import name_of
from rbpx.errors import RbpxError

_KNOWN: Final = ("vllm",)
UNFIT: Final = {
    **dict.fromkeys(
        ("llama.cpp", "llamacpp", "llama-server"),
        "its server tells log-probabilities of what it generates, not of a prompt",
    ),
    "sglang": "its server tells the log-probabilities of a prompt, but no ranks",
}
"""Engines that people ask for and that cannot measure, with the reason."""
_LONGEST_S: Final = 1_000_000  # sockets take no time without end


@dataclass
class EngineConfig:
    """A running server that tells the log-probability and the rank of each token it is sent (conf/engine/*.yaml).

    Attributes:
        name: vllm.
        url: of its OpenAI-compatible interface, as http://host:8000/v1.
        model: the name under which it serves the model; None: the model's own id or folder.
        version: that it must have; None takes the one that it says. Part of what is asked where it is given.
        timeout_s: seconds for an answer.
    """

    name: str = "vllm"
    url: str = "http://127.0.0.1:8000/v1"
    model: Any = None
    version: Any = None
    timeout_s: float = 600.0

    def __post_init__(self) -> None:
        """Refuse what is no engine.

        Raises:
            RbpxError: an unknown engine, a URL that names no server or holds a password, a number in place of a name.
        """
        if self.name in UNFIT:
            raise RbpxError(f"engine.name={self.name} cannot measure: {UNFIT[self.name]}; known: {', '.join(_KNOWN)}")
        if self.name not in _KNOWN:
            raise RbpxError(f"engine.name={self.name} is unknown; known: {', '.join(_KNOWN)}")
        for key in ("model", "version"):
            name_of(f"engine.{key}", getattr(self, key))
        if not 0 < self.timeout_s <= _LONGEST_S:
            raise RbpxError(
                f"engine.timeout_s={self.timeout_s} is not a positive number of seconds up to {_LONGEST_S:,}; give one"
            )
        parts = self._parts()
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RbpxError(f"engine.url={self.url} is no address of a server; give one as http://host:8000/v1")
        if parts.username is not None or parts.password is not None:  # the request is kept with its runs
            raise RbpxError("engine.url holds a name or a password; give a server's key in VLLM_API_KEY instead")

    @property
    def root(self) -> str:
        """The address of the server, without the /v1 of its interface."""
        parts = self._parts()
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"

    def _parts(self) -> SplitResult:
        try:
            parts = urlsplit(self.url)
            _ = parts.port  # read when asked for
        except ValueError as problem:
            raise RbpxError(
                f"engine.url={self.url} is no address ({problem}); give one as http://host:8000/v1"
            ) from None
        return parts


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
