"""Groups of runs in several processes: calls in, their results in order out, on as many cores as the machine has.

Laws are fitted by many short steps, which Python takes one at a time; so this process forks itself before it opens the
store, and each fork opens it for itself. A fork shares what was imported and starts in milliseconds. What is computed
does not depend on the number of processes, nor on which of them computed it.
"""

import logging
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rbpx.cores import n_cores
from rbpx.store.messages import LOGGER

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

__all__ = ["in_processes", "several_processes"]

T = TypeVar("T")

_MOST: Final = 8  # processes; each holds libraries of 100 MiB
_CALL_BYTES: Final = 4  # of the number of a call in a pipe
_AT_ONCE: Final = 4096  # calls: their numbers fit into any pipe, which would block otherwise


@dataclass(frozen=True, eq=False)
class _Fork:
    process: "BaseProcess"
    connection: "Connection"


@dataclass(frozen=True, eq=False)
class _Processes:
    """This process and its forks.

    Attributes:
        waiting: of each process a pipe with the numbers of the calls that it should take; this one is the first.
        forks: the others; one that ended is no longer among them.
    """

    waiting: list[tuple[int, int]]
    forks: list[_Fork]


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What came of a call: its value or the error that it raised, and what it logged."""

    value: Any
    problem: Exception | None
    records: list[logging.LogRecord]


_PROCESSES: ContextVar[_Processes | None] = ContextVar("processes", default=None)


@contextmanager
def several_processes(prepare: Callable[[ExitStack], object]) -> Iterator[None]:
    """While the block lasts, `in_processes` uses every core; within another such block this one does nothing.

    Without effect where a fork would not be safe: in a process with threads, such as a notebook's, or one that has
    computed with torch; and outside Linux.

    Args:
        prepare: what a fork does first, with a stack for what it opens; where that fails it ends, and this process
            meets the same error by itself.
    """
    n_forks = min(_MOST, n_cores()) - 1
    if _PROCESSES.get() is not None or n_forks < 1 or not _may_fork():
        yield
        return
    waiting = [os.pipe() for _ in range(n_forks + 1)]
    for read, _ in waiting:
        os.set_blocking(read, False)
    forks: list[_Fork] = []
    token = _PROCESSES.set(_Processes(waiting, forks))
    try:
        for place in range(1, n_forks + 1):
            forks.append(_fork(place, waiting, forks, prepare))
        yield
    except BaseException:
        for fork in forks:
            fork.process.kill()
        raise
    finally:
        _PROCESSES.reset(token)
        for fork in forks:
            fork.connection.close()
            fork.process.join()
        for pipe in waiting:
            for end in pipe:
                os.close(end)


def in_processes(
    function: Callable[..., T], calls: Sequence[tuple[Any, ...]], advance: Callable[[float], object] = lambda n: None
) -> list[T]:
    """The results of a function for each of some arguments, in their order.

    Args:
        function: of a module, so that it can be named to another process.
        calls: its arguments.
        advance: called with the number of calls that have just ended.

    Raises:
        Exception: that of the first call that raised one.
    """
    processes = _PROCESSES.get()
    if processes is None or not processes.forks or len(calls) < 2:
        results = []
        for arguments in calls:
            results.append(function(*arguments))
            advance(1)
        return results
    outcomes: list[_Outcome] = []
    for begin in range(0, len(calls), _AT_ONCE):
        outcomes += _shared_out(processes, function, calls[begin : begin + _AT_ONCE], advance)
    for outcome in outcomes:
        for record in outcome.records:
            logging.getLogger(record.name).handle(record)
        if outcome.problem is not None:
            raise outcome.problem
    return [outcome.value for outcome in outcomes]


def _shared_out(
    processes: _Processes,
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    advance: Callable[[float], object],
) -> list[_Outcome]:
    """The outcome of each call; those of a fork that was killed are computed here."""
    from multiprocessing.connection import wait

    n_places = len(processes.waiting)
    for place, (_, write) in enumerate(processes.waiting):
        numbers = range(place * len(calls) // n_places, (place + 1) * len(calls) // n_places)
        os.write(write, b"".join(at.to_bytes(_CALL_BYTES) for at in numbers))
    for fork in list(processes.forks):
        with _ended(processes, fork):
            fork.connection.send((function, calls))
    outcomes: dict[int, _Outcome] = {}
    computing = list(processes.forks)

    def receive(timeout_s: float | None) -> None:
        for connection in wait([fork.connection for fork in computing], timeout_s):
            fork = next(fork for fork in computing if fork.connection is connection)
            with _ended(processes, fork, computing):
                of_fork = fork.connection.recv()
                if of_fork is None:
                    advance(1)
                else:
                    outcomes.update(of_fork)
                    computing.remove(fork)

    for at in _taken(processes.waiting, 0):
        outcomes[at] = _outcome(function, calls[at])
        advance(1)
        receive(0)
    while computing:
        receive(None)
    return [outcomes[at] if at in outcomes else _outcome(function, calls[at]) for at in range(len(calls))]


@contextmanager
def _ended(processes: _Processes, *of: Any) -> Iterator[None]:
    """Go on without a fork that has ended."""
    fork, *lists = of
    try:
        yield
    except (EOFError, OSError):
        for forks in (processes.forks, *lists):
            forks.remove(fork)
        fork.connection.close()
        fork.process.join()


def _taken(waiting: Sequence[tuple[int, int]], place: int) -> Iterator[int]:
    """Numbers of calls that no other process takes: those of this place, then what is left of the others'."""
    for read, _ in (*waiting[place:], *waiting[:place]):
        with suppress(BlockingIOError):  # it is empty
            while True:
                yield int.from_bytes(os.read(read, _CALL_BYTES))


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Outcome:
    """Make a call, and hold back what it logs until it is its turn."""
    logger, records = logging.getLogger(LOGGER), list[logging.LogRecord]()
    handlers, logger.handlers = logger.handlers, [_Collector(records)]
    propagates, logger.propagate = logger.propagate, False
    try:
        return _Outcome(function(*arguments), None, records)
    except Exception as problem:
        return _Outcome(None, problem, records)
    finally:
        logger.handlers, logger.propagate = handlers, propagates


class _Collector(logging.Handler):
    """Keeps records in a form that another process can read."""

    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        record.msg, record.args, record.exc_info = record.getMessage(), None, None
        self._records.append(record)


# ------------------------------------------------------------------------------------------------------------ forks


def _may_fork() -> bool:
    """Whether a fork has all that it needs: of other threads it would have the locks, and not what holds them."""
    from multiprocessing import current_process

    is_alone = threading.active_count() == 1 and "torch" not in sys.modules
    return sys.platform == "linux" and is_alone and not current_process().daemon  # those may have no forks


def _fork(
    place: int, waiting: Sequence[tuple[int, int]], others: Sequence[_Fork], prepare: Callable[[ExitStack], object]
) -> _Fork:
    import multiprocessing

    context = multiprocessing.get_context("fork")
    connection, own = context.Pipe()
    ends = [connection, *(fork.connection for fork in others)]
    process = context.Process(target=_serve, args=(own, place, waiting, ends, prepare), daemon=True)
    with warnings.catch_warnings():
        # The one other thread is of the allocator of Arrow, which forks safely.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        process.start()
    own.close()
    return _Fork(process, connection)


def _serve(
    connection: "Connection",
    place: int,
    waiting: Sequence[tuple[int, int]],
    ends: "Sequence[Connection]",
    prepare: Callable[[ExitStack], object],
) -> None:
    """Take calls until the process that forked this one closes the connection, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    logger = logging.getLogger(LOGGER)
    logger.handlers, logger.propagate = [logging.NullHandler()], False  # the store's damage is told by the first one
    for end in ends:
        end.close()
    _PROCESSES.set(None)
    with ExitStack() as stack, suppress(EOFError, BrokenPipeError):
        try:
            prepare(stack)
        except Exception:  # whatever it is, the process that forked this one meets it too, and says so
            return
        while True:
            function, calls = connection.recv()
            outcomes = {}
            for at in _taken(waiting, place):
                outcomes[at] = _outcome(function, calls[at])
                problem = outcomes[at].problem
                if problem is not None:  # its traceback does not travel with it
                    problem.add_note("".join(traceback.format_exception(problem)))
                connection.send(None)
            connection.send(outcomes)
