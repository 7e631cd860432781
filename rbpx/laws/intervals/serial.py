"""Whether the members of a series are like their neighbours, and how much more their sum varies for it."""

import math
from typing import Final

import numpy as np
from scipy.special import ndtr

from rbpx.laws.numeric.arrays import Floats

_LAGS: Final = (4.0, 100.0, 2 / 9)  # c (n / m)^p lags of n members


def neighbours_p(value_N: Floats) -> float:
    """How probable neighbours as alike as these would be, were the order of the members a matter of chance.

    The statistic is von Neumann's ratio of the ranks r, sum (r_i+1 - r_i)^2 / sum (r_i - mean)^2, which no distribution
    of the values changes: near 2 by chance, small where neighbours are alike. One-sided, by its normal approximation.

    Args:
        value_N: at least 3, not all equal.

    Source:
        R. Bartels, The Rank Version of von Neumann's Ratio Test for Randomness, JASA 77 (1982), 40.
    """
    _, place_N, n_equal_R = np.unique(value_N, return_inverse=True, return_counts=True)
    rank_N = (np.cumsum(n_equal_R) - (n_equal_R - 1) / 2)[place_N]  # of equal ones the mean
    n, about_N = len(rank_N), rank_N - rank_N.mean()
    ratio = float((np.diff(rank_N) ** 2).sum() / (about_N @ about_N))
    variance = 4 * (n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    return float(ndtr((ratio - 2) / math.sqrt(variance)))


def variance_factor(value_N: Floats) -> float:
    """How many times as much as that of independent members the sum of a series varies; at least 1.

    Args:
        value_N: in order, with mean 0.

    Source:
        W. K. Newey and K. D. West, A Simple, Positive Semi-definite, Heteroskedasticity and Autocorrelation Consistent
        Covariance Matrix, Econometrica 55 (1987), 703; lags as in Review of Economic Studies 61 (1994), 631.
    """
    c, m, power = _LAGS
    n_lags = min(int(c * (len(value_N) / m) ** power), len(value_N) - 1)
    lags = range(1, n_lags + 1)
    alike = sum((1 - lag / (n_lags + 1)) * float(value_N[lag:] @ value_N[:-lag]) for lag in lags)
    return max(1 + 2 * alike / float(value_N @ value_N), 1.0)
