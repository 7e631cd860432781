"""One at a time, or in other parameters, what the package computes for many: what tests of numbers ask."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.numeric import Floats
from rbpx.laws.prediction.prediction import fit_batch
from rbpx.laws.ranks.distribution import fit_distributions
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.ranks.lognormal import derived_curve, fit_paper, paper_slopes, step_paper


def fit_distribution(name: str, rank: ArrayLike, n_tokens: ArrayLike, V: int) -> RankFit:
    """One family, fitted over 1..V, or the lognormal of the paper from 2 up."""
    if name == "lognormal_paper":
        return fit_paper(rank, n_tokens)
    (fit,) = fit_distributions([name], rank, n_tokens, V)
    return fit


class Derived(NamedTuple):
    """-ln RBP_1 and cross-entropy of a rank model, nats."""

    neg_ln_rbp_1: Floats
    cross_entropy_nats: Floats


def derived(mu: ArrayLike, sigma: ArrayLike, V: int) -> Derived:
    """Those of ranks that are lognormal with mu and sigma, over 1..V, of some models."""
    mu_f64, variance = np.asarray(mu, np.float64), np.asarray(sigma, np.float64) ** 2
    curve = derived_curve(1 - mu_f64 / variance, 0.5 / variance, V, [1])
    return Derived(curve[:, 0], curve[:, 1])


def replicates_of_paper(fit: RankFit, rank: ArrayLike, n_tokens_BR: ArrayLike) -> Floats:
    """mu and sigma of resampled counts of each rank, [B, 2]."""
    return step_paper(fit, np.asarray(n_tokens_BR, np.float64) @ paper_slopes(fit, rank))


def below(S: ArrayLike, y_BN: ArrayLike, S_new: float, y_new_B: ArrayLike) -> Floats:
    """The probability, over forms, that a new model shows less than y_new, series by series."""
    return fit_batch(S, y_BN).at(np.log([S_new])).below(np.log(np.asarray(y_new_B))[:, None])[:, 0]
