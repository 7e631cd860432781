"""How much memory this machine has free, and what makes a model fit into it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from rbpx.models.costs import BYTES

_MIB = 2**20
_CGROUP = Path("/sys/fs/cgroup")
SPLIT, NO = "split", "no"


@dataclass(frozen=True)
class Room:
    """Free memory, MiB.

    Attributes:
        device: `cpu` or `cuda`, where a model is measured.
        cpu_mib: main memory that a new process can have; None where the system does not tell.
        gpus_mib: of each GPU.
        disk_mib: where the store lies.
    """

    device: str
    cpu_mib: float | None
    gpus_mib: tuple[float, ...]
    disk_mib: float


def look_around(device: str, store: Path) -> Room:
    """The room that there is now; `device` as asked, `auto` takes a GPU if there is one."""
    has_gpu = torch.cuda.is_available()
    gpus = tuple(torch.cuda.mem_get_info(i)[0] / _MIB for i in range(torch.cuda.device_count())) if has_gpu else ()
    place = next(folder for folder in (store, *store.parents) if folder.is_dir())
    on_gpu = has_gpu and device != "cpu"
    return Room("cuda" if on_gpu else "cpu", _free_cpu_mib(), gpus, shutil.disk_usage(place).free / _MIB)


def _free_cpu_mib() -> float | None:
    """What Linux says is available, and no more than the control group of a container leaves."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.is_file():
        return None
    (line,) = [line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:")]
    free_mib = int(line.split()[1]) / 2**10
    limit, used = _CGROUP / "memory.max", _CGROUP / "memory.current"
    if limit.is_file() and used.is_file() and limit.read_text().strip() != "max":
        free_mib = min(free_mib, (int(limit.read_text()) - int(used.read_text())) / _MIB)
    return free_mib


def what_fits(dtype: str, peaks_mib: dict[str, float], weights_mib: float, room: Room) -> str | None:
    """The least change that makes a model fit: its dtype as asked, bfloat16, `split`, or `no`.

    Args:
        dtype: as asked.
        peaks_mib: memory at the peak by dtype, the asked one and bfloat16.
        weights_mib: in the asked dtype.
        room: what there is.

    Returns:
        None where the system does not tell how much memory is free.
    """
    free_mib = room.gpus_mib[0] if room.device == "cuda" else room.cpu_mib
    if free_mib is None:
        return None
    halves = ["bfloat16"] if BYTES["bfloat16"] < BYTES[dtype] else []
    for candidate in (dtype, *halves):
        if peaks_mib[candidate] <= free_mib:
            return candidate
    # Layers that do not fit on the GPUs wait in main memory and on disk; what a layer needs must fit beside them.
    everywhere = sum(room.gpus_mib) + (room.cpu_mib or 0.0) + room.disk_mib
    working = peaks_mib[dtype] - weights_mib
    return SPLIT if weights_mib <= everywhere and working <= free_mib else NO
