"""The law of emergence on items of their own lengths: exact matches at every size in; RBP_k as a law in size out.

An item of n tokens succeeds with p_n(S), n its own length: exp(-n C S^-alpha) if its tokens are independent (RBP
paper, arXiv 2510.20387, eqs. 6 to 8), or beta-binomial with a correlation of hits, which is either the measured one of
each size and length or one that the successes themselves call for. Shapes: I items, B resamples of them, M sizes, C
cells, each one size and one length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.groups.group import Group
from rbpx.groups.item_answers import Answers
from rbpx.laws.outcome_counts import Correction, Outcomes
from rbpx.laws.outcomes import OutcomeFit, fit_outcomes
from rbpx.status import Status, first_of, in_order

__all__ = ["HITS", "EmergenceOfItems", "emergence_of_items"]

Floats = npt.NDArray[np.float64]

HITS: Final = {  # what is assumed of those of one item, in words
    Correction.none: "independent",
    Correction.measured: "as measured",
    Correction.free: "as fitted",
}


@dataclass(frozen=True, eq=False)
class EmergenceOfItems:
    """The laws at one k.

    Attributes:
        k: the rank up to which a token is a hit.
        lengths: tokens of an item, those that occur.
        fits: by what is assumed of the hits of one item.
    """

    k: int
    lengths: tuple[int, ...]
    fits: dict[Correction, OutcomeFit]


def emergence_of_items(
    group: Group, answers: Sequence[Answers], weights_BI: npt.NDArray[np.int64], k: int
) -> EmergenceOfItems:
    """Fit the law to the exact matches of all items at all sizes; the same resamples of the items for every size."""
    n_I = np.array([len(ranks) for ranks in answers[0].ranks])
    lengths = np.unique(n_I)
    of_LI = (n_I == lengths[:, None]).astype(np.float64)
    weights = np.vstack([np.ones(len(n_I)), weights_BI]).astype(np.float64)
    trials_BL = weights @ of_LI.T
    passed, r = [], []
    for each in answers:
        hits_I = np.array([np.count_nonzero(ranks <= k) for ranks in each.ranks], np.float64)
        passed.append(weights @ (of_LI * (hits_I == n_I)).T)
        hits_BL, pairs_BL = weights @ (of_LI * hits_I).T, weights @ (of_LI * hits_I * (hits_I - 1)).T
        r.append(_correlation(trials_BL, hits_BL, pairs_BL, lengths))
    S_C = np.repeat([run.non_embedding_params for run in group.runs], len(lengths)).astype(np.float64)
    N_C = np.tile(lengths, len(answers)).astype(np.float64)
    passed_BC, r_BC = np.hstack(passed), np.hstack(r)
    trials_BC = np.tile(trials_BL, len(answers))
    fits = {}
    for correction in HITS:
        measured = correction is Correction.measured
        outcomes = Outcomes(
            S_C, N_C, passed_BC[0], trials_BC[0], passed_BC[1:], trials_BC[1:],
            r_BC[0] if measured else None, r_BC[1:] if measured else None, len(n_I),
        )  # fmt: skip
        fits[correction] = _judged(fit_outcomes(outcomes, correction))
    return EmergenceOfItems(k, tuple(lengths.tolist()), fits)


def _judged(fit: OutcomeFit) -> OutcomeFit:
    """An exponent without an interval is not determined."""
    if fit.alpha is None or fit.alpha_lo is not None:
        return fit
    reasons = in_order([*(fit.reasons or ()), Status.barely_determined])
    return replace(fit, status=first_of(reasons), reasons=reasons)


def _correlation(trials_BL: Floats, hits_BL: Floats, pairs_BL: Floats, lengths: npt.NDArray[np.int64]) -> Floats:
    """Correlation of two hits of one item, over all pairs of a size, at each length; 0 where none is positive.

    Hits that avoid each other over targets of any length are no beta-binomial distribution.
    """
    N_L = lengths.astype(np.float64)
    all_pairs_BL = trials_BL * N_L * (N_L - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        q_B = hits_BL.sum(axis=1) / (trials_BL @ N_L)
        # the sum over ordered pairs of (x_i - q)(x_j - q)
        products_B = pairs_BL.sum(axis=1) - 2 * q_B * (hits_BL @ (N_L - 1)) + q_B**2 * all_pairs_BL.sum(axis=1)
        r_B = products_B / (all_pairs_BL.sum(axis=1) * q_B * (1 - q_B))
    r_B = np.where(np.isfinite(r_B), np.maximum(r_B, 0.0), 0.0)
    return np.where(N_L == 1, 0.0, r_B[:, None])
