"""Finds the free memory of this machine, and the dtype or placement with which a model fits into it."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from rbpx.cores import control_groups

_MIB = 2**20
SPLIT, NO = "split", "no"


@dataclass(frozen=True)
class FreeMemory:
    """Free memory, of disk where the store is; `cpu_mib` is None if the system does not say."""

    device: str
    cpu_mib: float | None
    gpus_mib: tuple[float, ...]
    disk_mib: float


def free_memory(device: str, store: Path) -> FreeMemory:
    """The memory that is free now; `device=auto` means a GPU if there is one."""
    has_gpu = torch.cuda.is_available()
    gpus = tuple(torch.cuda.mem_get_info(i)[0] / _MIB for i in range(torch.cuda.device_count())) if has_gpu else ()
    existing = next(folder for folder in (store, *store.parents) if folder.is_dir())
    on_gpu = has_gpu and device != "cpu"
    return FreeMemory("cuda" if on_gpu else "cpu", _free_cpu_mib(), gpus, shutil.disk_usage(existing).free / _MIB)


def _free_cpu_mib() -> float | None:
    """As Linux says, within the limits of Slurm and of this process's control groups."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.is_file():
        return None
    (line,) = [line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable:")]
    in_groups = [free for group in control_groups("memory") if (free := _free_in_group_mib(group)) is not None]
    return min([int(line.split()[1]) / 2**10, *in_groups, *_of_slurm_mib()])


def _free_in_group_mib(group: Path) -> float | None:
    """Of a control group of version 2 or 1, whose page cache counts as free."""
    for limit, used, files in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most, taken = ((group / name).read_text().strip() for name in (limit, used))
            facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        except OSError:
            continue
        return None if most == "max" else (int(most) - int(taken) + int(facts.get(files, 0))) / _MIB
    return None


def _of_slurm_mib() -> list[float]:
    """Limits that may be enforced only once the job exceeds them."""
    named = ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE")
    of_node, of_core, n_cores = (int(v) if (v := os.environ.get(name, "")).isdecimal() else 0 for name in named)
    given = of_node or of_core * n_cores
    return [float(given)] if given else []


def what_fits(needed_mib: Mapping[str, float], weights_mib: float, free: FreeMemory) -> str | None:
    """The smallest change that makes a model fit: a dtype, `split`, or `no` if nothing does; None where it is unknown.

    `needed_mib` is by dtype, the requested one first.
    """
    free_mib = free.gpus_mib[0] if free.device == "cuda" else free.cpu_mib
    if free_mib is None:
        return None
    # Split layers beyond the GPUs lie in main memory and on disk; a batch must fit on top.
    in_all_mib = sum(free.gpus_mib) + (free.cpu_mib or 0.0) + free.disk_mib
    batch_mib = next(iter(needed_mib.values())) - weights_mib
    split = SPLIT if weights_mib <= in_all_mib and batch_mib <= free_mib else NO
    return next((dtype for dtype, mib in needed_mib.items() if mib <= free_mib), split)
