"""The cores that this process may use, how its threads and jobs share them with whatever else runs, and its rank."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["control_groups", "machine_mib", "n_cores", "share_among_jobs", "share_cores"]


def is_main_process() -> bool:
    """Whether this process is alone or has rank 0: the one that prints."""
    return int(os.environ.get("RANK", "0")) == 0


def is_lone_of_accelerate() -> bool:
    """Whether `accelerate launch --num_processes N` started this process alone, as it does where it sees no GPU.

    It then sets the address at which N processes would meet, but neither their number nor a rank.
    """
    return {"ACCELERATE_USE_CPU", "MASTER_PORT"} <= os.environ.keys() and "WORLD_SIZE" not in os.environ


_SLURM: Final = "SLURM_CPUS_PER_TASK"
_THREADS: Final = "OMP_NUM_THREADS"
_PROC, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_set_here: set[str] = set()  # variables that the user has not set

# Rounds that a thread of libgomp waits for the others before it sleeps. The library's default, three hundred thousand,
# keeps a core from the very thread that is waited for as soon as anything else runs: benchmarks/README.md (threads.py).
_SPINS: Final = 1000


def n_cores() -> int:
    """The cores that this process may use: all, unless `taskset`, a control group or Slurm gives it some."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([allowed, *_given()])


def _given() -> list[int]:
    """The cores that Slurm and the control groups of this process give it; part of a core counts as one."""
    asked = os.environ.get(_SLURM, "")
    given = [int(asked)] if asked.isdecimal() and int(asked) else []
    for group in control_groups("cpu"):
        quota_us, period_us = _first_numbers(group, "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
        if quota_us > 0 and period_us > 0:
            given.append(math.ceil(quota_us / period_us))
    return given


def _first_numbers(group: Path, together: str, *apart: str) -> tuple[int, int]:
    """Two numbers of a control group: of the one file of version 2, else of the two of version 1; 0 for `max`."""
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
    """The folders of the control groups of this process and of those around them, of versions 2 and 1 of Linux's.

    In a container the paths may be those of its host; only folders that are there are given.
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
    """The memory of this machine, MiB, or of the control group (container) that this process is confined to."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for group in control_groups("memory"):
        limit, _ = _first_numbers(group, "memory.max", "memory.limit_in_bytes", "memory.limit_in_bytes")
        limits += [limit] if limit > 0 else []
    return min(limits) // 2**20


def share_cores() -> None:
    """Set what OpenMP reads when torch is loaded, where the user has not: its threads, and how long one of them spins.

    OpenMP itself counts the cores of the node, or those of `taskset`: the threads of a process to which Slurm or a
    control group gives fewer would take turns on these, or take those of another job.
    """
    if _given() and _THREADS not in os.environ:
        os.environ[_THREADS] = str(n_cores())
        _set_here.add(_THREADS)
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(_SPINS))


def share_among_jobs() -> None:
    """Let joblib divide the cores of this process among its workers, which it does where nothing says their threads."""
    if _THREADS in _set_here:
        del os.environ[_THREADS]
        _set_here.remove(_THREADS)
    os.environ.setdefault("LOKY_MAX_CPU_COUNT", str(n_cores()))
