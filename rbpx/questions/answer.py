"""Asks the store questions and keeps what is fitted, in the same way for every question."""

import logging
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import duckdb

from rbpx.config.options import Checkpoints
from rbpx.config.request import Request
from rbpx.display.progress import counted
from rbpx.errors import MeasureError, RbpxError
from rbpx.laws.names import Axis, OnText, SizeBy
from rbpx.questions.missing import no_groups, no_runs, no_tokens
from rbpx.questions.question import OfGroup
from rbpx.questions.registry import Analysis, analyses, analysis, question
from rbpx.runs.documents import document_ranks_kept, with_documents
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import evidence_kept
from rbpx.runs.processes import are_elsewhere, in_processes, n_processes, several_processes
from rbpx.runs.select.along import select_along
from rbpx.runs.select.sizes import select, select_alike, select_runs, with_enough_sizes
from rbpx.runs.select.surfaces import select_surfaces
from rbpx.runs.select.trainings import select_trainings
from rbpx.store.sql import SqlLimits, connected_once, shared
from rbpx.store.store import Record, Store

_LAW: Final = 3  # sizes of a law in S
_MANY: Final = 64  # calls, each of a tenth of a second or more, that make starting processes worth the seconds it takes

Grid = tuple[Request, Sequence[str] | None]
"""What to look at: the runs of given cells, or (None) all that a request narrows to."""

Answer = list[tuple[OfGroup, list[Record]]]
"""Each result of a question with its rows."""

Call = tuple[str, Sequence[Group], Request]
"""What one question asks of one group, or across all."""

Found = Sequence[OfGroup] | RbpxError
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
            f"store={name} {what}; name another with --store DIR, or measure first: "
            "python -m rbpx model=ladder dataset=stdlib"
        )
    return store


def answer(name: str, grids: Sequence[Grid], required: bool = True) -> Answer:
    """Ask one question about all grids as one, and keep what was fitted.

    Args:
        name: the question.
        grids: what to look at.
        required: whether having no law at all is an error.

    Returns:
        Its results, one or more for each group of runs, each with its rows.

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
    is_asked: Callable[[Group], bool] = lambda group: True,
) -> dict[str, Answer | RbpxError]:
    """Ask several questions as `answer` does; an error of one is returned as its answer.

    One process answers all questions about a group in a row, so that what is counted of the group serves all of them.

    Args:
        names: the questions.
        grids: what to look at.
        required: the questions for which having no law at all is an error.
        is_asked: whether to look at a group that the grids select.
    """
    found: dict[str, Answer | RbpxError] = {}
    asked: dict[str, tuple[list[Call], bool]] = {}
    for name in names:
        try:
            asked[name] = _calls(name, grids, is_asked)
        except MeasureError:
            raise
        except RbpxError as problem:
            found[name] = problem
    results = _found([call for calls, _ in asked.values() for call in calls])
    for name, (calls, tokens_known) in asked.items():
        own = [results.pop(0) for _ in calls]
        try:
            answered = _kept(calls, own)
            _check_sizes(name, answered, grids[0][0], tokens_known, name in required)
            found[name] = answered
        except MeasureError:
            raise
        except RbpxError as problem:
            found[name] = problem
    return {name: found[name] for name in names}


def _calls(name: str, grids: Sequence[Grid], is_asked: Callable[[Group], bool]) -> tuple[list[Call], bool]:
    """What a question asks of the groups that grids select, and whether the tokens of any of them are known."""
    across, calls, tokens_known = analysis(name).across, list[Call](), False
    for alike in _alike(grids) if across else [[grid] for grid in grids]:
        request = alike[0][0]
        store = open_filled(request.store)
        with connected(request) as connection:
            groups = _groups(connection, name, alike)
            tokens_known = tokens_known or any(group.is_measured for group in groups)
            groups = [group for group in groups if _suits(analysis(name), group) and is_asked(group)]
            question(name).check(connection, store, groups, request)
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
    rows: dict[Hashable, list[int]] = {}
    for at, (name, groups, _) in enumerate(calls):
        rows.setdefault(at if analysis(name).across else groups[0].key, []).append(at)
    share = -(-len(calls) // n_processes())
    parts = [row[begin : begin + share] for row in rows.values() for begin in range(0, len(row), share)]
    with counted(f"{calls[0][0]}: groups of runs", len(parts)) as count:
        in_parts = in_processes(
            _analyse_row, [([calls[at] for at in part],) for part in parts], count, len(calls) >= _MANY
        )
    found = {at: each for part, of in zip(parts, in_parts, strict=True) for at, each in zip(part, of, strict=True)}
    return [found[at] for at in range(len(calls))]


def _kept(calls: Sequence[Call], results: Sequence[Found]) -> Answer:
    """The results of a question with their rows, which are written to the store."""
    for each in results:
        if isinstance(each, RbpxError):
            raise each
    return [
        (result, question(name).keep(Store(request.store), result))
        for (name, _, request), found in zip(calls, results, strict=True)
        if not isinstance(found, RbpxError)
        for result in found
    ]


def _check_sizes(name: str, answered: Answer, request: Request, tokens_known: bool, required: bool) -> None:
    """Say, or where a law is required raise, that no group has the sizes that a law needs."""
    described = analysis(name)
    if any(group is not None and len(group.runs) >= described.sizes for group in (r.group for r, _ in answered)):
        return
    if required:
        raise RbpxError(no_groups(name, request, tokens_known))
    if not described.small:
        logging.getLogger(__name__).warning(no_groups(name, request, tokens_known))


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
        selected = _selected(connection, analysis(name), request, cell_keys)
        if not selected:
            has_runs = _of_trainings(analysis(name), request) and select_runs(connection, request, cell_keys)
            raise RbpxError(no_tokens(name, request) if has_runs else no_runs(connection, request))
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

    is_large = len(Store(request.store).record_files("cells")) >= 2 * _LAW
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
    with document_ranks_kept(), evidence_kept() if len(calls) > 1 else nullcontext():
        return [_analyse(*call) for call in calls]


def _analyse(name: str, of: Sequence[Group], request: Request) -> Found:
    """Ask a question about one group, or across all; an error is returned, unless a file is damaged."""
    try:
        with connected(request) as connection:
            looks_at_tokens = analysis(name).across and analysis(name).tokens  # or at items, and fits no law to a text
            groups = [with_documents(connection, group, tests_order=not looks_at_tokens) for group in of]
            return question(name).analyse(connection, groups, request)
    except MeasureError:
        raise
    except RbpxError as problem:
        return problem


def _selected(
    connection: duckdb.DuckDBPyConnection, question: Analysis, request: Request, cell_keys: Sequence[str] | None
) -> Sequence[Group]:
    if not question.surfaces or request.axis not in (Axis.S, Axis.D, Axis.C) or request.E is not None:
        return _selected_along(connection, question, request, cell_keys)
    surfaces = select_surfaces(connection, request, cell_keys)
    try:
        return [*surfaces, *_selected_along(connection, question, request, cell_keys)]
    except RbpxError:
        if len(surfaces) < 2:  # with two there is something to compare, though there is no law in one axis
            raise
    return surfaces


def _selected_along(
    connection: duckdb.DuckDBPyConnection, question: Analysis, request: Request, cell_keys: Sequence[str] | None
) -> Sequence[Group]:
    if request.axis is not Axis.S:
        of_loss = isinstance(request.axis, OnText)
        if not (question.pairs if of_loss else question.along):
            verbs = [name for name, each in analyses().items() if (each.pairs if of_loss else each.along)]
            raise RbpxError(
                f"axis={request.axis.value} is not for this verb, which is about S; it is for: {', '.join(verbs)}"
            )
    if isinstance(request.axis, OnText):
        from rbpx.runs.select.losses import select_pairs  # which laws in size do without

        return select_pairs(connection, request, request.axis, cell_keys)
    if request.axis is not Axis.S:
        choose = not (question.across or request.frontier)
        return select_along(connection, request, cell_keys, choose, needs_law=not question.without_law)
    if question.raw and request.checkpoints is Checkpoints.last:
        raise RbpxError("checkpoints=last keeps one point of each training, and this verb needs several; drop it")
    if isinstance(request.size_by, tuple) and question is analysis("fit"):  # no law is in both, so any runs are alike
        return select_alike(connection, request.but(size_by=SizeBy.total), cell_keys)
    if question.of_any_runs:
        return select_alike(connection, request, cell_keys)
    if _of_trainings(question, request):
        return select_trainings(connection, request, cell_keys, question.raw, question.needs_tokens)
    groups = select(connection, request, cell_keys, needs_law=not question.without_law)
    return with_enough_sizes(groups, question.sizes) if question.sizes >= _LAW else groups


def _of_trainings(question: Analysis, request: Request) -> bool:
    """Whether a question looks at all trainings of a family, in place of one run a size."""
    return question.trainings or bool(question.trainings_with and getattr(request, question.trainings_with))


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
