"""The result of measuring a grid: the cells that the store now holds, and those that failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rbpx.config.keys.runs import GridKeys
from rbpx.errors import MeasureError, NotHereError, RbpxError, UnexpectedError, number_of
from rbpx.store.store import Record, Store, now


@dataclass(frozen=True)
class Failure:
    """A cell that was not measured, and whether the request is at fault, not the machine or the network."""

    cell: str
    error: str
    request_is_wrong: bool


@dataclass(frozen=True)
class Measured:
    """The result of measuring one grid.

    Attributes:
        n_new: cells measured now.
        error: why no cell was tried.
        status: exit status of the error.
    """

    request: GridKeys
    cell_keys: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    n_new: int = 0
    error: str | None = None
    status: int = 0


def not_measured(request: GridKeys, problem: Exception) -> Measured:
    """The result of a grid of which nothing was tried."""
    return Measured(request, error=told(problem, request), status=1 if isinstance(problem, MeasureError) else 2)


def note_failure(store: Store, key: str, names: Record, cell: str, problem: RbpxError, said: str) -> Failure:
    """Write why a cell failed to `failures` of its store, unless read-only, with the traceback if unexpected."""
    traceback = problem.traceback if isinstance(problem, UnexpectedError) else None
    where = "" if traceback is None else "; its traceback is in the store's relation failures"
    try:
        store.write_record(
            "failures", key, {**names, "failure_key": key, "error": said, "traceback": traceback, "at": now()}
        )
    except RbpxError:
        where = ""
    return Failure(cell, f"{said}{where}", not isinstance(problem, MeasureError))


def told(problem: Exception, request: GridKeys) -> str:
    """The error for people; for what is missing offline, with the command that downloads the sweep."""
    if isinstance(problem, NotHereError) and request.download is not None:
        return problem.fetched_by(request.download)
    return str(problem)


def pace(run: Mapping[str, Any]) -> str:
    """Tokens of a run and their throughput, for people."""
    return f"{number_of(run['n_tokens'], 'token')} at {run['tokens_per_s']:,.0f} tokens/s"
