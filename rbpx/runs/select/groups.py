"""Selects the groups of a question: by size, along an axis, or whole trainings in size and tokens. Texts never mix.

Each takes a connection, a request and the cells of a grid (None for all runs that match the request).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import duckdb

from rbpx.config.keys.runs import Narrowing
from rbpx.config.model.training import is_raw
from rbpx.config.options import Checkpoints
from rbpx.errors import RbpxError, number_of
from rbpx.laws.names import Axis, OnText, SchedulePhase
from rbpx.runs.group import FEWEST, KNOWN_BY, By, Group, LeftOut
from rbpx.runs.run import (
    ALIKE,
    MEASURED,
    Run,
    grouped,
    in_groups,
    is_state,
    last_of_each,
    named,
    tokens_of,
    training_of,
)
from rbpx.runs.schedules import placed, points_of, said_of_underway, underway
from rbpx.runs.select.budgets import best_of_budgets
from rbpx.runs.select.stored import select_runs
from rbpx.spelling import typed
from rbpx.ties import rule_of

Cells = Sequence[str] | None
_SHARED: Final = tuple(name for name in ALIKE if name != "revision")


def select(
    connection: duckdb.DuckDBPyConnection,
    request: Narrowing,
    cells: Cells = None,
    *,
    by: By = By.axis,
    sizes: int = 1,
    needs_law: bool = True,
    best_of_budget: bool = True,
    needs_tokens: bool = True,
) -> list[Group]:
    """Select the groups of a request.

    Checkpoints with fewer `sizes` than a law needs are dropped where a family has enough. `needs_law` leaves out groups
    without a law in one variable, `best_of_budget` keeps the best run of each budget along C alone. By training,
    `needs_tokens` leaves out trainings with unknown tokens, and `last=` averages.

    Raises:
        RbpxError: the request has an axis that the verb does not have, or its runs cannot be combined.
    """
    axis = request.axis
    if axis is Axis.S:
        if by is By.training:
            trainings = select_trainings(connection, request, cells, needs_tokens)
            if not trainings and (runs := select_runs(connection, request, cells, plans=True)):
                raise RbpxError(_no_trainings(runs, request.store))
            return trainings
        groups = _by_size(connection, request, cells, needs_law)
        return _with_enough_sizes(groups, sizes) if sizes >= FEWEST else groups
    if isinstance(axis, OnText):
        raise RbpxError(
            f"axis={axis.value} is asked of predict alone: {typed('predict', axis=axis.value)} tells what models show "
            f"from what they show on {axis.dataset}"
        )
    if by is not By.axis:
        raise RbpxError(f"axis={axis.value} is not for this verb; drop it, or ask fit, whose laws are in any")
    return _along(connection, request, cells, best_of_budget and not request.frontier, needs_law)


def select_alike(connection: duckdb.DuckDBPyConnection, request: Narrowing, cells: Cells = None) -> list[Group]:
    """Select all runs of a request, grouped by what they share, for questions that fit no law to a group."""
    takes_last = request.checkpoints is Checkpoints.last

    def alike(run: Run) -> tuple[str, ...]:
        return named(replace(run, revision=None) if takes_last and is_state(run.revision) else run, ALIKE)

    def place(run: Run) -> tuple[Any, ...]:
        return alike(run), run.non_embedding_params, run.training_seed or 0, run.size

    runs = sorted(select_runs(connection, request, cells), key=place)
    groups = [group_of(of, request, By.size) for of in grouped(runs, alike).values()]
    return [group for group in groups if group is not None]


def _by_size(connection: duckdb.DuckDBPyConnection, request: Narrowing, cells: Cells, needs_law: bool) -> list[Group]:
    """One run for each size, or replicates; with `needs_law` no models of one size with different training tokens."""
    groups = select_alike(connection, request, cells)
    if not needs_law:
        return [group if group.has_trainings or request.frontier else _checked(group) for group in groups]
    of_size = [group for group in groups if not group.has_trainings]
    if groups and not of_size:
        raise RbpxError(_no_law_of_size(groups[0], request))
    without = [group for group in groups if group.has_trainings and request.is_about(group.first.family)]
    every = select_runs(connection, request, cells, plans=True) if without else []
    running = {training_of(states[0]) for states in underway(every)}
    for group in without:
        trainings = {training_of(run) for run in group.runs}
        told = f"{group.title}: {said_of_underway(len(trainings), group.first.source)}"
        logging.getLogger(__name__).warning(told if trainings <= running else _no_law_of_size(group, request))
    return of_size if request.frontier else [_checked(group) for group in of_size]


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


def _with_enough_sizes(groups: Sequence[Group], least: int) -> list[Group]:
    """Drop groups with too few sizes for a law where the same family has enough at another revision."""
    has_law = {_beside(group): group for group in groups if group.n_sizes >= least}
    kept = [group for group in groups if group.n_sizes >= least or _beside(group) not in has_law]
    for where, group in has_law.items():
        n = sum(len(each.runs) for each in groups if _beside(each) == where and each.n_sizes < least)
        if n:
            logging.getLogger(__name__).warning(
                f"{group.title}: left out {number_of(n, 'checkpoint')} of revisions with fewer than {least} sizes; for "
                "laws along their tokens or compute add axis=D or axis=C, or ask surface"
            )
    return kept


def _along(
    connection: duckdb.DuckDBPyConnection, request: Narrowing, cells: Cells, takes_best: bool, needs_law: bool
) -> list[Group]:
    """One run for each size, revision and number of tokens, in order of D, C or step."""
    axis, runs, fewest = request.along, select_runs(connection, request, cells), FEWEST if needs_law else 1
    groups: list[Group] = []
    for members in in_groups(runs, shared):
        of_sizes = [members] if axis is Axis.C else in_groups(members, _size)
        here = [_laws(of, request) for of in of_sizes]
        chosen = [best_of_budgets(group) if axis is Axis.C and takes_best else group for of in here for group in of]
        long = [group for group in chosen if group.n_sizes >= fewest]
        n_short = 0 if axis is Axis.C else sum(max(len(of), 1) for of in here) - len(long)
        groups += [replace(group, n_short=n_short) for group in long]
    if runs and not groups:
        raise RbpxError(
            f"no {'family' if axis is Axis.C else 'size'} has {number_of(fewest, 'run')} or checkpoints with known and "
            f"different {KNOWN_BY[axis]} ({number_of(len(runs), 'run')} in store={request.store} "
            f"match{_decaying(runs)}); "
            f"{'drop checkpoints=last, ' if request.checkpoints is Checkpoints.last else ''}measure more "
            "(model.revision=all), say what is known (model.tokens=N), or import a table with a column "
            f"{axis} (python -m rbpx import)"
        )
    return _of_one_kind(groups) if axis is Axis.C else groups


def _decaying(runs: Sequence[Run]) -> str:
    n = sum(run.place is SchedulePhase.middle for members in in_groups(runs, shared) for run in placed(members))
    return f", {n} of them in the middle of a decay of their rate, no points of a law" if n else ""


def _laws(runs: Sequence[Run], request: Narrowing) -> list[Group]:
    """Split the runs of one size by training where each training deserves its own law.

    Final models with different tokens are points of one law, whatever their names. A training gets its own law if it
    has enough points for one, or if two trainings have the same number of tokens.
    """
    whole = _on_axis(runs, request)
    named = {run.model for run in runs if run.source != MEASURED}
    if whole is None or request.along is Axis.C or len(named) < 2:
        return [] if whole is None else [whole]
    places = in_groups(whole.runs, lambda run: str(run.model))
    if whole.n_sizes == len(whole.runs) and all(len(of) < FEWEST for of in places):
        return [whole]
    each = [_on_axis([run for run in runs if run.model == model], request) for model in sorted(named, key=str)]
    return [replace(group, model=group.runs[0].model) for group in each if group is not None]


def _on_axis(runs: Sequence[Run], request: Narrowing) -> Group | None:
    on_axis = [replace(run, axis=request.along) for run in placed(runs)]
    on_axis.sort(key=lambda run: (run.x or 0.0, *_size(run), str(run.revision)))
    group = group_of(on_axis, request, By.axis, lambda run: run.x)
    return None if group is None else replace(group, is_frontier=request.frontier)


def select_trainings(
    connection: duckdb.DuckDBPyConnection, request: Narrowing, cells: Cells = None, needs_tokens: bool = True
) -> list[Group]:
    """Select all trainings of each family, whatever the axis of the request."""

    def place(run: Run) -> tuple[Any, ...]:
        return run.non_embedding_params, tokens_of(run) or 0.0, run.training_seed or 0, run.size, str(run.revision)

    groups, n_averaged = list[Group](), request.last if needs_tokens else None
    for members in in_groups(select_runs(connection, request, cells, plans=True), shared):
        runs = sorted((run for run in placed(members) if not run.is_plan), key=place)
        group = group_of(runs, request, By.training, tokens_of, needs_tokens, n_averaged)
        if group is not None:
            n_underway = len(underway(members)) if needs_tokens else 0
            groups.append(replace(group, averaged=n_averaged, n_underway=n_underway))
    return _of_one_kind(groups)


def _no_trainings(runs: Sequence[Run], store: str) -> str:
    if n := len(underway(runs)):
        return f"no run that matches has finished; {said_of_underway(n, runs[0].source)}"
    return (
        f"this needs the training tokens D of each run, and no run in store={store} that matches has them, or FLOPs to "
        "compute them from; measure with model.tokens=N, or import a table with a column D (python -m rbpx import)"
    )


def group_of(
    runs: Sequence[Run],
    request: Narrowing,
    by: By,
    progress: Callable[[Run], float | None] | None = None,
    is_known: bool = True,
    n_last: int | None = None,
) -> Group | None:
    """Build the group of the runs that are points, counting those left out by reason; None without any.

    `progress` says how far each was trained, 0 for untrained, which is no point; with `is_known` neither are runs whose
    progress is unknown nor checkpoints in the middle of a decay. `n_last` of the last checkpoints of each training
    are kept, one with `checkpoints=last`, else all.
    """
    at, is_known = progress or (lambda run: 1.0), is_known and progress is not None
    known = [run for run in runs if not is_known or at(run) is not None]
    trained = [run for run in known if at(run) != 0]
    of_weights: dict[Any, Run] = {}  # the released model of each, else the one trained furthest
    for run in sorted(trained, key=lambda run: (run.revision not in (None, "main"), -(tokens_of(run) or 0.0))):
        of_weights.setdefault(_of_weights(run), run)
    once = [run for run in trained if of_weights[_of_weights(run)] is run]
    points, of_places = points_of(once) if is_known else (once, {})
    n_last = n_last or (1 if request.checkpoints is Checkpoints.last else None)
    kept = points if n_last is None else last_of_each(points, n_last)
    if not kept:
        return None
    counts = {
        LeftOut.earlier: len(points) - len(kept),
        LeftOut.same: len(trained) - len(once),
        LeftOut.unknown: len(runs) - len(known),
        LeftOut.untrained: len(known) - len(trained),
    }
    ties = request.ties or rule_of(kept[0].protocol)
    return Group(tuple(kept), ties, by, {why: n for why, n in counts.items() if n}, of_places)


def _of_one_kind(groups: Sequence[Group]) -> list[Group]:
    """Drop groups of raw checkpoints where the same family and text has finished models, whose losses are lower."""
    raw = [is_raw(group.first.variant) for group in groups]
    finished = {_beside(group) for group, is_so in zip(groups, raw, strict=True) if not is_so}
    n_raw: dict[tuple[str, ...], int] = {}
    for group, is_so in zip(groups, raw, strict=True):
        n_raw[_beside(group)] = n_raw.get(_beside(group), 0) + is_so * len(group.runs)
    return [
        group
        if is_so or not n_raw[_beside(group)]
        else replace(group, left_out={**group.left_out, LeftOut.raw: n_raw[_beside(group)]})
        for group, is_so in zip(groups, raw, strict=True)
        if not is_so or _beside(group) not in finished
    ]


def shared(run: Run) -> tuple[str, ...]:
    """The key that the runs of one group share, whatever their revision."""
    return named(run, _SHARED)


def _beside(group: Group) -> tuple[str, ...]:
    return named(group.first, [name for name in _SHARED if name != "variant"])


def _size(run: Run) -> tuple[float, str, int]:
    return run.non_embedding_params, run.size, -1 if run.training_seed is None else run.training_seed


def _of_weights(run: Run) -> tuple[Any, ...]:
    """Imported rows, whose id is that of a file, use their names."""
    if run.source == MEASURED:
        return run.run_ids
    return run.run_ids, *training_of(run), tokens_of(run), run.training_step, run.revision, run.x
