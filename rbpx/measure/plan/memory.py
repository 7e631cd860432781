"""The free memory of this machine, and the dtype or placement with which a model fits into it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from rbpx.models.architecture import BYTES

_MIB = 2**20
_CGROUP = Path("/sys/fs/cgroup")
SPLIT, NO = "split", "no"


@dataclass(frozen=True)
class FreeMemory:
    """Free memory, MiB.

    Attributes:
        device: `cpu` or `cuda`, where a model is measured.
        cpu_mib: main memory available to a new process; None if the system does not report it.
        gpus_mib: of each GPU.
        disk_mib: on the file system of the store.
    """

    device: str
    cpu_mib: float | None
    gpus_mib: tuple[float, ...]
    disk_mib: float


def free_memory(device: str, store: Path) -> FreeMemory:
    """The memory that is free now; a `device` of `auto` means a GPU if there is one."""
    has_gpu = torch.cuda.is_available()
    gpus = tuple(torch.cuda.mem_get_info(i)[0] / _MIB for i in range(torch.cuda.device_count())) if has_gpu else ()
    existing = next(folder for folder in (store, *store.parents) if folder.is_dir())
    on_gpu = has_gpu and device != "cpu"
    return FreeMemory("cuda" if on_gpu else "cpu", _free_cpu_mib(), gpus, shutil.disk_usage(existing).free / _MIB)


def _free_cpu_mib() -> float | None:
    """Available memory as Linux reports it, within the limit of a container's control group."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.is_file():
        return None
    (line,) = [line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:")]
    free_mib = int(line.split()[1]) / 2**10
    limit, used = _CGROUP / "memory.max", _CGROUP / "memory.current"
    if limit.is_file() and used.is_file() and limit.read_text().strip() != "max":
        free_mib = min(free_mib, (int(limit.read_text()) - int(used.read_text())) / _MIB)
    return free_mib


def what_fits(dtype: str, peaks_mib: dict[str, float], weights_mib: float, free: FreeMemory) -> str | None:
    """The smallest change that makes a model fit: the requested dtype, bfloat16, `split`, or `no` if nothing does.

    Args:
        dtype: as requested.
        peaks_mib: peak memory by dtype, the requested one and bfloat16.
        weights_mib: in the requested dtype.
        free: memory of this machine.

    Returns:
        None if the system does not report how much memory is free.
    """
    free_mib = free.gpus_mib[0] if free.device == "cuda" else free.cpu_mib
    if free_mib is None:
        return None
    smaller = ["bfloat16"] if BYTES["bfloat16"] < BYTES[dtype] else []
    for candidate in (dtype, *smaller):
        if peaks_mib[candidate] <= free_mib:
            return candidate
    # Layers that do not fit on the GPUs are kept in main memory and on disk; activations must fit beside them.
    total_mib = sum(free.gpus_mib) + (free.cpu_mib or 0.0) + free.disk_mib
    activations_mib = peaks_mib[dtype] - weights_mib
    return SPLIT if weights_mib <= total_mib and activations_mib <= free_mib else NO
