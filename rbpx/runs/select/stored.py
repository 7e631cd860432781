"""Reads the runs that a request is about, measured and imported."""

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from rbpx.config.keys.key import names_of
from rbpx.config.keys.runs import Narrowing
from rbpx.config.model.adapter import variants_of
from rbpx.config.model.family import ModelConfig
from rbpx.config.options import did_you_mean
from rbpx.config.text.dataset import UNNAMED
from rbpx.errors import RbpxError, number_of
from rbpx.laws.names import IMPORTED, SizeBy
from rbpx.runs.run import ALIKE, MEASURED, OF_TRAINING, Run, grouped
from rbpx.store.schema import varied
from rbpx.store.sql import ask_once, whole_runs

_AGREED = (
    *("weight", "lr", "schedule", "schedule_tokens", "warmup_tokens", "decay_tokens", "lr_decay", "final_lr"),
    *("active_params", "total_params", "cross_entropy_nats"),
)
_SIZES = ("non_embedding_params", "active_params")  # written as integers where they are whole
NARROWED_BY = ("family", "size", "dataset", "protocol", "revision")


def select_runs(
    connection: duckdb.DuckDBPyConnection,
    request: Narrowing,
    cell_keys: Sequence[str] | None = None,
    plans: bool = False,
) -> list[Run]:
    """Select the runs of a request, ungrouped: the cells of a grid, or every matching run.

    With `plans`, rates without a value, which are of the plans of runs, are among them.

    Raises:
        RbpxError: the request names a model that is not a family, or counts parameters that are unknown.
    """
    runs = [run for run in _selected(connection, request, cell_keys) if plans or not run.is_plan]
    unknown = [run for run in runs if run.total_params is None]
    if request.size_by is SizeBy.with_embeddings and unknown:
        raise RbpxError(
            f"size_by=with_embeddings: all parameters of {unknown[0].family} {unknown[0].size} are not known, nor of "
            f"{number_of(len(unknown) - 1, 'other run')}; import total_params, or leave these runs out by family="
        )
    return [run.sized_by(request.size_by) for run in runs]


def _selected(connection: duckdb.DuckDBPyConnection, request: Narrowing, cell_keys: Sequence[str] | None) -> list[Run]:
    if cell_keys is not None:
        return _measured(connection, **dict.fromkeys(NARROWED_BY), cell_keys=list(cell_keys))
    runs = _narrowed(connection, request)
    if not runs and request.dataset is not None and request.dataset.has_file_name:
        runs = _narrowed(connection, request, dataset=[UNNAMED])
    return runs


def select_runs_on(connection: duckdb.DuckDBPyConnection, request: Narrowing, dataset: str) -> list[Run]:
    """Select the runs of a request on another text."""
    runs = _narrowed(connection, request, dataset=[dataset])
    return [run for run in runs if not run.is_plan]


def choices(request: Narrowing) -> dict[str, list[str] | None]:
    """The names by which a request filters the runs of a store; None for all; raises as `family_name`."""
    model, dataset, protocol = request.model, request.dataset, request.protocol
    families = request.family
    names_states = model is not None and (model.revision, model.quantise, model.adapter) != (None, None, None)
    if model is not None and not (model.family is None and model.id is None and names_states):
        families = [*(families or []), family_name(request)]
    variants: list[Any] | None = request.variants
    adapters = None if model is None else names_of("model.adapter", model.adapter)
    if adapters is not None:  # None for the plain model
        variants = [each for each in variants_of(adapters).values() if variants is None or each in variants]
    return {
        "source": request.source,
        "family": families,
        "size": request.size,
        "dataset": None if dataset is None else [dataset.name],
        "protocol": None if protocol is None else [protocol.name],
        "revision": None if model is None else _revisions(model),
        "quantise": None if model is None or model.quantise is None else [model.quantise],
        "variant": variants,
    }


def _revisions(model: ModelConfig) -> list[str] | None:
    """The labels; None for all, and where some models have no label."""
    labels = [] if model.revision is None else model.revisions()
    named = [label for label in labels if label is not None]
    return named if named and len(named) == len(labels) else None


def _narrowed(connection: duckdb.DuckDBPyConnection, request: Narrowing, **others: list[str]) -> list[Run]:
    """The runs of a request, with `others` in place of its own choices."""
    names = choices(request) | others
    sources, quantise, variants = (names.pop(name) for name in ("source", "quantise", "variant"))
    runs = _measured(connection, **names, cell_keys=None) if sources is None or MEASURED in sources else []
    if quantise is not None:
        runs = _rounded(runs, quantise)
    else:
        ties = None if request.ties is None else request.ties.value
        runs += _imported(connection, **names, source=sources, ties=ties)
    return runs if variants is None else [run for run in runs if run.variant in variants]


def _rounded(runs: Sequence[Run], kinds: Sequence[str]) -> list[Run]:
    rounded_to = [(run.dtype or "").partition("-")[2] for run in runs]
    kept = [run for run, kind in zip(runs, rounded_to, strict=True) if kind in kinds]
    if runs and not kept:
        there = sorted({kind for kind in rounded_to if kind})
        hint = did_you_mean(kinds[0], there)
        of_these = f"{hint}rounded are: {', '.join(there)}" if there else "none of them is rounded"
        raise RbpxError(
            f"model.quantise={', '.join(kinds)} is none of the {number_of(len(runs), 'run')} that are asked about; "
            f"{of_these}"
        )
    return kept


def _measured(connection: duckdb.DuckDBPyConnection, **names: list[str] | None) -> list[Run]:
    rows = ask_once(connection, "runs", **names).to_pylist()
    whole = whole_runs(connection, [row["run_id"] for row in rows])
    rows = [row for row in rows if row["run_id"] in whole]
    return [Run((row["run_id"],), **{key: row[key] for key in row.keys() - {"run_id", "cell_key"}}) for row in rows]


def _imported(connection: duckdb.DuckDBPyConnection, **names: list[str] | str | None) -> list[Run]:
    rows = ask_once(connection, "imported", **names).to_pylist()
    knobs = varied(rows[0]) if rows else []
    of_run = (*ALIKE, "size", "non_embedding_params", *OF_TRAINING)
    runs = []
    for members in grouped(rows, lambda row: tuple(str(row.get(name)) for name in (*of_run, *knobs))).values():
        first = members[0]
        agreed = {name: _one(row[name] for row in members) for name in (*_AGREED, *IMPORTED)}
        counts = {row["n_tokens"] for row in members if row["n"] == 1} - {None}
        items = [row for row in members if row["item"] is not None]
        facts = {name: first.get(name) for name in of_run} | {name: agreed[name] for name in _AGREED}
        facts |= {name: int(of) for name in _SIZES if (of := facts[name]) is not None and of == int(of)}
        runs.append(
            Run(
                tuple(sorted({row["run_id"] for row in members})),
                **facts | {"weight": facts["weight"] or 1.0},
                n_tokens=counts.pop() if len(counts) == 1 else None,
                varied={name: first[name] for name in knobs if first[name] is not None},
                observed={(row["k"], row["n"]): row["rbp"] for row in members if row["rbp"] is not None},
                attempts={row["item"]: (row["n_correct"], row["n_samples"]) for row in items},
                imported={name: agreed[name] for name in IMPORTED if agreed[name] is not None},
            )
        )
    return runs


def _one(values: Iterable[Any]) -> Any:
    known = set(values) - {None}
    return known.pop() if len(known) == 1 else None


def family_name(request: Narrowing) -> str:
    """The family that a request names; raises RbpxError where it names a model alone."""
    model = request.model
    if model is None or model.family is None:
        raise RbpxError("model=hub does not name a family of the store; name it with model.family=NAME")
    return model.family
