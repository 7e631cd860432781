"""Estimates the level of well-tuned runs about a law fitted with `over`, where runs above the law count less.

Such a law lies among the lowest runs, some of which are low by noise. Runs scatter normally about their level, and a
share of them, badly tuned, has an exponential excess as well: a stochastic frontier, fitted by maximum likelihood
(expectation-maximisation).

Source:
    D. Aigner, C. Lovell and P. Schmidt, Formulation and Estimation of Stochastic Frontier Production Function Models,
    Journal of Econometrics 6 (1977) 21.

Shapes: B bootstrap replicates of the runs, N points.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import log_ndtr

from rbpx.laws.numeric import Floats

_STEPS: Final = 300
_LEAST_EXCESS: Final = 2.0  # times the noise: a smaller mean excess is not bad tuning
_NEVER: Final = 1e-9
_SHARE: Final = 0.3  # of badly tuned runs, where the search starts
_LN_SQRT_2PI: Final = math.log(2 * math.pi) / 2


@dataclass(frozen=True, eq=False)
class TunedLevel:
    """The level of well-tuned runs about a law, for each of B bootstrap replicates.

    Attributes:
        level_B: mean of ln y minus the law.
        sd_B: standard deviation about it.
        share_B: share of badly tuned runs.
        excess_B: their mean excess in ln y.
    """

    level_B: Floats
    sd_B: Floats
    share_B: Floats
    excess_B: Floats

    def sd_freed(self, n_runs: int, n_free: int) -> float:
        """Standard deviation of the first replicate, corrected for the constants and the level estimated."""
        n = n_runs * (1 - float(self.share_B[0]))
        return float(self.sd_B[0]) * math.sqrt(n / max(n - n_free - 1, 1.0))


def fit_tuned_level(left_BN: Floats, weight_BN: Floats) -> TunedLevel:
    """Estimates the level of well-tuned runs from ln y minus the law and the weight of each point."""
    weight_BN = weight_BN / weight_BN.sum(axis=1, keepdims=True)
    low_B, middle_B = _quantile(left_BN, weight_BN, 0.1), _quantile(left_BN, weight_BN, 0.4)
    sd_B = np.maximum(middle_B - low_B, _NEVER)
    level_B, share_B = middle_B.copy(), np.full(len(left_BN), _SHARE)
    excess_B = np.maximum((weight_BN * np.maximum(left_BN - level_B[:, None], 0)).sum(axis=1), _LEAST_EXCESS * sd_B)
    for _ in range(_STEPS):
        level, sd, excess, share = (each[:, None] for each in (level_B, sd_B, excess_B, share_B))
        about_BN = left_BN - level
        ln_good_BN = np.log1p(-share) - (about_BN / sd) ** 2 / 2 - np.log(sd) - _LN_SQRT_2PI
        end_BN = about_BN / sd - sd / excess
        ln_end_BN = log_ndtr(end_BN)
        ln_bad_BN = np.log(share / excess) + (sd / excess) ** 2 / 2 - about_BN / excess + ln_end_BN
        bad_BN = 1 / (1 + np.exp(np.clip(ln_good_BN - ln_bad_BN, -700, 700)))
        # The noise of a badly tuned run is normal, truncated where its excess would be negative.
        hazard_BN = np.exp(np.minimum(-(end_BN**2) / 2 - _LN_SQRT_2PI - ln_end_BN, 700))
        noise_BN = sd**2 / excess - sd * hazard_BN
        spread_BN = sd**2 * np.maximum(1 - end_BN * hazard_BN - hazard_BN**2, 0)
        is_bad_BN, is_good_BN = weight_BN * bad_BN, weight_BN * (1 - bad_BN)
        moved_B = (is_good_BN * about_BN + is_bad_BN * noise_BN).sum(axis=1)
        squares_BN = is_good_BN * about_BN**2 + is_bad_BN * (noise_BN**2 + spread_BN)
        sd_B = np.sqrt(np.maximum(squares_BN.sum(axis=1) - moved_B**2, _NEVER**2))
        share_B = np.clip(is_bad_BN.sum(axis=1), _NEVER, 1 - _NEVER)
        excess_B = np.maximum((is_bad_BN * (about_BN - noise_BN)).sum(axis=1) / share_B, _LEAST_EXCESS * sd_B)
        level_B = level_B + moved_B
    return TunedLevel(level_B, sd_B, share_B, excess_B)


def _quantile(left_BN: Floats, weight_BN: Floats, share: float) -> Floats:
    order_BN = np.argsort(left_BN, axis=1)
    below_BN = np.cumsum(np.take_along_axis(weight_BN, order_BN, axis=1), axis=1)
    at_B = np.minimum((below_BN < share).sum(axis=1), left_BN.shape[1] - 1)
    return np.asarray(np.take_along_axis(left_BN, order_BN, axis=1)[np.arange(len(left_BN)), at_B])
