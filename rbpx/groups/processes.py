"""Makes calls about groups of runs in several processes, by joblib, and returns their results in order.

Laws are fitted by many short steps, which Python takes one at a time. What is computed does not depend on the number of
processes, nor on which of them computed it. A call carries what it is about and where the store is, never a connection:
a process connects when it is first asked and stays connected for as long as it works for the same block
(`several_processes`).

A `joblib.parallel_config` of the user's own decides who computes: loky, or Dask on other machines. Else forks do
(`rbpx.groups.forks`), which begin before the store is opened, or where no fork is safe, and only for many calls, loky.
benchmarks/README.md (processes.py) says what each of them costs, and why joblib's `multiprocessing` is refused.
"""

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from rbpx.cores import n_cores
from rbpx.errors import RbpxError, first_line, number_of
from rbpx.store.messages import LOGGER
from rbpx.store.sql import connected_once
from rbpx.version import __version__

if TYPE_CHECKING:
    import joblib

__all__ = ["are_elsewhere", "in_processes", "n_processes", "several_processes"]

T = TypeVar("T")

_MOST: Final = 8  # processes, where the user named no number; each holds libraries of 100 MiB


@dataclass(eq=False)
class _Workers:
    """Who computes while a block lasts.

    Attributes:
        block: the name of the block, unique.
        parallel: what makes calls in other processes; None where this one makes all of them.
        n: how many these are.
        is_users: whether the user chose it.
        only_many: whether it is slow to start, so that few calls are made here.
    """

    block: str
    parallel: "joblib.Parallel | None" = None
    n: int = 1
    is_users: bool = False
    only_many: bool = False


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What came of a call: its value or the error that it raised, and what it logged."""

    value: Any
    problem: Exception | None
    records: list[logging.LogRecord]


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
        workers = _users_own() or (_own(prepare, stack) if pays else _Workers(""))
        token = _WORKERS.set(workers)
        try:
            yield
        finally:
            _WORKERS.reset(token)
            with _TURN:
                _leave(workers.block)


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
        Exception: that of the first call that raised one.
        RbpxError: the processes that the user chose have failed.
    """
    workers = _WORKERS.get()
    if workers is None or workers.parallel is None or len(calls) < 2 or (workers.only_many and not are_many):
        results = []
        for arguments in calls:
            results.append(function(*arguments))
            advance(1)
        return results
    outcomes: dict[int, _Outcome] = {}
    workers.only_many = False
    try:
        for at, outcome in _shared_out(workers, function, calls):
            outcomes[at] = outcome
            advance(1)
    except BrokenExecutor:
        workers.parallel = None
        left = number_of(len(calls) - len(outcomes), "task")
        logging.getLogger(__name__).warning(
            f"a process was killed while computing, as happens when memory is short; {left} of {len(calls)}, those "
            "that it had begun included, are computed one after another"
        )
        for at in range(len(calls)):
            if at not in outcomes:
                outcomes[at] = _outcome(function, calls[at])
                advance(1)
    for at in range(len(calls)):
        for record in outcomes[at].records:
            logger = logging.getLogger(record.name)
            if logger.isEnabledFor(record.levelno):
                logger.handle(record)
        problem = outcomes[at].problem
        if problem is not None:
            raise problem
    return [outcomes[at].value for at in range(len(calls))]


def n_processes() -> int:
    """How many processes make calls side by side."""
    workers = _WORKERS.get()
    return 1 if workers is None or workers.parallel is None else workers.n


def are_elsewhere() -> bool:
    """Whether calls are made by workers of the user's, perhaps on other machines, where no relative path leads."""
    workers = _WORKERS.get()
    return workers is not None and workers.is_users and workers.parallel is not None


def _shared_out(
    workers: _Workers, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, _Outcome]]:
    """Each call's number and outcome, as they end."""
    from joblib import delayed

    assert workers.parallel is not None, "somebody computes"
    tasks = [delayed(_work)(workers.block, __version__, at, function, of) for at, of in enumerate(calls)]
    try:
        yield from workers.parallel(tasks)
    except (BrokenExecutor, RbpxError):
        raise
    except Exception as problem:
        if not workers.is_users:
            raise
        what = f"{type(problem).__name__}: {first_line(problem)}"
        raise RbpxError(f"the workers that joblib.parallel_config names have failed: {what}") from problem


# ---------------------------------------------------------------------------------------------------- who computes


def _users_own() -> _Workers | None:
    """The workers that a `joblib.parallel_config` around this names; None where it names none."""
    if "joblib" not in sys.modules:
        return None
    import joblib
    from joblib.parallel import MultiprocessingBackend, ParallelBackendBase

    with joblib.parallel_config() as config:
        backend = config["backend"]
    if not isinstance(backend, ParallelBackendBase):
        return None
    if type(backend) is MultiprocessingBackend:
        raise RbpxError(
            "parallel_config(backend='multiprocessing') waits for ever once a process is killed; name 'loky'"
        )
    parallel = joblib.Parallel(batch_size=1, pre_dispatch="all", return_as=_as_they_end(backend))
    try:
        n_jobs = backend.effective_n_jobs(parallel.n_jobs)
    except TimeoutError as problem:
        raise RbpxError(f"joblib.parallel_config: {first_line(problem)}") from problem
    if n_jobs > 1 and getattr(backend, "uses_threads", False):
        raise RbpxError("parallel_config: laws are fitted in processes, not in threads; name 'loky', or 'dask'")
    return _Workers(uuid4().hex, parallel if n_jobs > 1 else None, n_jobs, is_users=True)


def _own(prepare: Callable[[], object], stack: ExitStack) -> _Workers:
    """Forks, or where these are not safe, loky; nobody but this process where it has one core."""
    n = _n_own()
    if n < 2:
        return _Workers("")
    import joblib

    block, is_forked = uuid4().hex, _may_fork()
    backend: Any = "loky"
    if is_forked:
        from rbpx.groups.forks import Forks

        backend = stack.enter_context(Forks(n, lambda: _work(block, __version__, 0, prepare, ())))
    parallel = joblib.Parallel(n, backend, "generator_unordered", batch_size=1, pre_dispatch="all")
    return _Workers(block, parallel, n, only_many=not is_forked)


def _as_they_end(backend: Any) -> str:
    return "generator_unordered" if backend.supports_return_generator else "list"


def _n_own() -> int:
    """One a core; or as many as a `parallel_config` of the user's says that names no backend."""
    if "joblib" in sys.modules:
        import joblib

        with joblib.parallel_config() as config:
            n_jobs = config["n_jobs"]
        if isinstance(n_jobs, int):
            return n_jobs if n_jobs > 0 else max(1, n_cores() + 1 + n_jobs)
    return min(_MOST, n_cores())


def _may_fork() -> bool:
    """Whether a fork has all that it needs: of other threads it would have the locks, and not what holds them.

    All threads of the system count, those of libraries too, but for that of Arrow's allocator, which forks safely.
    """
    from multiprocessing import current_process

    if sys.platform != "linux" or current_process().daemon:  # those may have no forks
        return False
    threads = [path.read_text(encoding="utf-8").strip() for path in Path("/proc/self/task").glob("*/comm")]
    return len(threads) - threads.count("jemalloc_bg_thd") == 1


# --------------------------------------------------------------------------------------- in a process that computes


@dataclass(frozen=True, eq=False)
class _At:
    """The block that this process computes for, and what is open for it."""

    block: str
    context: Context
    stack: ExitStack


_TURN = threading.Lock()  # a worker of Dask may have several threads
_at: _At | None = None


def _work(
    block: str, version: str, at: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[int, _Outcome]:
    """Make a call for a block of another process, connected once for all calls of the block."""
    if version != __version__:
        return at, _Outcome(None, RbpxError(f"a worker has rbpx {__version__}, and this process {version}"), [])
    with _TURN:
        outcome = _arrive(block).context.run(_outcome, function, arguments)
    if outcome.problem is not None:  # its traceback does not travel with it
        outcome.problem.add_note("".join(traceback.format_exception(outcome.problem)))
    return at, outcome


def _arrive(block: str) -> _At:
    global _at
    if _at is None or _at.block != block:
        _leave()
        from multiprocessing.util import Finalize

        _at = _At(block, copy_context(), ExitStack())
        _at.context.run(_WORKERS.set, _Workers(block))  # what it calls is computed here
        _at.context.run(_at.stack.enter_context, connected_once())
        Finalize(None, _leave, exitpriority=1)
    return _at


def _leave(block: str | None = None) -> None:
    """Close what is open for a block, or for any."""
    global _at
    if _at is not None and block in (None, _at.block):
        _at.context.run(_at.stack.close)
        _at = None


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Outcome:
    """Make a call, and hold back what it logs until it is its turn."""
    logger, records = logging.getLogger(LOGGER), list[logging.LogRecord]()
    handlers, propagates, level = logger.handlers, logger.propagate, logger.level
    logger.handlers, logger.propagate = [_Collector(records)], False
    logger.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        return _Outcome(function(*arguments), None, records)
    except Exception as problem:
        return _Outcome(None, problem, records)
    finally:
        logger.handlers, logger.propagate = handlers, propagates
        logger.setLevel(level)


class _Collector(logging.Handler):
    """Keeps records in a form that another process can read."""

    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        record.msg, record.args, record.exc_info = record.getMessage(), None, None
        self._records.append(record)
