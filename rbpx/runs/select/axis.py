"""Selects points along one axis: the checkpoints of each size, or the best run of each compute budget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import duckdb

from rbpx.config.keys.runs import Narrowing
from rbpx.config.options import Checkpoints
from rbpx.errors import RbpxError, number_of
from rbpx.laws.names import Axis, SchedulePhase
from rbpx.runs.group import MEASURED, Group, Run
from rbpx.runs.select.schedules import placed
from rbpx.runs.select.sizes import in_groups, select_runs
from rbpx.runs.select.trainings import KNOWN_BY, TrainingGroup, group_of, of_one_kind, shared
from rbpx.status import Status

BUDGET: Final = 1.1  # runs whose FLOPs differ by less than this factor share a budget
_FEWEST: Final = 3  # minimum number of points of a law


@dataclass(frozen=True, eq=False)
class AlongGroup(TrainingGroup):
    """Runs of one family on one text in order of D, C or step, one for each size, revision and number of tokens.

    Along D and step all runs have one size and one training seed; along C each is the best of its budget.

    Attributes:
        beaten: runs left out because a run of at most as much compute has a lower loss.
        n_short: sizes left out because fewer than 3 of their points are known.
        model: the training, where others of its size have their own laws.
        is_frontier: whether the best run of each budget is found for each quantity separately.
    """

    axis: Axis = Axis.D
    beaten: tuple[Run, ...] = ()
    is_frontier: bool = False
    n_short: int = 0
    model: str | None = None

    def _titled(self, what: str) -> str:
        if self.axis is Axis.C:
            return super()._titled(what)
        seed = self.runs[0].training_seed
        size = f"{self.model or self.fixed_size}{'' if seed is None else f', seed {seed}'}"
        return super()._titled(what.replace(self.first.family, f"{self.first.family} {size}", 1))

    @property
    def asked(self) -> Sequence[Run]:
        """The runs, and the requested ones that they replaced."""
        return (*self.runs, *self.beaten)

    @property
    def fixed_size(self) -> str | None:
        """The size of all points; None along C."""
        return None if self.axis is Axis.C else self.runs[0].size

    def names(self) -> dict[str, Any]:
        """The columns in which all runs agree; along D and step also size, seed and `model`."""
        first = self.runs[0]
        of_size = {"size": first.size, "non_embedding_params": first.non_embedding_params}
        of_size |= {"training_seed": first.training_seed, "model": self.model}
        return super().names() | {"axis": self.axis.value} | ({} if self.axis is Axis.C else of_size)

    @property
    def doubts(self) -> tuple[Status, ...]:
        """Warnings that hold before anything is fitted."""
        return (Status.mixed,) if self.n_same or (self.axis is Axis.C and self.is_mixed) else ()

    @property
    def notes(self) -> list[str]:
        """Notes on what was computed, left out or chosen, a line each."""
        lines, computed = [], [run for run in self.runs if run.training_tokens is None]
        if self.axis is Axis.D and computed:
            lines.append(f"D = C / (6 S) for {number_of(len(computed), 'run')} whose tokens are not known.")
        without = [run for run in self.runs if run.training_flops is None]
        if self.axis is Axis.C and without:
            lines.append(f"C = 6 S D for {number_of(len(without), 'run')} whose FLOPs are not stated.")
        if self.axis is Axis.C and not self.is_frontier:
            lines.append(f"Best model of each budget: {len(self.runs)} of {number_of(len(self.asked), 'run')}.")
        elif self.axis is not Axis.C and self.n_unsure:
            lines.append(
                f"{self.n_unsure} of {number_of(len(self.runs), 'point')} are before the end of their training; in the "
                "middle of a schedule a loss lies above that of a finished run of as many tokens."
            )
        lines += super().notes
        if self.n_short:
            lines.append(
                f"Left out: {number_of(self.n_short, 'size')} with fewer than {_FEWEST} points along {self.axis}."
            )
        return lines


def select_along(
    connection: duckdb.DuckDBPyConnection,
    request: Narrowing,
    cell_keys: Sequence[str] | None = None,
    choose: bool = True,
    needs_law: bool = True,
) -> list[AlongGroup]:
    """Select the groups of a request along its axis (D, C or step) that have enough points for a law.

    A group has one run for each size, revision and number of tokens, alike in source, text, protocol, dtype and
    variant. Runs with the same weights are one point. `choose` keeps along C only the best run of each budget; without
    `needs_law` groups with fewer than 3 points stay.

    Raises:
        RbpxError: runs match, but no group has enough points.
    """
    axis, runs, fewest = request.along, select_runs(connection, request, cell_keys), _FEWEST if needs_law else 1
    groups: list[AlongGroup] = []
    n_short = 0
    for members in in_groups(runs, shared):
        of_sizes = [members] if axis is Axis.C else in_groups(members, _size)
        here = [_laws(of, request) for of in of_sizes]
        chosen = [best_of_budgets(group) if axis is Axis.C and choose else group for of in here for group in of]
        long = [group for group in chosen if group.n_sizes >= fewest]
        n_left_out = sum(max(len(of), 1) for of in here) - len(long)
        n_short += n_left_out
        groups += [replace(group, n_short=n_left_out) if axis is not Axis.C else group for group in long]
    if runs and not groups:
        raise RbpxError(
            f"no {'family' if axis is Axis.C else 'size'} has {number_of(fewest, 'run')} or checkpoints with known and "
            f"different {KNOWN_BY[axis]} ({number_of(len(runs), 'run')} in store={request.store} "
            f"match{_decaying(runs)}); "
            f"{'drop checkpoints=last, ' if request.checkpoints is Checkpoints.last else ''}measure more "
            "(model.revision=all), say what is known (model.tokens=N), or import a table with a column "
            f"{axis} (python -m rbpx import)"
        )
    return of_one_kind(groups) if axis is Axis.C else groups


def _decaying(runs: Sequence[Run]) -> str:
    n = sum(run.place is SchedulePhase.middle for members in in_groups(runs, shared) for run in placed(members))
    return f", {n} of them in the middle of a decay of their rate, no points of a law" if n else ""


def _size(run: Run) -> tuple[float, str, int]:
    return run.non_embedding_params, run.size, -1 if run.training_seed is None else run.training_seed


def _laws(runs: Sequence[Run], request: Narrowing) -> list[AlongGroup]:
    """Split the runs of one size by training where each training deserves its own law.

    Final models with different tokens are points of one law, whatever their names. A training gets its own law if it
    has enough points for one, or if two trainings have the same number of tokens.
    """
    whole = _group(runs, request)
    named = {run.model for run in runs if run.source != MEASURED}
    if whole is None or request.along is Axis.C or len(named) < 2:
        return [] if whole is None else [whole]
    places = in_groups(whole.runs, lambda run: str(run.model))
    if whole.n_sizes == len(whole.runs) and all(len(of) < _FEWEST for of in places):
        return [whole]
    each = [_group([run for run in runs if run.model == model], request) for model in sorted(named, key=str)]
    return [replace(group, model=group.runs[0].model) for group in each if group is not None]


def _group(runs: Sequence[Run], request: Narrowing) -> AlongGroup | None:
    on_axis = [replace(run, axis=request.along) for run in placed(runs)]
    group = group_of(on_axis, lambda run: run.x, request, 1 if request.checkpoints is Checkpoints.last else None)
    if group is None:
        return None
    ordered = sorted(group.runs, key=lambda run: (run.x or 0.0, *_size(run), str(run.revision)))
    return AlongGroup(**vars(group) | {"runs": tuple(ordered), "axis": request.along, "is_frontier": request.frontier})


def best_of_budgets(group: AlongGroup, *others: Group) -> AlongGroup:
    """Keep the runs along C that no run of at most as much compute beats; FLOPs within 10 % are one budget.

    `others` are the same runs on other texts, in the same order; the product of the losses then decides.
    """
    losses = [1.0] * len(group.runs)
    for each in (group, *others):
        losses = [product * loss for product, loss in zip(losses, _losses(each.runs), strict=True)]
    places = [run.x or 0.0 for run in group.runs]
    is_best = unbeaten(losses, places)
    kept, beaten = (
        tuple(run for run, is_kept in zip(group.runs, is_best, strict=True) if is_kept is wanted)
        for wanted in (True, False)
    )
    return replace(group, runs=kept, beaten=beaten)


def unbeaten(losses: Sequence[float], places: Sequence[float]) -> list[bool]:
    """Mask of the losses that no loss of at most as much compute beats; places within 10 % are one budget."""
    both = list(zip(losses, places, strict=True))
    return [not any(other < loss and at <= BUDGET * place for other, at in both) for loss, place in both]


def best_in_both(one: Group, other: Group) -> tuple[AlongGroup, AlongGroup]:
    """The best run of each budget by the product of its losses on two texts."""
    assert isinstance(one, AlongGroup)
    assert isinstance(other, AlongGroup)
    best = best_of_budgets(one, other)
    chosen = {run.training for run in best.runs}
    runs, beaten = (tuple(run for run in other.runs if (run.training in chosen) is wanted) for wanted in (True, False))
    return best, replace(other, runs=runs, beaten=beaten)


def _losses(runs: Sequence[Run]) -> list[float]:
    """The quantity that ranks runs: cross-entropy, else bits per byte, else the share of misses at the smallest k."""
    by_quantity: list[list[float | None]] = [
        [run.cross_entropy_nats for run in runs],
        [run.imported.get("bits_per_byte") for run in runs],
        [None if (share := run.imported.get("accuracy")) is None else 1 - share for run in runs],
    ]
    ks = sorted({at for run in runs for at in run.observed})
    by_quantity += [[None if (share := run.observed.get(at)) is None else 1 - share for run in runs] for at in ks]
    for values in by_quantity:
        known = [value for value in values if value is not None]
        if len(known) == len(runs):
            return known
    raise RbpxError(
        f"the best model of each budget of family {runs[0].family} on {runs[0].dataset} cannot be chosen: no loss is "
        "known for all of its runs; narrow them, or import one"
    )
