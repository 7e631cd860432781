"""Averages exponents over families and texts, with an interval over both and over models.

Shapes: P pairs of a family and a text, B bootstrap replicates, M points of all pairs, G clusters.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from rbpx.laws.families.series import fit_series
from rbpx.laws.intervals.estimate import Estimate, around, half_width, student_t
from rbpx.laws.intervals.lack_of_fit import Whole, stack_families
from rbpx.laws.numeric import Floats
from rbpx.runs.points.sizes import Points

_ROUNDING: Final = 1e-9  # of a degree of freedom


def mean_over(
    value_P: Sequence[float],
    families: Sequence[Hashable],
    texts: Sequence[Hashable],
    points: Sequence[Points | None] = (),
) -> Estimate:
    """Returns the mean over P pairs of a family and a text, with a 95 % interval over families, texts and models.

    Errors are correlated within a family and within a text: two-way clusters. The variance is V_family + V_text -
    V_pair, each times G / (G - 1) for its G clusters, and at least the larger of the first two. Student's t has the
    smaller number of clusters minus 1 degrees of freedom. A dimension with one cluster is left out, so one family and
    one text give no interval. `_in_common` adds what all pairs have in common.

    Source: A. C. Cameron, J. B. Gelbach, D. L. Miller, Robust Inference with Multiway Clustering, JBES 29, 2011.

    Args:
        value_P: the exponents.
        families: of each.
        texts: of each.
        points: with the exponents; None for published slopes, for which a single family has no interval, since the
            error that its models share over texts is unknown.
    """
    value = np.asarray(value_P, dtype=np.float64)
    mean, known = float(value.mean()), [each for each in points if each is not None]
    numbers = [np.unique(list(map(str, labels)), return_inverse=True)[1] for labels in (families, texts)]
    ways = [number_P for number_P in numbers if number_P.max() > 0]
    if not ways or (len(known) < len(value) and numbers[0].max() == 0):
        return Estimate(mean)
    variances = [_clustered(value - mean, number_P) for number_P in ways]
    variance = max(variances)
    if len(ways) == 2:
        variance = max(sum(variances) - _clustered(value - mean, np.arange(len(value))), variance)
    squared = student_t(min(int(number_P.max()) for number_P in ways)) ** 2 * variance
    if len(known) == len(value):
        squared += _in_common(known, ways, numbers[1].max() == 0)
    return Estimate(mean, *around(mean, squared**0.5))


def _in_common(points: Sequence[Points], ways: Sequence[Whole], one_text: bool) -> float:
    """Squared half width of the mean exponent by errors that all pairs share.

    A model's deviation from its law recurs on other texts, and in other families at its size. Its variance tau^2 is
    r'Ar over the expectation of r'Ar at tau^2 = 1, for residuals at one size in pairs that differ in both dimensions;
    Student's t has Satterthwaite's degrees of freedom: N - 2 where all pairs have the same N sizes. A single text adds
    its documents.
    """
    n_effective = points[0].n_effective
    sizes, values, drawn = ([getattr(each, name) for each in points] for name in ("S_N", "y_N", "y_BN"))
    law = fit_series(stacked := stack_families(sizes, values, drawn, n_effective), n_alpha=len(points))
    L_PM, same_MM, pair_M = np.linalg.pinv(law.jacobian_MP), stacked.same_size_MM, stacked.family_M
    influence_M, rest_MM = L_PM[len(points) :].mean(axis=0), np.eye(len(pair_M)) - law.jacobian_MP @ L_PM
    apart_MM = same_MM * np.logical_and.reduce([of[pair_M][:, None] != of[pair_M] for of in ways])
    spread_MM = apart_MM @ rest_MM @ same_MM @ rest_MM
    expected, squared = float(np.trace(spread_MM)), 0.0
    if expected > _ROUNDING:
        tau2 = max(float(law.residual_M @ apart_MM @ law.residual_M) / expected, 0.0)
        dof = expected**2 / float(np.sum(spread_MM * spread_MM.T))
        squared = student_t(dof) ** 2 * tau2 * float(influence_M @ same_MM @ influence_M)
    if one_text and stacked.change_BM is not None:
        shared = float((stacked.change_BM @ influence_M).var(ddof=1))
        squared += half_width(shared, n_effective=n_effective) ** 2
    return squared


def _clustered(off_P: Floats, number_P: Whole) -> float:
    """Variance of the mean with errors correlated within clusters, given the cluster of each."""
    sums_G = np.bincount(number_P, off_P)
    return float(sums_G @ sums_G) * len(sums_G) / (len(sums_G) - 1) / len(off_P) ** 2
