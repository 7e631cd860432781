"""The 95 % interval of the R2 of a law, from its value and the number of sizes; those of many laws at once.

Shapes: L laws.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import gammaincinv, ncfdtr

from rbpx.laws.arrays import Floats
from rbpx.laws.interval import LEVEL
from rbpx.laws.roots import roots
from rbpx.laws.side_by_side import Problem

_TAILS: Final = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
_NUMERATOR_CERTAIN: Final = 1e6


@dataclass(frozen=True)
class R2(Problem):
    """The R2 of a regression, whose interval is wanted.

    Attributes:
        value: in [0, 1).
        n: number of sizes, above 2.
    """

    value: float
    n: int

    def kind(self) -> Hashable:
        """All are alike."""
        return None

    @staticmethod
    def solve(alike: Sequence["R2"]) -> list[tuple[float, float]]:
        """The interval of each, that of `r2_interval`."""
        value_L, n_L = np.array([(each.value, each.n) for each in alike], dtype=np.float64).T
        dof_L = n_L - 2
        F_L = dof_L * value_L / (1 - value_L)
        lo_hi_2L = np.empty((2, len(alike)))
        certain_L = F_L > _NUMERATOR_CERTAIN
        for end, tail in enumerate(_TAILS):
            by_dof_L = 2 * gammaincinv(dof_L[certain_L] / 2, tail) / dof_L[certain_L]
            lo_hi_2L[end, certain_L] = F_L[certain_L] * by_dof_L
            lo_hi_2L[end, ~certain_L] = _noncentrality(F_L[~certain_L], dof_L[~certain_L], 1 - tail)
        lo_hi_2L /= lo_hi_2L + n_L
        return [(lo, hi) for lo, hi in lo_hi_2L.T.tolist()]


def _noncentrality(F_L: Floats, dof_L: Floats, tail: float) -> Floats:
    """The noncentrality of which F has this probability of being at most as large; 0 where none is."""
    found_L, high_L = np.zeros(len(F_L)), np.maximum(F_L, 1.0)
    some_L = tail < ncfdtr(1, dof_L, 0.0, F_L)  # else even no noncentrality at all leaves F below its quantile
    while (low_L := ncfdtr(1, dof_L, high_L, F_L) > tail).any():
        high_L[low_L] *= 2
    F_L, dof_L = F_L[some_L], dof_L[some_L]
    found_L[some_L] = roots(lambda nc_L: ncfdtr(1, dof_L, nc_L, F_L) - tail, np.zeros(len(F_L)), high_L[some_L], 0.0)
    return found_L


def r2_interval(r2: float, n: int) -> tuple[float, float]:
    """95 % interval of the R2 that the law has over all models of these sizes, from a regression on n sizes.

    F = (n - 2) R2 / (1 - R2) is noncentral F with 1 and n - 2 degrees of freedom and noncentrality
    n R2_true / (1 - R2_true), exact for normal scatter of equal size. Where F is beyond a million its numerator is as
    good as certain, and F is the noncentrality over chi^2 / dof.

    Args:
        r2: of the regression, in [0, 1).
        n: number of sizes, above 2.
    """
    (ends,) = R2.solve([R2(r2, n)])
    return ends
