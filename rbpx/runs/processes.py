"""Makes calls about groups of runs one after another, or where a `joblib.parallel_config` of the user says.

A call carries its arguments and the path of the store, never a connection. Results and their order do not depend on who
makes the calls.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import nullcontext
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any, TypeVar

from rbpx.errors import MeasureError, RbpxError
from rbpx.spelling import speaking_shell, speaks_shell
from rbpx.store.messages import attached
from rbpx.store.sql import connected_once
from rbpx.version import __version__

T = TypeVar("T")


def n_workers() -> int:
    """How many workers the user's `joblib.parallel_config` names; 1 where none names a backend.

    Raises:
        RbpxError: its backend is threads, which share a core's lock, or one that waits for ever for a killed process.
    """
    if "joblib" not in sys.modules:
        return 1
    import joblib
    from joblib.parallel import MultiprocessingBackend, ParallelBackendBase

    with joblib.parallel_config() as config:
        backend, n_jobs = config["backend"], config["n_jobs"]
    if not isinstance(backend, ParallelBackendBase):
        return 1
    n = joblib.effective_n_jobs(n_jobs if isinstance(n_jobs, int) else None)
    if n > 1 and (getattr(backend, "uses_threads", False) or type(backend) is MultiprocessingBackend):
        raise RbpxError(
            "joblib.parallel_config: laws are fitted in processes, not in threads, and those of 'multiprocessing' "
            "wait for ever once one is killed; name 'loky', or 'dask'"
        )
    return int(n)


def in_order(
    function: Callable[..., T], calls: Sequence[tuple[Any, ...]], advance: Callable[[float], object] = lambda n: None
) -> list[T]:
    """The results of a function at module level for each set of arguments; `advance` is called with 1 as each ends.

    Raises:
        MeasureError: a worker was killed.
    """
    n, results = n_workers() if len(calls) > 1 else 1, list[T]()
    if n == 1:
        for arguments in calls:
            results.append(function(*arguments))
            advance(1)
        return results
    from joblib import Parallel, delayed

    shell = speaks_shell()
    try:
        for value, records in Parallel(n, return_as="generator", batch_size=1, pre_dispatch="all")(
            delayed(_there)(__version__, shell, function, arguments) for arguments in calls
        ):
            for record in records:
                logging.getLogger(record.name).handle(record)
            results.append(value)
            advance(1)
    except BrokenExecutor:
        raise MeasureError(
            "a worker of joblib was killed, as happens when memory is short; ask again with fewer: "
            "joblib.parallel_config(backend, n_jobs=1)"
        ) from None
    return results


def _there(
    version: str, shell: bool, function: Callable[..., T], arguments: tuple[Any, ...]
) -> tuple[T, list[logging.LogRecord]]:
    """With the advice of the interface that asked; returns what the call logged too."""
    if version != __version__:
        raise RbpxError(f"a worker has rbpx {__version__}, and this process {version}")
    logged: SimpleQueue[logging.LogRecord] = SimpleQueue()
    with attached(QueueHandler(logged)), connected_once(), speaking_shell() if shell else nullcontext():
        value = function(*arguments)
    return value, [logged.get() for _ in range(logged.qsize())]
