"""One at a time, or in other parameters, what the package computes for many: what tests of numbers ask."""

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.numeric import Floats
from rbpx.laws.prediction.prediction import fit_batch
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.ranks.lognormal import Derived, derived_curve, derived_power_law, paper_slopes, step_paper


def derived(mu: ArrayLike, sigma: ArrayLike, V: int) -> Derived:
    """-ln RBP_1 and cross-entropy of ranks that are lognormal with mu and sigma, over 1..V."""
    mu_f64, variance = np.asarray(mu, np.float64), np.asarray(sigma, np.float64) ** 2
    return derived_power_law(1 - mu_f64 / variance, 0.5 / variance, V)


def derived_rbp(beta: ArrayLike, gamma: ArrayLike, V: int, k: ArrayLike) -> Floats:
    """RBP_k alone of p_x = x^(-beta) exp(-gamma ln^2 x) / Z."""
    return derived_curve(beta, gamma, V, list(np.asarray(k)))[0]


def replicates_of_paper(fit: RankFit, rank: ArrayLike, n_tokens_BR: ArrayLike) -> Floats:
    """mu and sigma of resampled counts of each rank, [B, 2]."""
    return step_paper(fit, np.asarray(n_tokens_BR, np.float64) @ paper_slopes(fit, rank))


def below(S: ArrayLike, y_BN: ArrayLike, S_new: float, y_new_B: ArrayLike) -> Floats:
    """The probability, over forms, that a new model shows less than y_new, series by series."""
    return fit_batch(S, y_BN).at(np.log([S_new])).below(np.log(np.asarray(y_new_B))[:, None])[:, 0]
