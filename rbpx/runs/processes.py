"""Makes calls about groups of runs in several processes and returns their results in order.

Laws are fitted by many short Python steps. Results do not depend on the number of processes. A call carries its
arguments and the path of the store, never a connection: a fork connects once, a worker of joblib for each call.

A `joblib.parallel_config` of the user decides who computes: loky, or Dask on other machines. Otherwise forks do, which
start before the store is opened; where forking is unsafe, loky does, and only for many calls. benchmarks/README.md
(processes.py) has the cost of each, and why joblib's `multiprocessing` is refused.
"""

import ctypes
import logging
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from logging.handlers import QueueHandler
from multiprocessing import active_children, current_process, get_context
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from rbpx.cores import n_cores
from rbpx.errors import RbpxError, number_of
from rbpx.spelling import speaking_shell, speaks_shell
from rbpx.store.messages import LOGGER, attached
from rbpx.store.sql import connected_once
from rbpx.version import __version__

__all__ = ["are_elsewhere", "in_processes", "n_processes", "several_processes"]

T = TypeVar("T")

_MOST: Final = 8  # processes by default; each holds libraries of 100 MiB


_END_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG of Linux
_TURN: Final = threading.Lock()  # a worker of Dask may have several threads
_KEPT: Final = ExitStack()  # the connection of a fork

Outcome = tuple[Any, Exception | None, list[logging.LogRecord]]
"""What came of a call: its value or the error that it raised, and what it logged."""
Run = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterator[tuple[int, Outcome]]]


@dataclass(eq=False)
class _Workers:
    """The processes available while a block lasts.

    Attributes:
        run: makes calls in other processes, and yields the number and outcome of each as it ends; None where this
            process makes all calls.
        n: number of processes.
        is_users: whether the user chose them.
        only_many: whether they are slow to start, so that few calls are made in this process.
    """

    run: Run | None = None
    n: int = 1
    is_users: bool = False
    only_many: bool = False


_WORKERS: ContextVar[_Workers | None] = ContextVar("workers", default=None)


@contextmanager
def several_processes(prepare: Callable[[], object], pays: bool = True) -> Iterator[None]:
    """Let `in_processes` use several processes within the block; a nested block does nothing.

    Args:
        prepare: what a fork does first; if it fails, its calls raise the same error.
        pays: whether there is enough work for processes that the user did not ask for.

    Raises:
        RbpxError: the user chose a backend of joblib that cannot be used.
    """
    if _WORKERS.get() is not None:
        yield
        return
    with ExitStack() as stack:
        token = _WORKERS.set(_workers(prepare, pays, stack))
        try:
            yield
        finally:
            _WORKERS.reset(token)


def in_processes(
    function: Callable[..., T],
    calls: Sequence[tuple[Any, ...]],
    advance: Callable[[float], object] = lambda n: None,
    are_many: bool = False,
) -> list[T]:
    """The results of a function for each set of arguments, in their order.

    Args:
        function: at module level, so that another process can import it.
        calls: its arguments.
        advance: called with the number of calls that have just ended.
        are_many: whether the calls take long enough to pay for starting slow processes.

    Raises:
        Exception: that of the first call that raised one, or of the user's processes.
    """
    workers, outcomes = _WORKERS.get(), dict[int, Outcome]()
    if workers is not None and workers.run is not None and len(calls) > 1 and (are_many or not workers.only_many):
        workers.only_many = False
        try:
            for at, outcome in workers.run(function, calls):
                outcomes[at] = outcome
                advance(1)
        except BrokenExecutor:
            workers.run = None
            left = number_of(len(calls) - len(outcomes), "task")
            logging.getLogger(__name__).warning(
                f"a process was killed while computing, as happens when memory is short; {left} of {len(calls)}, those "
                "that it had begun included, are computed one after another"
            )
    results = []
    for at, arguments in enumerate(calls):
        if at not in outcomes:
            results.append(function(*arguments))
            advance(1)
            continue
        value, problem, records = outcomes[at]
        for record in records:
            logger = logging.getLogger(record.name)
            if logger.isEnabledFor(record.levelno):
                logger.handle(record)
        if problem is not None:
            raise problem
        results.append(value)
    return results


def n_processes() -> int:
    """The number of processes that make calls in parallel."""
    workers = _WORKERS.get()
    return 1 if workers is None or workers.run is None else workers.n


def are_elsewhere() -> bool:
    """Whether workers of the user make the calls, perhaps on machines where relative paths differ."""
    workers = _WORKERS.get()
    return workers is not None and workers.is_users and workers.run is not None


# ---------------------------------------------------------------------------------------------------- who computes


def _workers(prepare: Callable[[], object], pays: bool, stack: ExitStack) -> _Workers:
    """Choose the workers: the user's joblib backend, else forks, else loky where forking is unsafe.

    Their number is that of the cores, or the one of a `parallel_config` without a backend.
    """
    n, named = min(_MOST, n_cores()), False
    if "joblib" in sys.modules:
        import joblib
        from joblib.parallel import MultiprocessingBackend, ParallelBackendBase

        with joblib.parallel_config() as config:
            backend, n_jobs = config["backend"], config["n_jobs"]
        named = isinstance(backend, ParallelBackendBase)
        if named or isinstance(n_jobs, int):
            n = joblib.effective_n_jobs(n_jobs if isinstance(n_jobs, int) else None)
        waits = getattr(backend, "uses_threads", False) or type(backend) is MultiprocessingBackend
        if named and n > 1 and waits:
            raise RbpxError(
                "joblib.parallel_config: laws are fitted in processes, not in threads, and those of 'multiprocessing' "
                "wait for ever once one is killed; name 'loky', or 'dask'"
            )
    if n < 2 or not (named or pays):
        return _Workers()
    if named:
        return _Workers(partial(_by_joblib, n, None), n, is_users=True)
    if _may_fork():
        return _Workers(stack.enter_context(_forks(n, prepare)), n)
    return _Workers(partial(_by_joblib, n, "loky"), n, only_many=True)


def _by_joblib(
    n: int, backend: str | None, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Outcome]]:
    """The number and outcome of each call as it ends, by a joblib backend, or the user's where it is None."""
    from joblib import Parallel, delayed

    parallel = Parallel(n, backend, "generator_unordered", batch_size=1, pre_dispatch="all")
    shell = speaks_shell()
    yield from parallel(delayed(_in_worker)(__version__, shell, at, function, of) for at, of in enumerate(calls))


@contextmanager
def _forks(n: int, prepare: Callable[[], object]) -> Iterator[Run]:
    """Fork this process n times now, before any thread starts."""
    others = set(active_children())
    with (
        TemporaryDirectory(prefix=f"rbpx-tasks-{os.getpid()}-") as folder,
        ProcessPoolExecutor(n, get_context("fork"), _begin, (prepare,)) as pool,
    ):
        with warnings.catch_warnings():
            # The one other thread is Arrow's allocator, which forks safely.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            pool.submit(os.getpid)  # the first task starts all processes
        forks = set(active_children()) - others
        try:
            yield partial(_by_forks, pool, Path(folder))
        except BaseException:
            for fork in forks:
                fork.kill()
            raise


def _by_forks(
    pool: ProcessPoolExecutor, folder: Path, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Outcome]]:
    """The number and outcome of each call as it ends.

    Calls and outcomes are files, and pipes carry only their paths: a process killed within a message of megabytes would
    leave the others waiting.
    """
    tasks = {}
    for at, arguments in enumerate(calls):
        file = folder / str(at)
        file.write_bytes(pickle.dumps((function, arguments), pickle.HIGHEST_PROTOCOL))
        tasks[pool.submit(_in_fork, file)] = at, file
    for task in as_completed(tasks):
        task.result()
        at, file = tasks[task]
        yield at, pickle.loads(file.read_bytes())


def _may_fork() -> bool:
    """Whether forking is safe: a fork would inherit the locks of other threads without the threads.

    Counts all threads of the system, except that of Arrow's allocator, which forks safely.
    """
    if sys.platform != "linux" or current_process().daemon:  # daemons may not fork
        return False
    threads = [path.read_text(encoding="utf-8").strip() for path in Path("/proc/self/task").glob("*/comm")]
    return len(threads) - threads.count("jemalloc_bg_thd") == 1


# --------------------------------------------------------------------------------------- in a process that computes


def _in_worker(
    version: str, shell: bool, at: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[int, Outcome]:
    """Make a call in a worker of joblib, with the error advice of the calling interface."""
    if version != __version__:
        return at, (None, RbpxError(f"a worker has rbpx {__version__}, and this process {version}"), [])
    token = _WORKERS.set(_Workers())  # nested calls run in this process
    try:
        with _TURN, connected_once(), speaking_shell() if shell else nullcontext():
            return at, _outcome(function, arguments)
    finally:
        _WORKERS.reset(token)


def _begin(prepare: Callable[[], object]) -> None:
    """Prepare a fork; it stays connected until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends the others
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    logging.getLogger(LOGGER).handlers.clear()  # the parent shows the log messages of a call
    _WORKERS.set(_Workers())
    _KEPT.enter_context(connected_once())
    _outcome(prepare, ())


def _in_fork(file: Path) -> None:
    function, arguments = pickle.loads(file.read_bytes())
    file.write_bytes(pickle.dumps(_outcome(function, arguments), pickle.HIGHEST_PROTOCOL))


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    """Make a call and keep its log messages with its result."""
    logged: SimpleQueue[logging.LogRecord] = SimpleQueue()
    value = problem = None
    with attached(QueueHandler(logged)):
        try:
            value = function(*arguments)
        except Exception as raised:
            raised.add_note("".join(traceback.format_exception(raised)))  # pickling loses the traceback
            problem = raised
    return value, problem, [logged.get() for _ in range(logged.qsize())]
