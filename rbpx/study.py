"""Analyses by name: requests and the store in, printed tables and kept fits out; the same way for each."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import duckdb

from rbpx.analyses.selection import Group, select
from rbpx.config import Format, Request
from rbpx.errors import RbpxError
from rbpx.index import refresh_index
from rbpx.mirror import open_store
from rbpx.queries import connect
from rbpx.store import Record
from rbpx.ties import Ties


@dataclass(frozen=True)
class Analysis:
    """One analysis.

    Attributes:
        module: of rbpx.analyses, and of rbpx.tables.
        sizes: that a group needs.
        tokens: whether it looks at tokens, which imported observations do not have.
        across: whether it looks at groups side by side, not at one after the other.
        small: whether it has something to say of groups that are too small.
    """

    module: str
    sizes: int
    tokens: bool = False
    across: bool = False
    small: bool = False


ANALYSES = {
    "fit": Analysis("size_laws", 3, small=True),
    "klaw": Analysis("k_law", 1),
    "regimes": Analysis("regimes", 3),
    "predict": Analysis("prediction", 3),
    "emergence": Analysis("emergence", 3),
    "gaps": Analysis("gaps", 3, across=True),
    "choices": Analysis("choices", 1, tokens=True, across=True),
    "ranks": Analysis("ranks", 1, tokens=True),
    "entropy": Analysis("entropy", 1, tokens=True),
    "units": Analysis("units", 1, tokens=True),
    "improve": Analysis("improvement", 3, tokens=True),
    "outcomes": Analysis("outcomes", 2, tokens=True),
    "tokenwise": Analysis("tokenwise", 2, tokens=True),
}

Grid = tuple[Request, Sequence[str] | None]
"""What to look at: the runs of given cells, or (None) all that a request narrows to."""


def perform(names: Sequence[str], grids: Sequence[Grid], asked: bool = True) -> list[Record]:
    """Do each analysis over all grids as one, keep what was fitted, print it; return the rows, `analysis` in each.

    Args:
        names: verbs of `ANALYSES`.
        grids: what to look at; the first one says how to print.
        asked: whether a law was asked for, so that having none is an error.

    Raises:
        RbpxError: nothing in the store matches, or (`asked`) no group has the sizes that a law needs.
    """
    records: list[Record] = []
    said: list[Record] = []
    for name in names:
        if name not in ANALYSES:
            raise RbpxError(f"analyses={name} is unknown; known: {', '.join(ANALYSES)}")
    for name in names:
        found, kept = find(name, grids, asked)
        records += kept
        said += [{"analysis": name, **record} for record in kept]
        if found and grids[0][0].format is Format.table:
            import_module(f"rbpx.tables.{ANALYSES[name].module}").show(found)
    if grids[0][0].format is not Format.table:
        from rbpx.tables.plain import print_records

        print_records(records, grids[0][0].format)
    return said


def find(name: str, grids: Sequence[Grid], asked: bool = True, indexes: bool = True) -> tuple[list[Any], list[Record]]:
    """Do one analysis over all grids as one and keep what was fitted; its results, a group or more each, and the rows.

    Args:
        name: of `ANALYSES`.
        grids: what to look at.
        asked: whether a law was asked for, so that having none is an error.
        indexes: whether to bring the index up to date with the new fits.

    Raises:
        RbpxError: as in `perform`.
    """
    analysis = ANALYSES[name]
    module = import_module(f"rbpx.analyses.{analysis.module}")
    found: list[Any] = []
    records: list[Record] = []
    tokens_known = False
    for same in _alike(grids) if analysis.across else [[grid] for grid in grids]:
        request = same[0][0]
        store = open_store(request.store)
        with connect(store) as connection:
            groups: list[Group] = []
            for each, cell_keys in same:
                chosen = select(connection, each, cell_keys)
                if not chosen:
                    raise RbpxError(_nothing(connection, each))
                groups += [group for group in chosen if group.names() not in [known.names() for known in groups]]
            tokens_known = tokens_known or any(group.is_measured for group in groups)
            groups = [group for group in groups if _suits(analysis, group)]
            if analysis.across:
                results = module.analyse(connection, groups, request)
            else:
                results = [module.analyse(connection, group, request) for group in groups]
        records += [record for result in results for record in module.keep(store, result)]
        found += results
        if indexes:
            refresh_index(store)
    if not any(len(result.group.runs) >= analysis.sizes for result in found):
        if asked:
            raise RbpxError(_none(name, grids[0][0], tokens_known))
        if not analysis.small:
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


def _asks_for(ties: Ties | None) -> str:
    return "" if ties is None else f" with ties={ties.value}"


def _nothing(connection: duckdb.DuckDBPyConnection, request: Request) -> str:
    """Why a request matches nothing; imported observations have one tie rule, measured ones have all."""
    query = "SELECT DISTINCT source, ties, family FROM observations WHERE source <> 'measured' ORDER BY ALL"
    families = request.families()
    others = [
        (s, t)
        for s, t, family in connection.sql(query).fetchall()
        if request.source in (None, s) and (families is None or family in families)
    ]
    named: dict[str, Any] = {
        "source": request.source,
        "family": request.family or (None if request.model is None else request.model.family),
        "dataset": None if request.dataset is None else request.dataset.name,
        "size": None if request.size == "all" else request.size,
    }
    asked = " ".join(f"{name}={value}" for name, value in named.items() if value is not None)
    hints = [f"source {s} holds ties={t}" for s, t in others if request.ties is None or t != request.ties.value]
    hint = f"; {hints[0]}: add ties={hints[0].rpartition('=')[2]}" if hints else "; see python -m rbpx status"
    return f"no runs in store={request.store} match {asked or 'the request'}{_asks_for(request.ties)}{hint}"


def _none(name: str, request: Request, tokens_known: bool) -> str:
    """Why an analysis found nothing to look at among the runs that there are."""
    if not tokens_known and (ANALYSES[name].tokens or request.slices is not None):
        return (
            f"{name} looks at tokens, and imported results have none; measure: "
            "python -m rbpx measure model=ladder dataset=pydoc"
        )
    if ANALYSES[name].across and request.slices is None:
        return (
            f"no two texts that were asked for in store={request.store} have 3 sizes of one family in common, measured "
            "alike; measure another text: python -m rbpx measure model=ladder dataset=pydoc"
        )
    n_runs = sum(1 for _ in open_store(request.store).records("cells"))
    return (
        f"no group of runs in store={request.store} has the {ANALYSES[name].sizes} sizes that {name} needs "
        f"({n_runs} run(s) in all); measure more: python -m rbpx model=ladder dataset=stdlib size=all"
    )
