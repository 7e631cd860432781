"""Memory limits per device, processes that share a model, and the engine that measures in place of rbpx."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from rbpx.config.keys.key import name_of, text_or_list
from rbpx.errors import RbpxError
from rbpx.spelling import typed

_KNOWN: Final = ("vllm",)
UNFIT: Final = {
    "llama.cpp": "its server tells log-probabilities of what it generates, not of a prompt",
    "sglang": "its server tells the log-probabilities of a prompt, but no ranks",
}
"""Engines that people ask for and that cannot measure, with the reason."""


@dataclass
class EngineConfig:
    """A running server that tells the log-probability and the rank of each token it is sent (conf/engine/*.yaml).

    Attributes:
        url: of its OpenAI-compatible interface.
        model: the name under which it serves the model; None: the model's own id or folder.
        version: that it must have; None takes the one that it says.
        timeout_s: for one answer.
    """

    name: str = "vllm"
    url: str = "http://127.0.0.1:8000/v1"
    model: Any = text_or_list()
    version: Any = text_or_list()
    timeout_s: float = 600.0

    def __post_init__(self) -> None:
        if self.name not in _KNOWN:
            raise RbpxError(f"engine.name={self.name} is unknown; known: {', '.join(_KNOWN)}")
        for key in ("model", "version"):
            name_of(f"engine.{key}", getattr(self, key))
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RbpxError(f"engine.url={self.url} is no address of a server; give one as http://host:8000/v1")
        if "@" in parts.netloc:  # the request is kept with its runs
            raise RbpxError("engine.url holds a name or a password; give a server's key in VLLM_API_KEY instead")

    @property
    def root(self) -> str:
        """The address of the server, without the /v1 of its interface."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"


MemoryLimits = Mapping[int | str, int]  # GPU by its number, or "cpu" -> bytes
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True)
class Split:
    """The placement of a model on all GPUs, then in the CPU's memory, then on disk (device=split).

    Attributes:
        folder: for parts on disk that are not in the model's own files; it must outlive the model.
        limits: 0 on devices not named; None uses the free memory.
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
        self.n_processes()

    def n_processes(self) -> int | None:
        """The number of processes that hold one model together, None for all; raises RbpxError."""
        if self.tensor == "all":
            return None
        if isinstance(self.tensor, bool) or not isinstance(self.tensor, int) or self.tensor < 1:
            raise RbpxError(f"parallel.tensor={self.tensor} is not a number of processes; give one from 1, or all")
        return self.tensor


def read_limits(key: str, memory: Any) -> MemoryLimits | None:
    """The memory limit of each device in bytes, from GPU number or `cpu` -> 20GiB, 500MB or bytes."""
    if memory is None:
        return None
    amounts = memory if isinstance(memory, dict) else {}
    limits: dict[int | str, int] = {}
    for device, amount in amounts.items():
        match = re.fullmatch(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})?", str(amount))
        if match is not None and (device == "cpu" or isinstance(device, int)):
            limits[device] = math.floor(float(match[1]) * _UNITS.get(match[2], 1))
    if not limits or len(limits) < len(amounts):
        raise RbpxError(
            f"memory={memory} does not say how much of each GPU, by its number, or of the cpu is for weights (the rest "
            f"goes to disk); write bytes or {', '.join(_UNITS)}, as in {typed(memory={0: '20GiB', 'cpu': '60GiB'})}"
        )
    return limits
