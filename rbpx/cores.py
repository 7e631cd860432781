"""The cores that this process may use, how its threads share them with whatever else runs, and its rank in a launch."""

import os
from typing import Final

__all__ = ["n_cores", "share_cores"]


def is_main_process() -> bool:
    """Whether this process is alone or has rank 0: the one that prints."""
    return int(os.environ.get("RANK", "0")) == 0


_SLURM: Final = "SLURM_CPUS_PER_TASK"

# Rounds that a thread of libgomp waits for the others before it sleeps. The library's default, three hundred thousand,
# keeps a core from the very thread that is waited for as soon as anything else runs: benchmarks/README.md (threads.py).
_SPINS: Final = 1000


def n_cores() -> int:
    """The cores that this process may use: all, unless `taskset` or a batch system gives it some."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get(_SLURM, "")
    return min(allowed, int(asked)) if asked.isdecimal() and int(asked) else allowed


def share_cores() -> None:
    """Set what OpenMP reads when torch is loaded, where the user has not: its threads, and how long one of them spins.

    Slurm's `--cpus-per-task` is the number of threads where OMP_NUM_THREADS is not set; a task that Slurm does not
    confine to its cores would take all those of the node.
    """
    if _SLURM in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", str(n_cores()))
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(_SPINS))
