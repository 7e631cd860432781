"""Asks questions of a store and writes their fits to it."""

import logging
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import duckdb

from rbpx.config.keys.output import Printed, QuestionKeys
from rbpx.config.request import NARROWS
from rbpx.display.progress import counted
from rbpx.errors import MeasureError, RbpxError
from rbpx.questions.no_runs import no_groups, no_runs, not_in_store
from rbpx.questions.registry import Analysis, analysis, question
from rbpx.questions.result import Result
from rbpx.runs.documents import with_documents
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import evidence_kept
from rbpx.runs.processes import in_order, n_workers
from rbpx.runs.run import grouped
from rbpx.spelling import typed
from rbpx.store.schema import FITS
from rbpx.store.sql import SqlLimits, connected_once, shared
from rbpx.store.store import Store

P = ParamSpec("P")
T = TypeVar("T")

Grid = tuple[Printed, Sequence[str] | None]
"""The runs of the given cells, or with None every run that the request selects."""

Call = tuple[str, Sequence[Group], QuestionKeys]
"""One question, the groups of runs that it is asked of, and the request."""

_Own = tuple[QuestionKeys, Sequence[str] | None]

Outcome = Sequence[Result] | RbpxError
"""The results of a call, or the error that ended it."""


def open_filled(name: str, sources: Sequence[str] = ()) -> Store:
    """Opens a store; raises RbpxError where it holds neither runs nor imported results, of `sources` if named."""
    store = Store(name)
    if store.is_empty:
        what = "holds no runs" if store.root.is_dir() else "does not exist, so it holds no runs"
        deeper = next((place for place in sorted(store.root.glob("[!.]*/")) if not Store(place).is_empty), None)
        first = f"measure first: {typed('measure', model='ladder', dataset='stdlib')}"
        if sources and sources[0] != "measured":
            first = f"import first: {typed('import FILE', source=sources[0])}"
        other = typed(store="DIR") if deeper is None else typed(store=str(Path(name) / deeper.name))
        raise RbpxError(f"store={name} {what}; name another ({other}), or {first}")
    return store


def answer(name: str, grids: Sequence[Grid], required: bool = True) -> list[Result]:
    """Asks one question about all grids together and stores its fits.

    Returns a result for each group, or for each family where the question compares groups.

    Raises:
        RbpxError: the store is empty, nothing in it matches, or (`required`) no group has enough sizes for a law.
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
    """Asks several questions like `answer`; the error of one is returned as its answer.

    One worker answers all questions about a group, so that its tokens are counted once. `required` are the questions
    that must find enough sizes for a law.
    """
    asked = {name: _attempted(_calls, name, grids, is_asked) for name in names}
    results = _found([call for each in asked.values() if not isinstance(each, RbpxError) for call in each[0]])
    found: dict[str, list[Result] | RbpxError] = {}
    for name, each in asked.items():
        if isinstance(each, RbpxError):
            found[name] = each
            continue
        calls, none = each
        own = [results.pop(0) for _ in calls]
        found[name] = _attempted(_kept, name, calls, own, none, name in required)
    return found


def _attempted(function: Callable[P, T], *arguments: P.args, **more: P.kwargs) -> T | RbpxError:
    """A value or an RbpxError; a MeasureError (a damaged file) is raised."""
    try:
        return function(*arguments, **more)
    except MeasureError:
        raise
    except RbpxError as problem:
        return problem


def _calls(name: str, grids: Sequence[Grid], is_asked: Callable[[str, Group], bool]) -> tuple[list[Call], str]:
    """The calls, and the message where no group has enough sizes."""
    across, calls, tokens_known, asked = analysis(name).across, list[Call](), False, _asked(name, grids)
    together = grouped(asked, lambda each: repr(_question(each[0]))).values()
    for alike in together if across else [[each] for each in asked]:
        request, groups = alike[0][0], _selected(name, alike)
        tokens_known = tokens_known or any(group.is_measured for group in groups)
        groups = [group for group in groups if _suits(analysis(name), group) and is_asked(name, group)]
        if n_workers() > 1:  # perhaps on a machine where relative paths differ
            request = request.but(store=str(Store(request.store).root.resolve()))
        calls += [(name, of, request) for of in ([groups] if across else [[group] for group in groups])]
    return calls, no_groups(name, asked[0][0], tokens_known)


def _asked(name: str, grids: Sequence[Grid]) -> list[_Own]:
    return [(request.to(analysis(name).keys), cell_keys) for request, cell_keys in grids]


def _found(calls: Sequence[Call]) -> list[Outcome]:
    """Runs the calls; a worker makes those about one group, up to its share."""
    if not calls:
        return []
    keys = [at if analysis(name).across else groups[0].key for at, (name, groups, _) in enumerate(calls)]
    rows = grouped(range(len(calls)), keys.__getitem__)
    share = -(-len(calls) // n_workers())
    parts = [row[begin : begin + share] for row in rows.values() for begin in range(0, len(row), share)]
    with counted(f"{calls[0][0]}: groups of runs", len(parts)) as count:
        in_parts = in_order(_analyse_row, [([calls[at] for at in part], len(calls) > 1) for part in parts], count)
    found = {at: each for part, of in zip(parts, in_parts, strict=True) for at, each in zip(part, of, strict=True)}
    return [found[at] for at in range(len(calls))]


def _kept(name: str, calls: Sequence[Call], found: Sequence[Outcome], none: str, required: bool) -> list[Result]:
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
    """Writes the fits of a result to the store; `params` of a rank fit join those of other questions."""
    for row in result.fits:
        store.write_record("fits", row["fit_id"], {name: row[name] for name in FITS.names})
    for row in result.rank_fits:
        name = f"{row['run_id']}-{row['ties']}-{row['distribution']}"
        before = store.record("rank_fits", name) or {"params": {}}
        store.write_record("rank_fits", name, {**row, "params": before["params"] | row["params"]})
    if result.then is not None:
        result.then(store)


def groups_of(name: str, grids: Sequence[Grid]) -> list[Group]:
    """The groups of runs that a question would be asked about.

    Raises:
        RbpxError: as in `answer`.
    """
    every = (group for grid in _asked(name, grids) for group in _selected(name, [grid]))
    return [group for group in every if _suits(analysis(name), group)]


def _selected(name: str, alike: Sequence[_Own]) -> list[Group]:
    """Selects the groups of runs of grids of one store; of two alike the first."""
    groups = list[Group]()
    open_filled(alike[0][0].store, alike[0][0].source or ())
    with connected(alike[0][0]) as connection:
        for request, cell_keys in alike:
            is_range = request.model is not None and isinstance(request.model.revision, str)  # all, log
            if cell_keys is None and not is_range and (nowhere := not_in_store(connection, request, fewest=2)):
                raise RbpxError(nowhere)
            try:
                selected = question(name).select(connection, request, cell_keys)
            except RbpxError:
                if analysis(name).tokens and not connection.sql("FROM runs LIMIT 1").fetchall():
                    raise RbpxError(no_groups(name, request, False)) from None
                raise
            if not selected:
                raise RbpxError(no_runs(connection, request))
            known = {group.key for group in groups}
            groups += [group for group in selected if group.key not in known]
    return groups


def connected(request: QuestionKeys) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """Opens the store of a request; within `connected_once` questions share a connection."""
    return shared(Store(request.store), SqlLimits(request.sql_timeout_s, request.sql_memory_mib))


def _analyse_row(calls: Sequence[Call], several: bool) -> list[Outcome]:
    with evidence_kept() if several else nullcontext():  # several share counts of all ranks, one needs fewer
        return [_attempted(_analyse, *call) for call in calls]


def _analyse(name: str, of: Sequence[Group], request: QuestionKeys) -> Sequence[Result]:
    try:
        with connected(request) as connection:
            looks_at_tokens = analysis(name).across and analysis(name).tokens
            groups = [with_documents(connection, group, tests_order=not looks_at_tokens) for group in of]
            return question(name).answer(connection, groups, request)
    except Exception as raised:  # of a worker nothing else says where it was
        raised.add_note(f"{name}: {'; '.join(group.title for group in of)}")
        raise


def _question(request: QuestionKeys) -> dict[str, Any]:
    left = NARROWS if request.base is None else [name for name in NARROWS if name != "variant"]
    return {name: value for name, value in request.typed.items() if name not in left}


def _suits(question: Analysis, group: Group) -> bool:
    has_tokens = group.is_measured or not question.tokens
    return has_tokens and (question.small or len(group.runs) >= question.sizes)
