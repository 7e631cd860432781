"""Selects the runs of a request, in groups that may enter one fit, and the last checkpoints of each training.

Texts are never pooled.
"""

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import duckdb

from rbpx.config.keys.key import names_of
from rbpx.config.keys.runs import Narrowing
from rbpx.config.model.adapter import variants_of
from rbpx.config.model.family import ModelConfig
from rbpx.config.options import Checkpoints, did_you_mean
from rbpx.config.text.dataset import UNNAMED
from rbpx.errors import RbpxError, number_of
from rbpx.laws.names import IMPORTED, SizeBy
from rbpx.runs.group import ALIKE, MEASURED, OF_TRAINING, Group, Run, grouped
from rbpx.spelling import typed
from rbpx.store.schema import varied
from rbpx.store.sql import ask_once, whole_runs
from rbpx.ties import Ties, rule_of


def tokens_of(run: Run) -> float | None:
    """Training tokens D as known, else C / (6 S) with S the active parameters; None where neither is known."""
    if run.training_tokens is not None:
        return float(run.training_tokens)
    return None if run.training_flops is None else run.training_flops / (6 * run.used_params)


def is_state(revision: str | None) -> bool:
    """Whether a revision names a checkpoint of a training, not a model of its own.

    Checkpoints are None, main, stepN and raw-D, as experiments/ladder/train.py names them.
    """
    return revision is None or re.fullmatch(r"step\d+|main|raw-.*", revision) is not None


def training_of(run: Run) -> tuple[Any, ...]:
    """A key for the training of a run, shared by its checkpoints alone.

    An imported row without a model and a step is a training of its own.
    """
    of_size = (run.model, run.size, run.non_embedding_params, run.training_seed, *run.varied.items())
    if run.source != "measured" and run.model is None and run.training_step is None:
        return (*of_size, run.training_tokens, run.training_flops, run.revision)
    return (*of_size, None if is_state(run.revision) else run.revision)


def last_of_each(runs: Sequence[Run], n_last: int = 1) -> list[Run]:
    """The last `n_last` checkpoints of each training, in order."""
    kept = {id(run) for members in grouped(in_order(runs), training_of).values() for run in members[-n_last:]}
    return [run for run in runs if id(run) in kept]


def in_groups(runs: Iterable[Run], key: Callable[[Run], Any]) -> list[list[Run]]:
    """Group runs by a key and sort the groups by it."""
    return list(grouped(sorted(runs, key=key), key).values())


def in_order(runs: Iterable[Run]) -> list[Run]:
    """Sort runs by training progress."""
    return sorted(runs, key=_progress)


def _progress(run: Run) -> tuple[float, int, bool]:
    """Sort key of training progress: tokens, then steps; the released model comes last."""
    is_released, tokens = run.revision in (None, "main"), tokens_of(run)
    if tokens is None:
        tokens = math.inf if is_released else 0.0
    return tokens, run.training_step or 0, is_released


NAMES: Final = (*ALIKE, "ties")  # the columns by which a forecast names its group
NEAR: Final = 0.005  # S and D may be rounded to three digits
BESIDE: Final = 0.05  # no forecast closer than this to a measured model, whose named size may be rounded
_OF_MODEL: Final = ("family", "dataset", "variant")


def is_about(names: Mapping[str, Any], S: float, D: float | None, run: Run, near: float = NEAR) -> bool:
    """Whether a run measures the model and text of a forecast, with any protocol or dtype, S and D as near as `near`.

    `names` are those of the group that the forecast was fitted to; D is None where it is about the size alone.
    """
    texts = {names["text_hash"], run.text_hash}
    if any(names[name] != getattr(run, name) for name in _OF_MODEL) or len(texts - {None}) > 1:
        return False
    if not _near(run.non_embedding_params, S, near):
        return False
    if D is None:
        return bool(names["revision"] == run.revision)
    tokens = tokens_of(run)
    return tokens is not None and _near(tokens, D, near)


def is_of(names: Mapping[str, Any], S: float, D: float | None, run: Run) -> bool:
    """Whether a run measures a forecast: same model, measured as the models that it was fitted to."""
    alike = (name for name in ALIKE if name != "revision")  # `is_about` compares revisions itself
    return is_about(names, S, D, run) and all(names[name] == getattr(run, name) for name in alike)


def _near(value: float, target: float, near: float) -> bool:
    return abs(value / target - 1) <= near


_OF_RUNS = ("quantise", "variants")  # filters applied to runs, not in SQL
_AGREED = (
    *("weight", "lr", "schedule", "schedule_tokens", "warmup_tokens", "decay_tokens", "lr_decay", "final_lr"),
    *("active_params", "total_params", "cross_entropy_nats"),
)
_SIZES = ("non_embedding_params", "active_params")  # written as integers where they are whole
_NARROWS = ("sources", "families", "sizes", "datasets", "protocols", "revisions", *_OF_RUNS)


def select(
    connection: duckdb.DuckDBPyConnection,
    request: Narrowing,
    cell_keys: Sequence[str] | None = None,
    needs_law: bool = True,
) -> list[Group]:
    """Select the groups of a request: the cells of a grid, or every matching run of the store.

    With `needs_law`, groups are left out in which models of one size differ in training tokens.

    Raises:
        RbpxError: the request names a model that is not a family, or two runs of a group have the same S and are not
            known to be replicates.
    """
    groups = select_alike(connection, request, cell_keys)
    if not needs_law:
        return [group if group.has_trainings or request.frontier else _checked(group) for group in groups]
    of_size = [group for group in groups if not group.has_trainings]
    if groups and not of_size:
        raise RbpxError(_no_law_of_size(groups[0], request))
    for group in groups:
        if group.has_trainings and request.is_about(group.first.family):
            logging.getLogger(__name__).warning(_no_law_of_size(group, request))
    return of_size if request.frontier else [_checked(group) for group in of_size]


def select_alike(
    connection: duckdb.DuckDBPyConnection, request: Narrowing, cell_keys: Sequence[str] | None = None
) -> list[Group]:
    """Select all runs of a request, grouped by what they share, for questions that fit no law to a group.

    `checkpoints=last` keeps the last checkpoint of each training.
    """
    takes_last = request.checkpoints is Checkpoints.last
    groups = []
    for members in _grouped(select_runs(connection, request, cell_keys), takes_last):
        kept = last_of_each(members) if takes_last else members
        groups.append(Group(tuple(kept), request.ties or rule_of(kept[0].protocol), len(members) - len(kept)))
    return groups


def _no_law_of_size(group: Group, request: Narrowing) -> str:
    how = ""
    if len(last_of_each(group.runs)) < len(group.runs):
        how = f", or take the last checkpoint of each training: {typed(checkpoints='last')}"
    elif request.checkpoints is Checkpoints.last and not any(run.model or run.training_step for run in group.runs):
        how = "; checkpoints=last needs a column model or step, which says which rows are of one training"
    return (
        f"{group.title}: models of one size were trained on different numbers of tokens, and a law in S takes one run "
        f"per size; fit size and tokens together: {typed('surface', family=group.first.family)}, or along the tokens "
        f"of each size: {typed('fit', axis='D', family=group.first.family)}{how}"
    )


def select_runs(
    connection: duckdb.DuckDBPyConnection,
    request: Narrowing,
    cell_keys: Sequence[str] | None = None,
    plans: bool = False,
) -> list[Run]:
    """Select the runs of a request, ungrouped: the cells of a grid, or every matching run.

    With `plans`, rates without a value, which are of the plans of runs, are among them.

    Raises:
        RbpxError: the request names a model that is not a family, or counts parameters that are unknown or
            inconsistent.
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
        return _measured(connection, dict.fromkeys(_NARROWS), list(cell_keys))
    runs = _narrowed(connection, choices(request), request.ties)
    if not runs and request.dataset is not None and request.dataset.has_file_name:
        runs = _narrowed(connection, choices(request) | {"datasets": [UNNAMED]}, request.ties)
    return runs


def select_runs_on(connection: duckdb.DuckDBPyConnection, request: Narrowing, dataset: str) -> list[Run]:
    """Select the runs of a request on another text."""
    runs = _narrowed(connection, choices(request) | {"datasets": [dataset]}, request.ties)
    return [run for run in runs if not run.is_plan]


def choices(request: Narrowing) -> dict[str, list[str] | None]:
    """The names by which a request filters the runs of a store; None for all.

    Raises:
        RbpxError: the request names a model that is not a family.
    """
    model, dataset, protocol = request.model, request.dataset, request.protocol
    families = request.family
    names_states = model is not None and (model.revision, model.quantise, model.adapter) != (None, None, None)
    if model is not None and not (model.family is None and model.id is None and names_states):
        families = [*(families or []), family_name(request)]
    adapters = None if model is None else names_of("model.adapter", model.adapter)
    return {
        "sources": None if request.source is None else [request.source],
        "families": families,
        "sizes": request.size,
        "datasets": None if dataset is None else [dataset.name],
        "protocols": None if protocol is None else [protocol.name],
        "revisions": None if model is None else _revisions(model),
        "quantise": None if model is None or model.quantise is None else [model.quantise],
        "variants": request.variants if adapters is None else _variants(adapters, request.variants),
    }


def _variants(adapters: Sequence[str], wanted: Sequence[str] | None) -> list[Any]:
    """The variants that adapters give, None for the plain model, restricted to those requested."""
    return [each for each in variants_of(adapters).values() if wanted is None or each in wanted]


def _revisions(model: ModelConfig) -> list[str] | None:
    """The labels of the requested revisions; None for all, and where some models have no label."""
    labels = [] if model.revision is None else model.revisions()
    named = [label for label in labels if label is not None]
    return named if named and len(named) == len(labels) else None


def _narrowed(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], ties: Ties | None
) -> list[Run]:
    """The measured and imported runs that match the filters."""
    sources, quantise, variants = (choices[name] for name in ("sources", *_OF_RUNS))
    runs = _measured(connection, choices, None) if sources is None or MEASURED in sources else []
    if quantise is not None:
        runs = _rounded(runs, quantise)
    else:
        runs += _imported(connection, choices, ties)
    return runs if variants is None else [run for run in runs if run.variant in variants]


def _rounded(runs: Sequence[Run], kinds: Sequence[str]) -> list[Run]:
    """The runs with one of these quantisations."""
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


def _measured(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], cell_keys: list[str] | None
) -> list[Run]:
    narrowed = {name: value for name, value in choices.items() if name not in ("sources", *_OF_RUNS)}
    rows = ask_once(connection, "runs", **narrowed, cell_keys=cell_keys).to_pylist()
    whole = whole_runs(connection, [row["run_id"] for row in rows])
    rows = [row for row in rows if row["run_id"] in whole]
    return [Run((row["run_id"],), **{key: row[key] for key in row.keys() - {"run_id", "cell_key"}}) for row in rows]


def _imported(
    connection: duckdb.DuckDBPyConnection, choices: dict[str, list[str] | None], ties: Ties | None
) -> list[Run]:
    choices = {name: value for name, value in choices.items() if name not in _OF_RUNS}
    rows = ask_once(connection, "imported", **choices, ties=None if ties is None else ties.value).to_pylist()

    knobs = varied(rows[0]) if rows else []
    names = (*ALIKE, "size", "non_embedding_params", *OF_TRAINING)
    runs = []
    for members in grouped(rows, lambda row: tuple(str(row.get(name)) for name in (*names, *knobs))).values():
        first = members[0]
        agreed = {name: _one(row[name] for row in members) for name in (*_AGREED, *IMPORTED)}
        counts = {row["n_tokens"] for row in members if row["n"] == 1} - {None}
        items = [row for row in members if row["item"] is not None]
        facts = {name: first.get(name) for name in names} | {name: agreed[name] for name in _AGREED}
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
    """The value on which all rows agree; None where none has it, or they differ."""
    known = set(values) - {None}
    return known.pop() if len(known) == 1 else None


def _grouped(runs: Iterable[Run], states_are_alike: bool) -> list[list[Run]]:
    def alike(run: Run) -> tuple[str, ...]:
        known = replace(run, revision=None) if states_are_alike and is_state(run.revision) else run
        return tuple(str(getattr(known, name)) for name in ALIKE)

    ordered = sorted(runs, key=lambda r: (alike(r), r.non_embedding_params, r.training_seed or 0, r.size))
    return list(grouped(ordered, alike).values())


def _checked(group: Group) -> Group:
    for S, of_size in grouped(group.runs, lambda run: run.non_embedding_params).items():
        seeds = [run.training_seed for run in of_size]
        if len(seeds) > 1 and (None in seeds or len(set(seeds)) < len(seeds)):
            sizes = [run.size for run in of_size[:2]]
            first, second = sizes if len(set(sizes)) == 2 else (run.model or run.size for run in of_size[:2])
            raise RbpxError(
                f"family {group.first.family} has two models with S = {S:,} on {group.first.dataset}, {first} and "
                f"{second}; if they are trainings of one size, give each a training_seed (model.seed, or in the file "
                "of the family; nothing is measured again), else choose one of them with size=, or with where= as they "
                "are imported, or the best with frontier=true (fit, predict)"
            )
    return group


def family_name(request: Narrowing) -> str:
    """The family that a request names.

    Raises:
        RbpxError: the request names a model, not a family.
    """
    model = request.model
    if model is None or model.family is None:
        raise RbpxError("model=hub does not name a family of the store; name it with model.family=NAME")
    return model.family


def with_enough_sizes(groups: Sequence[Group], least: int) -> list[Group]:
    """Drop groups with too few sizes for a law where the same family has enough at another revision.

    Only the number of the dropped groups is reported.
    """

    def place(group: Group) -> tuple[str, ...]:
        return tuple(str(getattr(group.first, name)) for name in ALIKE if name not in ("revision", "variant"))

    has_law = {place(group): group for group in groups if group.n_sizes >= least}
    kept = [group for group in groups if group.n_sizes >= least or place(group) not in has_law]
    for where, group in has_law.items():
        n = sum(len(each.runs) for each in groups if place(each) == where and each.n_sizes < least)
        if n:
            logging.getLogger(__name__).warning(
                f"{group.title}: left out {number_of(n, 'checkpoint')} of revisions with fewer than {least} sizes; for "
                "laws along their tokens or compute add axis=D or axis=C, or ask surface"
            )
    return kept
