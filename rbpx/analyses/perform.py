"""Questions by name: requests and the store in, printed tables and kept fits out; the same way for each."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb

from rbpx.analyses.registry import Analysis, analyses, analysis, has, part
from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.config.suggest import did_you_mean
from rbpx.display.progress import counted
from rbpx.errors import RbpxError
from rbpx.groups.selection import Group, select
from rbpx.store.index import refresh_index
from rbpx.store.queries import connect
from rbpx.store.remote import open_store
from rbpx.store.store import Record, Store
from rbpx.ties import Ties

Grid = tuple[Request, Sequence[str] | None]
"""What to look at: the runs of given cells, or (None) all that a request narrows to."""


def open_filled(name: str) -> Store:
    """The store of that name, with something in it to analyse.

    Raises:
        RbpxError: it holds nothing.
    """
    store = open_store(name)
    if not any(store.records("cells")) and not store.import_files():
        what = "holds no runs" if store.root.is_dir() else "does not exist, so it holds no runs"
        raise RbpxError(
            f"store={name} {what}; name another with --store DIR, or measure first: "
            "python -m rbpx model=ladder dataset=stdlib"
        )
    return store


def perform(names: Sequence[str], grids: Sequence[Grid], asked: bool = True, writes: bool = False) -> list[Record]:
    """Do each analysis over all grids as one, keep what was fitted, print it; return the rows, `analysis` in each.

    Args:
        names: questions.
        grids: what to look at; the first one says how to print.
        asked: whether a law was asked for, so that having none is an error.
        writes: whether `output` is for the rows.

    Raises:
        RbpxError: nothing in the store matches, or (`asked`) no group has the sizes that a law needs.
    """
    records: list[Record] = []
    said: list[Record] = []
    for name in names:
        if name not in analyses():
            raise RbpxError(f"analyses={name} is unknown; known: {', '.join(analyses())}")
    for name in names:
        found, kept = find(name, grids, asked)
        records += kept
        said += [{"analysis": name, **record} for record in kept]
        if found and grids[0][0].format is Format.table:
            show(name, found)
            if grids[0][0].plot and has(name, "plot"):
                part(name, "plot").show(found)
    if grids[0][0].format is not Format.table:
        from rbpx.display.tables import print_records

        print_records(records, grids[0][0].format, grids[0][0].output if writes else None)
    return said


def print_results(name: str, results: Sequence[Any], request: Request) -> None:
    """Print what a question found that stands in no store, as its table or as rows for programs."""
    if request.format is not Format.table:
        from rbpx.display.tables import print_records

        rows = [row for result in results for row in part(name, "analysis").records(result)]
        print_records(rows, request.format)
    elif results:
        show(name, results)


def show(name: str, found: Sequence[Any]) -> None:
    """Print what an analysis found, as its table."""
    part(name, "table").show(found)


def find(name: str, grids: Sequence[Grid], asked: bool = True, indexes: bool = True) -> tuple[list[Any], list[Record]]:
    """Do one analysis over all grids as one and keep what was fitted; its results, a group or more each, and the rows.

    Args:
        name: a question.
        grids: what to look at.
        asked: whether a law was asked for, so that having none is an error.
        indexes: whether to bring the index up to date with the new fits.

    Raises:
        RbpxError: as in `perform`.
    """
    described = analysis(name)
    module = part(name, "analysis")
    found: list[Any] = []
    records: list[Record] = []
    tokens_known = False
    for same in _alike(grids) if described.across else [[grid] for grid in grids]:
        request = same[0][0]
        store = open_store(request.store)
        with connect(store, with_fits=False) as connection:
            groups: list[Group] = []
            for each, cell_keys in same:
                chosen = select(connection, each, cell_keys)
                if not chosen:
                    raise RbpxError(_nothing(connection, each))
                groups += [group for group in chosen if group.names() not in [known.names() for known in groups]]
            tokens_known = tokens_known or any(group.is_measured for group in groups)
            groups = [group for group in groups if _suits(described, group)]
            if described.across:
                results = module.analyse(connection, groups, request)
            else:
                results = []
                with counted(f"{name}: groups of runs", len(groups)) as advance:
                    for group in groups:
                        results.append(module.analyse(connection, group, request))
                        advance(1)
        records += [record for result in results for record in module.keep(store, result)]
        found += results
        if indexes:
            refresh_index(store)
    if not any(len(result.group.runs) >= described.sizes for result in found):
        if asked:
            raise RbpxError(_none(name, grids[0][0], tokens_known))
        if not described.small:
            print(f"rbpx: {_none(name, grids[0][0], tokens_known)}", file=sys.stderr)
    return found, records


def _alike(grids: Sequence[Grid]) -> list[list[Grid]]:
    """Grids that ask the same of different runs, together: what looks across groups looks across all of them."""
    found: list[list[Grid]] = []
    for grid in grids:
        same = next((group for group in found if _question(group[0][0]) == _question(grid[0])), None)
        if same is None:
            found.append([grid])
        else:
            same.append(grid)
    return found


def _question(request: Request) -> Request:
    """A request without what narrows it."""
    return replace(request, model=None, dataset=None, protocol=None, family=None, source=None, size="all")


def _suits(analysis: Analysis, group: Group) -> bool:
    """Whether a group has the sizes and the tokens that an analysis looks at."""
    has_tokens = group.is_measured or not analysis.tokens
    return has_tokens and (analysis.small or len(group.runs) >= analysis.sizes)


_IMPORTED = ("source", "ties", "family", "dataset", "size")


def _asks_for(ties: Ties | None) -> str:
    return "" if ties is None else f" with ties={ties.value}"


def _nothing(connection: duckdb.DuckDBPyConnection, request: Request) -> str:
    """Why a request matches nothing; imported observations have one tie rule, measured ones have all."""
    query = """
        SELECT DISTINCT source, ties, family, dataset, size FROM observations WHERE source <> 'measured' ORDER BY ALL"""
    named: dict[str, Any] = {
        "source": request.source,
        "family": request.family or (None if request.model is None else request.model.family),
        "dataset": None if request.dataset is None else request.dataset.name,
        "size": None if request.size == "all" else request.size,
    }
    others = [
        (row[0], row[1])
        for row in connection.sql(query).fetchall()
        if all(
            value is None
            or dict(zip(_IMPORTED, row, strict=True))[name] in (value if isinstance(value, list) else [value])
            for name, value in named.items()
        )
    ]
    asked = " ".join(f"{name}={value}" for name, value in named.items() if value is not None)
    unknown = _not_there(connection, named)
    if unknown is not None:
        return f"{unknown}; see python -m rbpx status --store {request.store}"
    hints = [
        f"source {s} holds ties={t}"
        for s, t in dict.fromkeys(others)
        if request.ties is None or t != request.ties.value
    ]
    hint = f"; {hints[0]}: add ties={hints[0].rpartition('=')[2]}" if hints else "; see python -m rbpx status"
    return f"no runs in store={request.store} match {asked or 'the request'}{_asks_for(request.ties)}{hint}"


def _not_there(connection: duckdb.DuckDBPyConnection, named: Mapping[str, Any]) -> str | None:
    """The first value that is asked for and nothing in the store has, with those that there are."""
    query = """
        SELECT DISTINCT source, family, dataset, size FROM observations WHERE source <> 'measured'
        UNION SELECT DISTINCT 'measured', family, dataset, size FROM runs ORDER BY ALL"""
    rows = connection.sql(query).fetchall()
    for at, name in enumerate(("source", "family", "dataset", "size")):
        known = list(dict.fromkeys(row[at] for row in rows if row[at] is not None))
        asked = named[name] if isinstance(named[name], list) else [named[name]]
        for value in asked:
            if value is not None and value not in known:
                shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
                return f"{name}={value} is not in the store; {did_you_mean(str(value), known)}it holds {shown}"
    return None


def _none(name: str, request: Request, tokens_known: bool) -> str:
    """Why an analysis found nothing to look at among the runs that there are."""
    if not tokens_known and (analysis(name).tokens or request.slices is not None):
        return (
            f"{name} looks at tokens, and imported results have none; measure: "
            "python -m rbpx measure model=ladder dataset=pydoc"
        )
    if analysis(name).across and request.slices is None:
        return (
            f"no two texts that were asked for in store={request.store} have 3 sizes of one family in common, measured "
            "alike; measure another text: python -m rbpx measure model=ladder dataset=pydoc"
        )
    n_runs = sum(1 for _ in open_store(request.store).records("cells"))
    return (
        f"no group of runs in store={request.store} has the {analysis(name).sizes} sizes that {name} needs "
        f"({n_runs} run(s) in all); measure more: python -m rbpx model=ladder dataset=stdlib size=all"
    )
