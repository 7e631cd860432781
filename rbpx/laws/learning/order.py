"""Compares the order in which several trainings learn the same tokens, given the reliability of each.

Times are cells (`times.Times`) with many ties, so the correlation is Spearman's with mean ranks. The reliability is the
correlation of times from both halves of the points, stepped up (Spearman-Brown: 2 r / (1 + r)); two trainings can
correlate by at most sqrt(r_1 r_2).

Source: C. Spearman, American Journal of Psychology 15 (1904), 72, for the bound.

Shapes: M tokens, N trainings, F factors.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from rbpx.laws.numeric import Floats

_MOST: Final = 3  # factors


def standardised_ranks(times_M: NDArray[Any]) -> Floats:
    """Returns ranks with mean 0 and variance 1, ties at their mean, [M]; NaN where all are equal."""
    return within_groups(rankdata(times_M), np.zeros(len(times_M), np.int64))


def within_groups(value_M: Floats, group_M: NDArray[np.int64]) -> Floats:
    """Returns values less the mean of their group, scaled to variance 1: the order within tokens of one id."""
    _, at_M = np.unique(group_M, return_inverse=True)
    left_M = value_M - (np.bincount(at_M, value_M) / np.bincount(at_M))[at_M]
    spread = float(np.sqrt(np.mean(left_M**2)))
    return np.full(len(left_M), np.nan) if not spread > 1e-12 else left_M / spread


def spearman_brown(r: float) -> float:
    """Returns the reliability of the whole from the correlation of its halves; NaN where that is not positive."""
    return 2 * r / (1 + r) if r > 0 else float("nan")


def factors(correlation_NN: Floats) -> tuple[Floats, Floats]:
    """Returns the principal factors of the correlations of orders, at most three, the largest first.

    Returns:
        The share of each in the variance of all orders, [F]; and the correlation of each order with each, mostly
        positive, [N, F].
    """
    value_F, vector_NF = np.linalg.eigh(correlation_NN)
    value_F, vector_NF = np.maximum(value_F[::-1], 0.0), vector_NF[:, ::-1]
    vector_NF = vector_NF * np.where(vector_NF.sum(axis=0) < 0, -1.0, 1.0)
    return (value_F / value_F.sum())[:_MOST], (vector_NF * np.sqrt(value_F))[:, :_MOST]
