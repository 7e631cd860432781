"""Makes calls about groups of runs in several processes, and returns their results in order.

Laws are fitted by many short steps, which Python takes one at a time. What is computed does not depend on the number of
processes, nor on which of them computed it. A call carries what it is about and where the store is, never a connection:
a fork connects once, a worker of joblib for each call.

A `joblib.parallel_config` of the user's own decides who computes: loky, or Dask on other machines. Else forks do, which
begin before the store is opened, or where no fork is safe, and only for many calls, loky. benchmarks/README.md
(processes.py) says what each of them costs, and why joblib's `multiprocessing` is refused.
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

_MOST: Final = 8  # processes, where the user named no number; each holds libraries of 100 MiB


_END_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG of Linux
_TURN: Final = threading.Lock()  # a worker of Dask may have several threads
_KEPT: Final = ExitStack()  # the connection of a fork

Outcome = tuple[Any, Exception | None, list[logging.LogRecord]]
"""What came of a call: its value or the error that it raised, and what it logged."""
Run = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterator[tuple[int, Outcome]]]


@dataclass(eq=False)
class _Workers:
    """Who computes while a block lasts.

    Attributes:
        run: makes calls in other processes, and yields the number and outcome of each as it ends; None where this
            process makes all of them.
        n: how many processes there are.
        is_users: whether the user chose them.
        only_many: whether they are slow to start, so that few calls are made here.
    """

    run: Run | None = None
    n: int = 1
    is_users: bool = False
    only_many: bool = False


_WORKERS: ContextVar[_Workers | None] = ContextVar("workers", default=None)


@contextmanager
def several_processes(prepare: Callable[[], object], pays: bool = True) -> Iterator[None]:
    """While the block lasts, `in_processes` uses several processes; within another such block this one does nothing.

    Args:
        prepare: what a fork does first; where that fails, its calls meet the same error.
        pays: whether there is so much to do that processes pay which the user did not ask for.

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
    """The results of a function for each of some arguments, in their order.

    Args:
        function: of a module, so that it can be named to another process.
        calls: its arguments.
        advance: called with the number of calls that have just ended.
        are_many: whether they take so long that it pays to start processes for seconds.

    Raises:
        Exception: that of the first call that raised one, or of the processes that the user chose.
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
    """How many processes make calls side by side."""
    workers = _WORKERS.get()
    return 1 if workers is None or workers.run is None else workers.n


def are_elsewhere() -> bool:
    """Whether calls are made by workers of the user's, perhaps on other machines, where no relative path leads."""
    workers = _WORKERS.get()
    return workers is not None and workers.is_users and workers.run is not None


# ---------------------------------------------------------------------------------------------------- who computes


def _workers(prepare: Callable[[], object], pays: bool, stack: ExitStack) -> _Workers:
    """Who computes: a backend of joblib that the user named; else forks, or where these are not safe, loky.

    Of these there is one a core, or as many as a `parallel_config` of the user's says that names no backend.
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
    """The number and outcome of each call as it ends, made by a backend of joblib or, where it is None, the user's."""
    from joblib import Parallel, delayed

    parallel = Parallel(n, backend, "generator_unordered", batch_size=1, pre_dispatch="all")
    shell = speaks_shell()
    yield from parallel(delayed(_in_worker)(__version__, shell, at, function, of) for at, of in enumerate(calls))


@contextmanager
def _forks(n: int, prepare: Callable[[], object]) -> Iterator[Run]:
    """Forks of this process, as it is now: all begin at once, before a thread is started."""
    others = set(active_children())
    with (
        TemporaryDirectory(prefix=f"rbpx-tasks-{os.getpid()}-") as folder,
        ProcessPoolExecutor(n, get_context("fork"), _begin, (prepare,)) as pool,
    ):
        with warnings.catch_warnings():
            # The one other thread is of the allocator of Arrow, which forks safely.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            pool.submit(os.getpid)  # the first task makes all of them
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

    A call and its outcome lie in a file, and pipes carry no more than its path: a process that is killed amid a message
    of megabytes would leave the others to wait for the rest of it.
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
    """Whether a fork has all that it needs: of other threads it would have the locks, and not what holds them.

    All threads of the system count, those of libraries too, but for that of Arrow's allocator, which forks safely.
    """
    if sys.platform != "linux" or current_process().daemon:  # those may have no forks
        return False
    threads = [path.read_text(encoding="utf-8").strip() for path in Path("/proc/self/task").glob("*/comm")]
    return len(threads) - threads.count("jemalloc_bg_thd") == 1


# --------------------------------------------------------------------------------------- in a process that computes


def _in_worker(
    version: str, shell: bool, at: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[int, Outcome]:
    """Make a call in a worker of joblib, which advises in the words of the process that asked."""
    if version != __version__:
        return at, (None, RbpxError(f"a worker has rbpx {__version__}, and this process {version}"), [])
    token = _WORKERS.set(_Workers())  # what it calls is computed here
    try:
        with _TURN, connected_once(), speaking_shell() if shell else nullcontext():
            return at, _outcome(function, arguments)
    finally:
        _WORKERS.reset(token)


def _begin(prepare: Callable[[], object]) -> None:
    """What a fork does first; it stays connected until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    logging.getLogger(LOGGER).handlers.clear()  # what a call logs is shown by the first process
    _WORKERS.set(_Workers())
    _KEPT.enter_context(connected_once())
    _outcome(prepare, ())


def _in_fork(file: Path) -> None:
    function, arguments = pickle.loads(file.read_bytes())
    file.write_bytes(pickle.dumps(_outcome(function, arguments), pickle.HIGHEST_PROTOCOL))


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    """Make a call, and hold back what it logs until it is its turn."""
    logged: SimpleQueue[logging.LogRecord] = SimpleQueue()
    value = problem = None
    with attached(QueueHandler(logged)):
        try:
            value = function(*arguments)
        except Exception as raised:
            raised.add_note("".join(traceback.format_exception(raised)))  # its traceback does not travel with it
            problem = raised
    return value, problem, [logged.get() for _ in range(logged.qsize())]
