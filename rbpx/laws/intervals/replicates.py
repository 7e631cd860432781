"""Misfit told apart from scatter, by models of one size that were trained more than once.

Trainings of one shape differ by what training scatters (pure error). What they have in common beyond the law is an
effect of that size: the law is wrong there, or the shape is. Own constants and exponents are taken off first, so that
families whose laws differ still replicate each other's sizes.

Shapes: F families, M points, P and Q columns, G sizes.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import fdtrc

from rbpx.laws.intervals.lack_of_fit import is_rounding
from rbpx.laws.intervals.stacked import Stacked
from rbpx.laws.numeric.arrays import Floats

_FEWEST_SHARED: Final = 4  # sizes; three residuals about a line are always proportional


@dataclass(frozen=True)
class NestedTest:
    """The F test of a model within a larger one.

    Attributes:
        F: mean square that the larger one explains more, over the mean square that it leaves.
        dof: degrees of freedom of the former.
        dof_rest: of the latter.
        p: Pr(F or more) if the smaller model holds.
        sd_about: standard deviation of the points about the smaller model.
        sd_rest: about the larger one.
    """

    F: float
    dof: int
    dof_rest: int
    p: float
    sd_about: float
    sd_rest: float


def lack_of_fit_test(points: Stacked, own_MQ: Floats, residual_M: Floats) -> NestedTest | None:
    """Whether sizes have effects beyond the laws: F = lack of fit / pure error.

    Pure error is what trainings of one size differ by; a size that was trained once tells of the lack of fit alone.

    Args:
        points: of all families, of which two may share a size, or one have it more than once.
        own_MQ: derivatives of ln y with a constant and an exponent for each family, and what they share beside.
        residual_M: about any law within the span of these.

    Returns:
        The test, its `sd_rest` the pure error of one model; None where no sizes are trained often enough, or where the
        families are equal to within rounding, which are not two trainings.

    Source:
        N. R. Draper and H. Smith, Applied Regression Analysis, 3rd ed. (1998), section 2.2.
    """
    return _nested(points, own_MQ, np.column_stack([own_MQ, points.of_size_MG]), residual_M)


def exponents_test(points: Stacked, shared_MP: Floats, own_MQ: Floats, residual_M: Floats) -> NestedTest | None:
    """Whether the exponents of the families differ.

    Families are compared at the sizes that they share, so that an effect of a size, which all have in common, is no
    difference and no error (exact whatever the correlation). Where they share too few, residuals count as independent.
    """
    sizes_MG = points.of_shared_size_MG
    wanted = _rank(own_MQ) - _rank(shared_MP)
    small_MP, large_MQ = (np.column_stack([J, sizes_MG]) for J in (shared_MP, own_MQ))
    paired = _nested(points, small_MP, large_MQ, residual_M)
    if paired is not None and paired.dof == wanted:
        return paired
    return _nested(points, shared_MP, own_MQ, residual_M)


def correlations(points: Stacked, residual_M: Floats) -> list[list[float | None]]:
    """Correlation of the residuals of each two families over the sizes that both have; None for fewer than 4 of them.

    Models of one size and family count by their mean. Residuals are about 0 already, so it is sum r s / sqrt(sum r^2
    sum s^2).
    """
    families = range(points.n_families)
    by_size = [
        {
            int(size): float(residual_M[(points.family_M == f) & (points.size_M == size)].mean())
            for size in np.unique(points.size_M[points.family_M == f])
        }
        for f in families
    ]
    return [[_correlation(by_size[f], by_size[g]) for g in families] for f in families]


def effective_families(matrix_FF: list[list[float | None]]) -> tuple[float | None, float | None]:
    """Mean correlation of pairs rho, and how many independent families they are worth, F / (1 + (F - 1) rho).

    A mean below 0 counts as 0. Both None where no pair has a correlation.
    """
    n = len(matrix_FF)
    pairs = [value for f in range(n) for value in matrix_FF[f][:f] if value is not None]
    if not pairs:
        return None, None
    mean = float(np.mean(pairs))
    return mean, n / (1 + (n - 1) * max(mean, 0.0))


def _correlation(one: dict[int, float], other: dict[int, float]) -> float | None:
    shared = sorted(one.keys() & other.keys())
    if len(shared) < _FEWEST_SHARED:
        return None
    a, b = (np.array([each[size] for size in shared]) for each in (one, other))
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.clip(a @ b / length, -1, 1)) if length > 0 else None


def _nested(points: Stacked, small_MP: Floats, large_MQ: Floats, residual_M: Floats) -> NestedTest | None:
    n, n_small, n_large = len(residual_M), _rank(small_MP), _rank(large_MQ)
    if n_large == n_small or n_large >= n:
        return None
    left_small, left_large = (residual_M - J @ (np.linalg.pinv(J) @ residual_M) for J in (small_MP, large_MQ))
    rest = float(left_large @ left_large)
    if is_rounding(left_large, points.ln_y_M):
        return None
    step = max(float(left_small @ left_small) - rest, 0.0)
    dof, dof_rest = n_large - n_small, n - n_large
    F = (step / dof) / (rest / dof_rest)
    about = ((step + rest) / (dof + dof_rest)) ** 0.5
    return NestedTest(F, dof, dof_rest, float(fdtrc(dof, dof_rest, F)), about, (rest / dof_rest) ** 0.5)


def _rank(J_MP: Floats) -> int:
    return int(np.linalg.matrix_rank(J_MP))
