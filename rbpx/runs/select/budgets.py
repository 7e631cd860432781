"""Keeps the best run of each compute budget."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rbpx.errors import RbpxError
from rbpx.runs.group import Group
from rbpx.runs.run import Run

BUDGET: Final = 1.1  # runs whose FLOPs differ by less than this factor share a budget


def best_of_budgets(group: Group, *others: Group) -> Group:
    """Keep the `unbeaten` runs along C.

    With the same runs on other texts, in the same order, the product of the losses decides.
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


def best_in_both(one: Group, other: Group) -> tuple[Group, Group]:
    """The best run of each budget by the product of its losses on two texts."""
    best = best_of_budgets(one, other)
    chosen = {run.training for run in best.runs}
    runs, beaten = (tuple(run for run in other.runs if (run.training in chosen) is wanted) for wanted in (True, False))
    return best, replace(other, runs=runs, beaten=beaten)


def _losses(runs: Sequence[Run]) -> list[float]:
    """Cross-entropy, else bits per byte, else the share of misses at the smallest k."""
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
