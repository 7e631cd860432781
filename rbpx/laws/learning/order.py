"""Whether several trainings learn the same tokens in the same order, beside what noise allows.

Times are cells (`times.lasting`), many of which are equal, so ranks are means of ties and the correlation is
Spearman's. Times from one half of the points say how far those of a training are known: the correlation of both halves,
stepped up to all points (Spearman and Brown: 2 r / (1 + r)), bounds what two trainings can show by sqrt(r_1 r_2).

Source: C. Spearman, American Journal of Psychology 15 (1904), 72, for the bound.

Shapes: M tokens, N trainings.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from rbpx.laws.numeric import Floats


def ranked(times_M: NDArray[Any]) -> Floats:
    """Ranks with mean 0 and variance 1, ties their mean, [M]; NaN where all are equal."""
    rank_M = rankdata(times_M).astype(np.float64)
    rank_M -= rank_M.mean()
    spread = float(np.sqrt(rank_M @ rank_M / len(rank_M)))
    return np.full(len(rank_M), np.nan) if spread == 0 else rank_M / spread


def without_mean_of(value_M: Floats, group_M: NDArray[np.int64]) -> Floats:
    """Values less the mean of their group, scaled to variance 1: what order there is among tokens of one id."""
    _, at_M = np.unique(group_M, return_inverse=True)
    mean_G = np.bincount(at_M, value_M) / np.bincount(at_M)
    left_M = value_M - mean_G[at_M]
    spread = float(np.sqrt(left_M @ left_M / len(left_M)))
    return np.full(len(left_M), np.nan) if spread < 1e-12 else left_M / spread


def stepped_up(r: float) -> float:
    """The reliability of the whole from the correlation of its halves; NaN where that is not positive."""
    return 2 * r / (1 + r) if r > 0 else float("nan")


class Factors(NamedTuple):
    """What the orders of several trainings have in common.

    Attributes:
        share_F: of the variance of all orders, by factor, the largest first; they sum to 1.
        loading_NF: the correlation of each order with each factor.
    """

    share_F: Floats
    loading_NF: Floats


_MOST: Final = 3


def factors(correlation_NN: Floats) -> Factors:
    """The principal factors of the correlations of orders, at most three; each mostly positive."""
    value_F, vector_NF = np.linalg.eigh(correlation_NN)
    value_F, vector_NF = np.maximum(value_F[::-1], 0.0), vector_NF[:, ::-1]
    vector_NF = vector_NF * np.where(vector_NF.sum(axis=0) < 0, -1.0, 1.0)
    loading_NF = vector_NF * np.sqrt(value_F)
    return Factors((value_F / value_F.sum())[:_MOST], loading_NF[:, :_MOST])
