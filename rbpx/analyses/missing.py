"""Why a question has nothing to look at: a request and the store in, one line for the user out."""

from collections.abc import Mapping
from typing import Any

import duckdb

from rbpx.analyses.registry import analysis
from rbpx.config.request import Request
from rbpx.config.suggest import did_you_mean
from rbpx.counts import number_of
from rbpx.store.remote import open_store
from rbpx.ties import Ties

_IMPORTED = ("source", "ties", "family", "dataset", "size", "revision", "variant")
_NAMES = ("source", "family", "dataset", "size", "revision", "variant")
_KEYS = {"revision": "model.revision"}  # of those whose key has another name


def _asks_for(ties: Ties | None) -> str:
    return "" if ties is None else f" with ties={ties.value}"


def no_runs(connection: duckdb.DuckDBPyConnection, request: Request) -> str:
    """Why a request matches nothing; imported observations have one tie rule, measured ones have all."""
    query = """
        SELECT DISTINCT source, ties, family, dataset, size, revision, variant
        FROM observations WHERE source <> 'measured' ORDER BY ALL"""
    named: dict[str, Any] = {
        "source": request.source,
        "family": request.typed.get("family") or (None if request.model is None else request.model.family),
        "dataset": None if request.dataset is None else request.dataset.name,
        "size": None if request.size is None else request.typed["size"],
        "revision": _revisions(request),
        "variant": None if request.variants is None else request.typed["variant"],
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
    narrowing = " ".join(f"{_KEYS.get(name, name)}={value}" for name, value in named.items() if value is not None)
    unknown = _not_there(connection, named)
    if unknown is not None:
        return f"{unknown}; see python -m rbpx status --store {request.store}"
    hints = [
        f"source {s} holds ties={t}"
        for s, t in dict.fromkeys(others)
        if t is not None
        if request.ties is None or t != request.ties.value
    ]
    hint = f"; {hints[0]}: add ties={hints[0].rpartition('=')[2]}" if hints else "; see python -m rbpx status"
    return f"no runs in store={request.store} match {narrowing or 'the request'}{_asks_for(request.ties)}{hint}"


def _revisions(request: Request) -> Any:
    """The revision asked for, or a list of several."""
    revisions = [None] if request.model is None else request.model.revisions()
    return revisions[0] if len(revisions) == 1 else revisions


def _not_there(connection: duckdb.DuckDBPyConnection, named: Mapping[str, Any]) -> str | None:
    """The first value that is asked for and nothing in the store has, with those that there are."""
    query = """
        SELECT DISTINCT source, family, dataset, size, revision, variant FROM observations WHERE source <> 'measured'
        UNION SELECT DISTINCT 'measured', family, dataset, size, revision, variant FROM runs ORDER BY ALL"""
    rows = connection.sql(query).fetchall()
    for at, name in enumerate(_NAMES):
        present = list(dict.fromkeys(row[at] for row in rows if row[at] is not None))
        values = named[name] if isinstance(named[name], list) else [named[name]]
        for value in values:
            if value is not None and value not in present:
                examples = ", ".join(present[:12]) + (", ..." if len(present) > 12 else "")
                holds = f"{did_you_mean(str(value), present)}it holds {examples or 'none'}"
                return f"{_KEYS.get(name, name)}={value} is not in the store; {holds}"
    return None


def no_tokens(name: str, request: Request) -> str:
    """Why a question about size and tokens found nothing among the runs that there are."""
    return (
        f"{name} needs the training tokens D of each run, and no run in store={request.store} that matches has them, "
        "or FLOPs to compute them from; measure with model.tokens=N, or import a table with a column D: "
        "python -m rbpx import FILE source=NAME"
    )


def no_groups(name: str, request: Request, tokens_known: bool) -> str:
    """Why an analysis found nothing to look at among the runs that there are."""
    if not tokens_known and (analysis(name).tokens or request.slices is not None):
        return (
            f"{name} looks at tokens, and imported results have none; measure: "
            "python -m rbpx measure model=ladder dataset=pydoc"
        )
    if analysis(name).lacking:
        return analysis(name).lacking.format(store=request.store)
    if analysis(name).across and request.slices is None:
        return (
            f"no two texts that were asked for in store={request.store} have 3 sizes of one family in common, measured "
            "alike; measure another text: python -m rbpx measure model=ladder dataset=pydoc"
        )
    n_runs = sum(1 for _ in open_store(request.store).records("cells"))
    sizes = number_of(analysis(name).sizes, "size")
    return (
        f"no group of runs in store={request.store} has the {sizes} that {name} needs "
        f"({number_of(n_runs, 'run')} in all); measure more: python -m rbpx model=ladder dataset=stdlib size=all"
    )
