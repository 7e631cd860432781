"""Exact match at k: items of which every target token is a hit, beside what independent or like tokens would give.

An item's target is a window of its own length, so what the emergence law says of windows (arXiv 2510.20387, eqs. 6 to
8), p_{n,k} = RBP_k^n, is tested on items: the mean over items of RBP_k^n, n the tokens of each.

Shapes: I items, B resamples of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.interval import Estimate, of_share

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ExactMatch:
    """Exact match of some items of one run at one k.

    Attributes:
        k: the rank up to which a token is a hit.
        rbp: RBP_k of the tokens of the targets.
        measured: share of items of which all tokens are hits.
        independent: mean over items of RBP_k^n.
        rho: correlation of the hits of two tokens of one item, over all pairs; None where there is none.
        correlated: mean over items of the share that beta-binomial hits with that rho would give; None where there is
            no such distribution.
    """

    k: int
    rbp: float
    measured: Estimate
    independent: Estimate
    rho: float | None
    correlated: Estimate


def exact_match(
    ranks: Sequence[Floats], weights_BI: npt.NDArray[np.int64], chosen_I: npt.NDArray[np.bool_], k: int
) -> ExactMatch:
    """Exact match of chosen items at one k, with intervals over items; predictions are made anew of each resample.

    Args:
        ranks: of the tokens of each item's target.
        weights_BI: how often each item is drawn in each resample, shape [B, I].
        chosen_I: which items count.
        k: from 1.
    """
    chosen = [int(at) for at in np.flatnonzero(chosen_I)]
    n_I = np.array([len(ranks[at]) for at in chosen], np.float64)
    hits_I = np.array([np.count_nonzero(ranks[at] <= k) for at in chosen], np.float64)
    weights_B = np.vstack([np.ones(len(chosen)), weights_BI[:, chosen]])  # all items once, then the resamples
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample may draw none of them
        total_B = weights_B.sum(axis=1)
        rbp_B = (weights_B @ hits_I) / (weights_B @ n_I)
        pairs_B = weights_B @ (n_I * (n_I - 1))
        # sum over ordered pairs of (x_i - p)(x_j - p) of an item with h hits in n tokens
        products_B = (
            weights_B @ (hits_I * (hits_I - 1)) - 2 * rbp_B * (weights_B @ (hits_I * (n_I - 1))) + rbp_B**2 * pairs_B
        )
        rho_B = products_B / (pairs_B * rbp_B * (1 - rbp_B))
    lengths, of_length = np.unique(n_I.astype(int), return_inverse=True)
    share_BL = np.stack([weights_B[:, of_length == at].sum(axis=1) for at in range(len(lengths))], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share_BL /= total_B[:, None]
        independent_B = np.einsum("bl,bl->b", share_BL, rbp_B[:, None] ** lengths)
    correlated_B = np.einsum("bl,bl->b", share_BL, _beta_binomial(rbp_B, rho_B, lengths))

    def of(values_B: Floats) -> Estimate:
        return estimate(float(values_B[0]), values_B[1:], len(chosen), Recipe.percentile)

    return ExactMatch(
        k=k,
        rbp=float(rbp_B[0]),
        measured=of_share(int((hits_I == n_I).sum()), len(chosen)),
        independent=of(independent_B),
        rho=float(rho_B[0]) if np.isfinite(rho_B[0]) else None,
        correlated=of(correlated_B),
    )


def _beta_binomial(rbp_B: Floats, rho_B: Floats, lengths: npt.NDArray[np.int_]) -> Floats:
    """RBP prod_{i=1}^{n-1} (p + (i - p) rho) / (1 + (i - 1) rho), [B, L]; NaN where that is no distribution.

    Tokens of an item are independent given its own ease, which is beta-distributed over items.
    """
    shares_BL = np.full((len(rbp_B), len(lengths)), np.nan)
    longest = int(lengths[-1])
    share_B, certain_B = rbp_B.copy(), (rbp_B == 0) | (rbp_B == 1)
    rho_B = np.where(certain_B | ((longest == 1) & ~np.isfinite(rho_B)), 0.0, rho_B)
    share_B[rho_B > 1] = np.nan
    for n in range(1, longest + 1):
        if n > 1:
            i = n - 1
            with np.errstate(
                divide="ignore", invalid="ignore"
            ):  # where it has been no distribution from a smaller n on
                chance_B = (rbp_B + (i - rbp_B) * rho_B) / (1 + (i - 1) * rho_B)
            share_B = share_B * np.where(chance_B >= 0, chance_B, np.nan)
        shares_BL[:, lengths == n] = share_B[:, None]
    return shares_BL
