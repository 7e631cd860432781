"""What a tenfold k is worth in model size, from the law in k and the law in S of one quantity.

At constant y, dS/S = -(alpha_k / alpha_S) dk/k. Source: RBP paper (arXiv 2510.20387), appendix B.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, around, few_documents, half_width
from rbpx.laws.numeric import Floats, exp_or_none, line
from rbpx.laws.power.law import PowerLaw

STEP: Final = 10  # the k of the smaller model whose score a larger one is to reach at k = 1
_LN_STEP: Final = (0.0, math.log(STEP))


@dataclass(frozen=True)
class Exchange:
    """What a tenfold k is worth in size, at one model.

    Attributes:
        rate: -d ln S / d ln k at constant RBP, alpha_k / alpha_S at k = 1, or from 1 to 10 where the law in k bends.
        factor: how many times larger a model scores at k = 1 what this one scores at k = 10, with its 95 % interval.
    """

    rate: float
    factor: float
    lo: float | None
    hi: float | None
    is_local: bool = False

    @property
    def within(self) -> Estimate:
        """The factor with its interval."""
        return Estimate(self.factor, self.lo, self.hi)


def exchange_of(
    k_grid: Sequence[int],
    y_K: Floats,
    alpha_k: float | None,
    of_S: PowerLaw,
    replicates: tuple[Floats, Floats] | None,
    n_effective: float | None,
    is_local: bool = False,
) -> Exchange | None:
    """The exchange rate at one model; None without a law in k, or where y does not fall with S.

    `replicates` are that model's values, [B, K], and those of all sizes at k = 1, [B, N].
    """
    if alpha_k is None or of_S.alpha.value is None or of_S.alpha.value <= 0:
        return None
    ends = [k_grid.index(k) for k in (1, STEP) if k in k_grid]
    between = is_local and len(ends) == 2
    if between:
        alpha_k = float(line(_LN_STEP, np.log(y_K[ends]))[1])
    rate = alpha_k / of_S.alpha.value
    factor = exp_or_none(rate * _LN_STEP[1])
    if factor is None:  # no size is so large
        return None
    about, (_, alpha_sd) = of_S.uncertainty, of_S.alpha_sds
    if about is None or alpha_sd is None:  # too few replicates for an interval
        return Exchange(rate, factor, None, None, is_local)
    text = 0.0
    if replicates is not None:
        y_BK, y_BN = replicates
        with np.errstate(divide="ignore", invalid="ignore"):  # a loss of 0 or below has no logarithm, and is left out
            usable_B = np.isfinite(np.log(y_BK)).all(axis=1) & np.isfinite(np.log(y_BN)).all(axis=1)
        ln_y_BK = np.log(y_BK[usable_B])
        alpha_k_B = (line(_LN_STEP, ln_y_BK[:, ends]) if between else line(np.log(k_grid), ln_y_BK))[:, 1]
        alpha_S_B = line(np.log(of_S.S), np.log(y_BN[usable_B]))[:, 1]
        text = few_documents(n_effective) * float(np.var(alpha_k_B / alpha_S_B, ddof=1))
    models_sd = rate / of_S.alpha.value * alpha_sd
    half = half_width(shared=text, scatter=models_sd, dof=about.dof, n_effective=about.n_effective)
    falls = of_S.alpha.lo is not None and of_S.alpha.lo > 0
    lo, hi = (exp_or_none(max(end, 0.0) * _LN_STEP[1]) for end in around(rate, half))
    return Exchange(rate, factor, lo, hi if falls else None, is_local)
