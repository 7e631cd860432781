"""The cores and memory that this process may use, the threads of OpenMP and of joblib's workers, and its rank."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["control_groups", "machine_mib", "n_cores", "share_among_jobs", "share_cores"]


def is_main_process() -> bool:
    """Whether this process prints: it is alone or has rank 0."""
    return int(os.environ.get("RANK", "0")) == 0


def is_lone_of_accelerate() -> bool:
    """Whether `accelerate launch --num_processes N` started this process alone and without a rank, as without a GPU."""
    return {"ACCELERATE_USE_CPU", "MASTER_PORT"} <= os.environ.keys() and "WORLD_SIZE" not in os.environ


_SLURM: Final = "SLURM_CPUS_PER_TASK"
_THREADS: Final = "OMP_NUM_THREADS"
_PROC, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_set_here: set[str] = set()  # variables set by rbpx, not by the user

# Rounds that a thread of libgomp waits actively before it sleeps. The library's default, 300,000, keeps a core from
# the thread that is waited for as soon as anything else runs: benchmarks/README.md (threads.py).
_SPINS: Final = 1000


def n_cores() -> int:
    """The number of cores that affinity, control groups and Slurm allow."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([allowed, *_given()])


def _given() -> list[int]:
    """The limits that Slurm and control groups set; part of a core counts as one."""
    asked = os.environ.get(_SLURM, "")
    given = [int(asked)] if asked.isdecimal() and int(asked) else []
    for group in control_groups("cpu"):
        quota_us, period_us = _first_numbers(group, "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
        if quota_us > 0 and period_us > 0:
            given.append(math.ceil(quota_us / period_us))
    return given


def _first_numbers(group: Path, together: str, *apart: str) -> tuple[int, int]:
    """Reads two numbers of a control group, from version 2's one file or version 1's two; 0 for `max`."""
    try:
        words = (group / together).read_text().split()
    except OSError:
        try:
            words = [(group / name).read_text().strip() for name in apart]
        except OSError:
            return 0, 0
    first, *rest = (int(word) if word.lstrip("-").isdecimal() else 0 for word in words)
    return first, rest[0] if rest else 0


def control_groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control groups and their parents, of versions 2 and 1.

    In a container the paths may be those of its host; folders that do not exist are skipped.
    """
    try:
        lines = _PROC.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, inner = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = _GROUPS / controllers
        within = root / inner.lstrip("/")
        yield from (folder for folder in (within, *within.parents) if folder.is_relative_to(root) and folder.is_dir())


def machine_mib() -> int:
    """The memory in MiB of this machine, or of the control group (container) that limits this process."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for group in control_groups("memory"):
        limit, _ = _first_numbers(group, "memory.max", "memory.limit_in_bytes", "memory.limit_in_bytes")
        limits += [limit] if limit > 0 else []
    return min(limits) // 2**20


def share_cores() -> None:
    """Sets the number of OpenMP's threads and how long they spin, unless the user has; torch reads both when loaded.

    OpenMP itself counts the cores of the node, or those of `taskset`, not those of Slurm or a control group.
    """
    if _given() and _THREADS not in os.environ:
        os.environ[_THREADS] = str(n_cores())
        _set_here.add(_THREADS)
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(_SPINS))


def share_among_jobs() -> None:
    """Lets joblib divide the cores among its workers, which it does if OMP_NUM_THREADS is not set."""
    if _THREADS in _set_here:
        del os.environ[_THREADS]
        _set_here.remove(_THREADS)
    os.environ.setdefault("LOKY_MAX_CPU_COUNT", str(n_cores()))
