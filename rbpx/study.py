"""Analyses by name: requests and the store in, printed tables and kept fits out; the same way for each."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb

from rbpx.analyses.selection import Group, select
from rbpx.config import Format, Request
from rbpx.errors import RbpxError
from rbpx.index import refresh_index
from rbpx.queries import connect
from rbpx.store import Record, Store

ANALYSES = {
    "fit": "size_laws",
    "klaw": "k_law",
    "regimes": "regimes",
    "predict": "prediction",
    "emergence": "emergence",
    "gaps": "gaps",
    "outcomes": "outcomes",
    "tokenwise": "tokenwise",
}
_ACROSS = {"gaps"}  # look at groups side by side, not at one after the other
_TABLES = {"fit": "laws"}
_NEEDS_SIZES = {
    "fit": 3,
    "regimes": 3,
    "predict": 3,
    "emergence": 3,
    "klaw": 1,
    "gaps": 3,
    "outcomes": 2,
    "tokenwise": 2,
}

Grid = tuple[Request, Sequence[str] | None]
"""What to look at: the runs of given cells, or (None) all that a request narrows to."""


def perform(names: Sequence[str], grids: Sequence[Grid], asked: bool = True) -> None:
    """Do each analysis over all grids as one, keep what was fitted, and print it.

    Args:
        names: verbs of `ANALYSES`.
        grids: what to look at; the first one says how to print.
        asked: whether a law was asked for, so that having none is an error.

    Raises:
        RbpxError: nothing in the store matches, or (`asked`) no group has the sizes that a law needs.
    """
    records: list[Record] = []
    unknown = [name for name in names if name not in ANALYSES]
    if unknown:
        raise RbpxError(f"analyses={unknown[0]} is unknown; known: {', '.join(ANALYSES)}")
    for name in names:
        module = import_module(f"rbpx.analyses.{ANALYSES[name]}")
        found = []
        for request, cell_keys in grids:
            store = Store(Path(request.store))
            with connect(store) as connection:
                groups = select(connection, request, cell_keys)
                if not groups:
                    raise RbpxError(_nothing(connection, request))
                groups = [group for group in groups if _fits(name, group)]
                if name in _ACROSS:
                    results = module.analyse(connection, groups, request)
                else:
                    results = [module.analyse(connection, group, request) for group in groups]
            records += [record for result in results for record in module.keep(store, result)]
            found += results
            refresh_index(store)
        if asked and not any(len(result.group.runs) >= _NEEDS_SIZES[name] for result in found):
            raise RbpxError(_too_few(grids[0][0], _NEEDS_SIZES[name]) if name not in _ACROSS else _no_pair(grids[0][0]))
        if found and grids[0][0].format is Format.table:
            import_module(f"rbpx.tables.{_TABLES.get(name, ANALYSES[name])}").show(found)
    if grids[0][0].format is not Format.table:
        from rbpx.tables.plain import print_records

        print_records(records, grids[0][0].format)


def _fits(name: str, group: Group) -> bool:
    """`fit` says of each group why it has no law; the others leave out groups that are too small."""
    return name == "fit" or len(group.runs) >= _NEEDS_SIZES[name]


def _nothing(connection: duckdb.DuckDBPyConnection, request: Request) -> str:
    """Why a request matches nothing; imported observations have one tie rule, measured ones have all."""
    query = "SELECT DISTINCT source, ties FROM observations WHERE source <> 'measured' ORDER BY ALL"
    others = [(s, t) for s, t in connection.sql(query).fetchall() if request.source in (None, s)]
    named: dict[str, Any] = {
        "source": request.source,
        "family": request.family or (None if request.model is None else request.model.family),
        "dataset": None if request.dataset is None else request.dataset.name,
        "size": None if request.size == "all" else request.size,
    }
    asked = " ".join(f"{name}={value}" for name, value in named.items() if value is not None)
    hints = [f"source {s} holds ties={t}" for s, t in others if t != request.ties.value]
    hint = f"; {hints[0]}: add ties={hints[0].rpartition('=')[2]}" if hints else "; see python -m rbpx status"
    return f"no runs in store={request.store} match {asked or 'the request'} with ties={request.ties.value}{hint}"


def _no_pair(request: Request) -> str:
    return (
        f"no two texts in store={request.store} have 3 sizes of one family in common, measured alike; measure another "
        "text: python -m rbpx measure model=ladder dataset=pydoc"
    )


def _too_few(request: Request, needed: int) -> str:
    n_runs = sum(1 for _ in Store(Path(request.store)).records("cells"))
    return (
        f"no group of runs in store={request.store} has the {needed} sizes that a power law needs ({n_runs} run(s) in "
        "all); measure more: python -m rbpx model=ladder dataset=stdlib size=all"
    )
