"""The 95 % interval of the R2 of a law, from its value and the number of sizes."""

import numpy as np
from scipy.special import gammaincinv, ncfdtr

from rbpx.laws.interval import LEVEL
from rbpx.laws.roots import roots

__all__ = ["r2_interval"]


def r2_interval(r2: float, n: int) -> tuple[float, float]:
    """95 % interval of the R2 that the law has over all models of these sizes, from a regression on n sizes.

    F = (n - 2) R2 / (1 - R2) is noncentral F with 1 and n - 2 degrees of freedom and noncentrality
    n R2_true / (1 - R2_true), exact for normal scatter of equal size. Where F is beyond a million its numerator is as
    good as certain, and F is the noncentrality over chi^2 / dof.

    Args:
        r2: of the regression, in [0, 1).
        n: number of sizes, above 2.
    """
    F, dof = (n - 2) * r2 / (1 - r2), n - 2
    if F > 1e6:
        lo, hi = (F / dof * 2 * float(gammaincinv(dof / 2, q)) for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        return lo / (lo + n), hi / (hi + n)

    tails = np.array([(1 + LEVEL) / 2, (1 - LEVEL) / 2])
    some = tails < ncfdtr(1, dof, 0.0, F)  # else even no noncentrality at all leaves F below its quantile
    high = max(F, 1.0)
    while ncfdtr(1, dof, high, F) > tails[1]:
        high *= 2
    noncentrality = np.zeros(2)
    noncentrality[some] = roots(
        lambda nc: ncfdtr(1, dof, nc, F) - tails[some], np.zeros(some.sum()), np.full(some.sum(), high), 0.0
    )
    lo, hi = (noncentrality / (noncentrality + n)).tolist()
    return lo, hi
