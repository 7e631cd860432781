"""Counts exact matches at k, the items whose target tokens are all hits, and fits their law.

An item's target is a window of its own length, so what the emergence law says of windows (arXiv 2510.20387, eqs. 6 to
8), p_{n,k} = RBP_k^n, is tested on items: the mean over items of RBP_k^n, n the tokens of each. Over all sizes an item
succeeds with p_n(S): exp(-n C S^-alpha) if its tokens are independent, or beta-binomial with a correlation of hits,
which is the measured one of each size, or one that is fitted to the successes.

Shapes: I items, B resamples of them, L lengths of an item, C cells, each one size and one length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.laws.counts.fit import Correction, OutcomeFit, Outcomes, fit_outcomes
from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate, flat, of_share
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Group
from rbpx.runs.points.items import Answers
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record

HITS: Final = {  # what is assumed of those of one item, in words
    Correction.none: "independent",
    Correction.measured: "as measured",
    Correction.free: "as fitted",
}


def exact_match(
    ranks: Sequence[Floats], weights_BI: npt.NDArray[np.int64], chosen_I: npt.NDArray[np.bool_], k: int
) -> Record:
    """Exact match of chosen items of one run at one k, by name, with the ends of intervals over items.

    `k` is the rank up to which a token is a hit, and `rbp` RBP_k of the tokens of the targets. `measured` is the share
    of items of which all tokens are hits, `independent` the mean over items of RBP_k^n. `rho` is the correlation of two
    hits of one item, over all pairs, None where it is not defined; `correlated` is the mean over items of the share
    that beta-binomial hits with that rho would give, None where there is no such distribution. Both predictions are
    made anew from each resample.

    Args:
        ranks: the ranks of the tokens of each item's target.
        weights_BI: how often each item is drawn in each resample, shape [B, I].
        chosen_I: which items count.
        k: from 1.
    """
    n_I, hits_I = (counts_I[chosen_I] for counts_I in _counts(ranks, k))
    weights_B = _with_all(weights_BI[:, chosen_I])
    rbp_B, rho_B = _correlation(weights_B, n_I, hits_I)
    lengths = np.unique(n_I.astype(int))
    share_BL = weights_B @ (n_I[:, None] == lengths)
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample may draw none of them
        share_BL /= weights_B.sum(axis=1)[:, None]
        independent_B = np.einsum("bl,bl->b", share_BL, rbp_B[:, None] ** lengths)
    correlated_B = np.einsum("bl,bl->b", share_BL, _beta_binomial(rbp_B, rho_B, lengths))

    def of(values_B: Floats) -> Estimate:
        return estimate(float(values_B[0]), values_B[1:], len(n_I), Recipe.percentile)

    measured = of_share(int((hits_I == n_I).sum()), len(n_I))
    rho = float(rho_B[0]) if np.isfinite(rho_B[0]) else None
    match = {"k": k, "rbp": float(rbp_B[0]), "measured": measured, "independent": of(independent_B)}
    return flat(match | {"rho": rho, "correlated": of(correlated_B)})


_OF_LAW: Final = ("r", "r_lo", "r_hi", "n_sizes", "n_sequences")


def laws_of_items(
    group: Group, answers: Sequence[Answers], weights_BI: npt.NDArray[np.int64], k: int
) -> Iterator[Record]:
    """The laws of the exact matches of all items at all sizes, with the same resamples of items at every size."""
    n_I, _ = _counts(answers[0].ranks, k)
    lengths = np.unique(n_I)
    of_LI = (n_I == lengths[:, None]).astype(np.float64)
    weights = _with_all(weights_BI)
    passed, r = [], []
    for each in answers:
        _, hits_I = _counts(each.ranks, k)
        passed.append(weights @ (of_LI * (hits_I == n_I)).T)
        _, rho_B = _correlation(weights, n_I, hits_I)
        # A negative correlation over targets of any length belongs to no beta-binomial distribution.
        r_B = np.where(np.isfinite(rho_B), np.maximum(rho_B, 0.0), 0.0)
        r.append(np.where(lengths == 1, 0.0, r_B[:, None]))
    S_C = np.repeat([run.non_embedding_params for run in group.runs], len(lengths)).astype(np.float64)
    passed_BC, r_BC, trials_BC = np.hstack(passed), np.hstack(r), np.tile(weights @ of_LI.T, len(answers))
    counts = S_C, np.tile(lengths, len(answers)), passed_BC[0], trials_BC[0], passed_BC[1:], trials_BC[1:]
    outcomes = Outcomes(*counts, n_documents=len(n_I))
    with_r = replace(outcomes, r_C=r_BC[0], r_BC=r_BC[1:])
    for assumed in HITS:
        fit = _judged(fit_outcomes(with_r if assumed is Correction.measured else outcomes, assumed))
        row = {"kind": "law", **group.names(), "k": k, "correction": assumed.value}
        of_law = {name: fit.columns()[name] for name in ("C", "alpha", "alpha_lo", "alpha_hi", "aic", "status")}
        of_law |= {name: getattr(fit, name) for name in _OF_LAW}
        yield row | of_law | {"reasons": fit.record().get("reasons")}


def _judged(fit: OutcomeFit) -> OutcomeFit:
    """Mark an exponent without an interval as barely determined."""
    if fit.alpha.value is None or fit.alpha.lo is not None:
        return fit
    reasons = in_order([*(fit.reasons or ()), Status.barely_determined])
    return replace(fit, status=first_of(reasons), reasons=reasons)


def _counts(ranks: Sequence[Floats], k: int) -> tuple[Floats, Floats]:
    """The number of tokens of each item, and of its hits."""
    n_hits = ((len(each), np.count_nonzero(each <= k)) for each in ranks)
    n_I, hits_I = np.array(list(n_hits), np.float64).reshape(-1, 2).T
    return n_I, hits_I


def _with_all(weights_BI: npt.NDArray[np.int64]) -> Floats:
    """A row with each item once, then the resamples."""
    return np.vstack([np.ones(weights_BI.shape[1]), weights_BI])


def _correlation(weights_BI: Floats, n_I: Floats, hits_I: Floats) -> tuple[Floats, Floats]:
    """RBP of the tokens, and the correlation of two hits of one item over all pairs, [B]; NaN where not defined."""
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample may draw none of them
        rbp_B = (weights_BI @ hits_I) / (weights_BI @ n_I)
        pairs_B = weights_BI @ (n_I * (n_I - 1))
        # sum over ordered pairs of (x_i - p)(x_j - p) of an item with h hits in n tokens
        both_B, one_B = weights_BI @ (hits_I * (hits_I - 1)), weights_BI @ (hits_I * (n_I - 1))
        products_B = both_B - 2 * rbp_B * one_B + rbp_B**2 * pairs_B
        return rbp_B, products_B / (pairs_B * rbp_B * (1 - rbp_B))


def _beta_binomial(rbp_B: Floats, rho_B: Floats, lengths: npt.NDArray[np.int_]) -> Floats:
    """RBP prod_{i=1}^{n-1} (p + (i - p) rho) / (1 + (i - 1) rho), [B, L]; NaN where that is no distribution.

    Tokens of an item are independent given its own ease, which is beta-distributed over items.
    """
    is_certain_B = (rbp_B == 0) | (rbp_B == 1)
    rho_B1 = np.where(is_certain_B | ((lengths[-1] == 1) & ~np.isfinite(rho_B)), 0.0, rho_B)[:, None]
    rbp_B1, i_N = np.where(rho_B1 > 1, np.nan, rbp_B[:, None]), np.arange(1, lengths[-1])
    with np.errstate(divide="ignore", invalid="ignore"):  # no distribution from a smaller n on
        chance_BN = (rbp_B1 + (i_N - rbp_B1) * rho_B1) / (1 + (i_N - 1) * rho_B1)
        chance_BN = np.where(chance_BN >= 0, chance_BN, np.nan)
    return np.asarray(np.hstack([rbp_B1, chance_BN]).cumprod(axis=1)[:, lengths - 1])
