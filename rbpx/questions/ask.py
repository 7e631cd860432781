"""Asks the store questions and keeps what is fitted, in the same way for every question."""

import logging
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, ParamSpec, TypeVar

import duckdb

from rbpx.config.request import Request
from rbpx.display.progress import counted
from rbpx.errors import MeasureError, RbpxError
from rbpx.questions.no_runs import no_groups, no_runs
from rbpx.questions.registry import Analysis, analysis, question
from rbpx.questions.result import Result
from rbpx.runs.documents import with_documents
from rbpx.runs.group import Group, grouped
from rbpx.runs.points.sizes import evidence_kept
from rbpx.runs.processes import are_elsewhere, in_processes, n_processes, several_processes
from rbpx.spelling import typed
from rbpx.store.schema import FITS
from rbpx.store.sql import SqlLimits, connected_once, shared
from rbpx.store.store import Store

_FEW: Final = 6  # runs, of which there are no two laws to fit side by side
_MANY: Final = 64  # calls, each of a tenth of a second or more, that make starting processes worth the seconds it takes

P = ParamSpec("P")
T = TypeVar("T")

Grid = tuple[Request, Sequence[str] | None]
"""What to look at: the runs of given cells, or (None) all that a request narrows to."""

Call = tuple[str, Sequence[Group], Request]
"""What one question asks of one group, or across all."""

Found = Sequence[Result] | RbpxError
"""What a call finds, or the error that it ends with."""


def open_filled(name: str) -> Store:
    """The store of that name, with something in it to analyse.

    Raises:
        RbpxError: it holds nothing.
    """
    store = Store(name)
    if not any(store.records("cells")) and not store.import_files():
        what = "holds no runs" if store.root.is_dir() else "does not exist, so it holds no runs"
        raise RbpxError(
            f"store={name} {what}; name another ({typed(store='DIR')}), or measure first: "
            f"{typed('measure', model='ladder', dataset='stdlib')}"
        )
    return store


def answer(name: str, grids: Sequence[Grid], required: bool = True) -> list[Result]:
    """Ask one question about all grids as one, and keep what was fitted.

    Args:
        name: the question.
        grids: what to look at.
        required: whether having no law at all is an error.

    Returns:
        Its results, one for each group of runs, or for each family that it compares.

    Raises:
        RbpxError: the store is empty, nothing in it matches, or (`required`) no group has the sizes that a law needs.
    """
    with connected_once():
        found = answer_all([name], grids, {name} if required else set())[name]
    if isinstance(found, RbpxError):
        raise found
    return found


def answer_all(
    names: Sequence[str],
    grids: Sequence[Grid],
    required: Container[str],
    is_asked: Callable[[str, Group], bool] = lambda name, group: True,
) -> dict[str, list[Result] | RbpxError]:
    """Ask several questions as `answer` does; an error of one is returned as its answer.

    One process answers all questions about a group in a row, so that what is counted of the group serves all of them.

    Args:
        names: the questions.
        grids: what to look at.
        required: the questions for which having no law at all is an error.
        is_asked: whether a question looks at a group that the grids select.
    """
    asked = {name: _attempted(_calls, name, grids, is_asked) for name in names}
    results = _found([call for each in asked.values() if not isinstance(each, RbpxError) for call in each[0]])
    found: dict[str, list[Result] | RbpxError] = {}
    for name, each in asked.items():
        if isinstance(each, RbpxError):
            found[name] = each
            continue
        calls, tokens_known = each
        own = [results.pop(0) for _ in calls]
        found[name] = _attempted(_kept, name, calls, own, no_groups(name, grids[0][0], tokens_known), name in required)
    return found


def _attempted(function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T | RbpxError:
    """What a function returns, or the error that it ends with, unless a file is damaged."""
    try:
        return function(*arguments, **more)
    except MeasureError:
        raise
    except RbpxError as problem:
        return problem


def _calls(name: str, grids: Sequence[Grid], is_asked: Callable[[str, Group], bool]) -> tuple[list[Call], bool]:
    """What a question asks of the groups that grids select, and whether the tokens of any of them are known."""
    across, calls, tokens_known = analysis(name).across, list[Call](), False
    for alike in _alike(grids) if across else [[grid] for grid in grids]:
        request = alike[0][0]
        store = open_filled(request.store)
        with connected(request) as connection:
            groups = _groups(connection, name, alike)
            tokens_known = tokens_known or any(group.is_measured for group in groups)
            groups = [group for group in groups if _suits(analysis(name), group) and is_asked(name, group)]
        if are_elsewhere():
            request = request.but(store=str(store.root.resolve()))
        calls += [(name, of, request) for of in ([groups] if across else [[group] for group in groups])]
    return calls, tokens_known


def _found(calls: Sequence[Call]) -> list[Found]:
    """What each call finds; those about one group are made in a row by one process, each across groups by itself.

    A row is divided where it is longer than the share of one process, as with more cores than groups.
    """
    if not calls:
        return []
    keys = [at if analysis(name).across else groups[0].key for at, (name, groups, _) in enumerate(calls)]
    rows = grouped(range(len(calls)), keys.__getitem__)
    share = -(-len(calls) // n_processes())
    parts = [row[begin : begin + share] for row in rows.values() for begin in range(0, len(row), share)]
    with counted(f"{calls[0][0]}: groups of runs", len(parts)) as count:
        in_parts = in_processes(
            _analyse_row, [([calls[at] for at in part],) for part in parts], count, len(calls) >= _MANY
        )
    found = {at: each for part, of in zip(parts, in_parts, strict=True) for at, each in zip(part, of, strict=True)}
    return [found[at] for at in range(len(calls))]


def _kept(name: str, calls: Sequence[Call], found: Sequence[Found], none: str, required: bool) -> list[Result]:
    """The results of a question, whose laws are written to the store; `none` is said where no group has sizes enough.

    Raises:
        RbpxError: a call ended with it, or a law is required, and no group has the sizes that one needs.
    """
    described, results = analysis(name), list[Result]()
    for each in found:
        if isinstance(each, RbpxError):
            raise each
        results += each
    for (_, _, request), each in zip(calls, found, strict=True):
        for result in each if isinstance(each, Sequence) else ():
            keep(Store(request.store), result)
    if not any(len(group.runs) >= described.sizes for result in results for group in result.groups):
        if required:
            raise RbpxError(none)
        if not described.small:
            logging.getLogger(__name__).warning(none)
    return results


def keep(store: Store, result: Result) -> None:
    """Write what the store keeps of a result; what other questions wrote of a distribution of ranks stays."""
    for row in result.fits:
        store.write_record("fits", row["fit_id"], {name: row[name] for name in FITS.names})
    for row in result.rank_fits:
        name = f"{row['run_id']}-{row['ties']}-{row['distribution']}"
        before = store.record("rank_fits", name) or {"params": {}}
        store.write_record("rank_fits", name, {**row, "params": before["params"] | row["params"]})
    if result.then is not None:
        result.then(store)


def groups_of(name: str, grids: Sequence[Grid]) -> list[Group]:
    """The groups of runs that a question would look at.

    Raises:
        RbpxError: as in `answer`.
    """
    groups = []
    for grid in grids:
        open_filled(grid[0].store)
        with connected(grid[0]) as connection:
            groups += [group for group in _groups(connection, name, [grid]) if _suits(analysis(name), group)]
    return groups


def _groups(connection: duckdb.DuckDBPyConnection, name: str, alike: Sequence[Grid]) -> list[Group]:
    """The groups of runs that grids select, each once."""
    groups: list[Group] = []
    for request, cell_keys in alike:
        selected = question(name).select(connection, request, cell_keys)
        if not selected:
            raise RbpxError(no_runs(connection, request))
        of_before = {group.key for group in groups}
        groups += [group for group in selected if group.key not in of_before]
    return groups


@contextmanager
def asked_in_processes(names: Sequence[str], request: Request) -> Iterator[None]:
    """Look at the groups of a question in several processes while the block lasts, if the store is large enough.

    A store of a few runs has no two laws to fit side by side.
    """

    def prepare() -> None:
        with connected(request):
            pass

    is_large = len(Store(request.store).record_files("cells")) >= _FEW
    if is_large:
        for name in names:
            question(name)  # imported once for all of them
    with several_processes(prepare, pays=is_large):
        yield


def connected(request: Request) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """A connection to the store of a request, shared by all questions that are asked within `connected_once`."""
    return shared(Store(request.store), SqlLimits(request.sql_timeout_s, request.sql_memory_mib))


def _analyse_row(calls: Sequence[Call]) -> list[Found]:
    """Ask several questions about one group, in any process."""
    with evidence_kept() if len(calls) > 1 else nullcontext():
        return [_attempted(_analyse, *call) for call in calls]


def _analyse(name: str, of: Sequence[Group], request: Request) -> Sequence[Result]:
    """Ask a question about one group, or across all."""
    with connected(request) as connection:
        looks_at_tokens = analysis(name).across and analysis(name).tokens  # or at items, and fits no law to a text
        groups = [with_documents(connection, group, tests_order=not looks_at_tokens) for group in of]
        return question(name).answer(connection, groups, request)


def _alike(grids: Sequence[Grid]) -> list[list[Grid]]:
    """Put grids together that ask the same of different runs, so that a question across groups sees all of them."""
    together: list[list[Grid]] = []
    for grid in grids:
        same = next((others for others in together if _question(others[0][0]) == _question(grid[0])), None)
        if same is None:
            together.append([grid])
        else:
            same.append(grid)
    return together


def _question(request: Request) -> Request:
    """A request without what narrows it."""
    request = request.but(variant=None) if request.base is None else request
    return request.but(model=None, dataset=None, protocol=None, family=None, source=None, size="all")


def _suits(question: Analysis, group: Group) -> bool:
    """Whether a group has the sizes and the tokens that a question looks at."""
    has_tokens = group.is_measured or not question.tokens
    return has_tokens and (question.small or len(group.runs) >= question.sizes)
