"""Computes differences of a run or a law between two measurements of the same documents, with intervals.

Both sides use the same resampled documents, so shared variation cancels. Shapes: N sizes, B replicates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw
from rbpx.runs.fits import fit_points, power_law_of
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Evidence, Points

LawAtK = tuple[str, int | None]
"""A law and its k."""


@dataclass(frozen=True)
class BeforeAfter:
    """A quantity before and after a change; the difference is after minus before."""

    before: float
    after: float
    difference: Estimate


@dataclass(frozen=True, eq=False)
class LawShift:
    """One law in S before and after.

    The difference is the law of the ratio after / before, whose exponent is the difference of the exponents, since
    least squares are linear in ln y.
    """

    law: str
    k: int | None
    before: PowerLaw
    after: PowerLaw
    difference: PowerLaw


def shift_law(group: Group, before: Points, after: Points) -> LawShift:
    """The change of one law at the same sizes and documents."""
    fits = [fit_points(points, Method.ols).fit for points in (before, after)]
    return LawShift(before.law, before.k, fits[0], fits[1], power_law_of(group, after.over(before)))


def places(k_grid: Sequence[int]) -> dict[LawAtK, tuple[int, ...]]:
    """The index of RBP at each k, then of cross-entropy, in the evidence on a run."""
    return {**{("rbp", k): (at,) for at, k in enumerate(k_grid)}, ("cross_entropy", None): ()}


def shifts_of_run(
    before: Evidence, after: Evidence, k_grid: Sequence[int], n_effective: float
) -> dict[LawAtK, BeforeAfter]:
    """The changes of one run: of RBP (shares) at each k, then of cross-entropy (nats)."""
    shifts = {}
    for (law, k), at in places(k_grid).items():
        values = [float(each.measured[law][at]) for each in (before, after)]
        replicates = [each.replicates[law].T[at].T for each in (before, after)]
        shifts[law, k] = shift(values[0], values[1], replicates[0], replicates[1], n_effective)
    return shifts


def shift(before: float, after: float, before_B: Floats, after_B: Floats, n_effective: float) -> BeforeAfter:
    """The difference of a quantity with its interval (recipe `expanded`), from replicates [B] with the same documents.

    No interval where no replicate differs: the documents then say nothing about the frequency of rarer changes.
    """
    difference_B = after_B - before_B
    difference = estimate(after - before, difference_B, n_effective, Recipe.expanded)
    if not np.any(difference_B[np.isfinite(difference_B)] != 0):
        difference = Estimate(difference.value)
    return BeforeAfter(before, after, difference)
