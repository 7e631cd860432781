"""Says what is missing from the store where a question found no runs, and what to type."""

from typing import Any

import duckdb

from rbpx.config.keys.output import Told
from rbpx.config.model.family import ModelConfig
from rbpx.config.options import did_you_mean
from rbpx.errors import number_of
from rbpx.questions.registry import analysis
from rbpx.spelling import typed
from rbpx.store.store import Store

_THERE = """
    SELECT DISTINCT source, family, dataset, size, revision, variant, ties FROM observations WHERE source <> 'measured'
    UNION SELECT DISTINCT 'measured', family, dataset, size, revision, variant, NULL FROM runs ORDER BY ALL"""


def _asked(request: Told) -> dict[str, Any]:
    """What narrows a request, by key, in the order of the columns of `_THERE`."""
    model = request.model
    revisions = [None] if model is None else model.revisions()
    return {
        "source": request.source,
        "family": request.family or (None if model is None else model.family),
        "dataset": None if request.dataset is None else request.dataset.name,
        "size": request.size,
        "model.revision": revisions[0] if len(revisions) == 1 else revisions,
        "variant": request.variants,
    }


def not_in_store(connection: duckdb.DuckDBPyConnection, request: Told, fewest: int = 1) -> str | None:
    """The first name that nothing in the store has, of keys with at least `fewest` names; None where all are there."""
    asked = {at: (key, _listed(value)) for at, (key, value) in enumerate(_asked(request).items())}
    asked = {at: (key, names) for at, (key, names) in asked.items() if len(names) >= fewest}
    rows = connection.sql(_THERE).fetchall() if asked else []
    for at, (key, names) in asked.items():
        present = list(dict.fromkeys(row[at] for row in rows if row[at] is not None))
        absent = next((each for each in names if each is not None and each not in present), None)
        if absent is not None:
            examples = ", ".join(present[:12]) + (", ..." if len(present) > 12 else "")
            meant = did_you_mean(str(absent), present)
            how = _how_to_measure(str(absent), request.model) if key == "family" and not meant else ""
            return f"{key}={absent} is not in the store; {meant}it holds {examples or 'none'}{how}"
    return None


def no_runs(connection: duckdb.DuckDBPyConnection, request: Told) -> str:
    """Why a request matches no runs; only imported observations lack a tie rule."""
    if nowhere := not_in_store(connection, request):
        return nowhere
    rows, asked = connection.sql(_THERE).fetchall(), _asked(request)
    rule = None if request.ties is None else request.ties.value
    others = sorted(
        {
            (row[0], row[-1])
            for row in rows
            if row[-1] not in (None, rule)
            and all(value is None or cell in _listed(value) for cell, value in zip(row, asked.values(), strict=False))
        }
    )
    hint = "".join(f"; source {source} holds ties={ties}: add ties={ties}" for source, ties in others[:1])
    narrowing = typed(keys={key: value for key, value in asked.items() if value is not None})
    under = "" if rule is None else f" with ties={rule}"
    return f"no runs in store={request.store} match {narrowing or 'the request'}{under}{hint}"


def _how_to_measure(family: str, model: ModelConfig | None) -> str:
    if model is not None and model.sizes:
        return f"; measure it: {typed('measure', model=family)}"
    by_id = typed(keys={"model": "hub", "model.id": ["A", "B"], "model.family": family})
    return f"; to measure it, define it in model/NAME.yaml of --config-dir, or by {by_id}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def no_groups(name: str, request: Told, tokens_known: bool) -> str:
    """Why no group of runs suits a question."""
    described = analysis(name)
    if not tokens_known and (described.tokens or request.slices is not None):
        other = described.without_tokens
        beside = "" if other is None else f"; {typed(other[0])} answers from {other[1]}"
        return (
            f"{name} looks at tokens, and imported results have none; measure the models here, or bring their tokens: "
            f"{typed('import tokens FILE')}{beside}"
        )
    if described.lacking:
        return described.lacking.format(store=request.store)
    n_runs = sum(1 for _ in Store(request.store).records("cells"))
    return (
        f"no group of runs in store={request.store} has the {number_of(described.sizes, 'size')} that {name} needs "
        f"({number_of(n_runs, 'run')} in all); measure more: "
        f"{typed('measure', model='ladder', dataset='stdlib', size='all')}"
    )
