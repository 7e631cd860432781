"""Counts exact matches at k, the items whose target tokens all have a rank of at most k, and fits their law.

A target is a window of its own length, so the law of windows (arXiv 2510.20387, eqs. 6 to 8) predicts the mean over
items of RBP_k^n. An item succeeds with exp(-n C S^-alpha) for independent tokens, or beta-binomial with a correlation
that is measured at each size or fitted.

Shapes: I items, B replicates over them, L lengths of an item, C cells, each one size and one length.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from rbpx.laws.counts.fit import Correction, Outcomes, fit_outcomes
from rbpx.laws.counts.passing import correlation, ln_pass
from rbpx.laws.intervals.estimate import Estimate, Recipe, by_name, estimate, flat, of_share
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Group
from rbpx.runs.points.items import Answers
from rbpx.store.store import Record


def exact_match(
    ranks: Sequence[Floats], weights_BI: npt.NDArray[np.int64], chosen_I: npt.NDArray[np.bool_], k: int
) -> Record:
    """The exact match of chosen items of one run at one k, with intervals over items.

    `independent` is the mean over items of RBP_k^n, `rho` the correlation of two hits of one item over all pairs,
    `correlated` the mean beta-binomial success with it.
    """
    n_I, hits_I = (counts_I[chosen_I] for counts_I in _counts(ranks, k))
    weights_B = _with_all(weights_BI[:, chosen_I])
    lengths_L = np.unique(n_I)
    with np.errstate(invalid="ignore", divide="ignore"):  # a replicate may draw none of them
        share_BL = weights_B @ (n_I[:, None] == lengths_L) / weights_B.sum(axis=1)[:, None]
        rbp_B, rho_B = _hits(weights_B, n_I, hits_I)
        # If all tokens are hits, none is, or each item is one token, no correlation is needed.
        r_B = np.where((rbp_B == 0) | (rbp_B == 1) | (lengths_L[-1] == 1), 0.0, np.where(rho_B > 1, np.nan, rho_B))
        mu_BL = np.repeat(np.log(-np.log(rbp_B))[:, None], len(lengths_L), axis=1)
    independent_B, correlated_B = (
        (share_BL * np.exp(ln_pass(mu_BL, np.repeat(r[:, None], len(lengths_L), axis=1), lengths_L)[0])).sum(axis=1)
        for r in (np.zeros(len(r_B)), r_B)
    )

    def of(values_B: Floats) -> Estimate:
        return estimate(float(values_B[0]), values_B[1:], len(n_I), Recipe.percentile)

    measured = of_share(int((hits_I == n_I).sum()), len(n_I))
    rho = float(rho_B[0]) if np.isfinite(rho_B[0]) else None
    match = {"k": k, "rbp": float(rbp_B[0]), "measured": measured, "independent": of(independent_B)}
    return flat(match | {"rho": rho, "correlated": of(correlated_B)})


def laws_of_items(
    group: Group, answers: Sequence[Answers], weights_BI: npt.NDArray[np.int64], k: int
) -> Iterator[Record]:
    """The laws of all exact matches over all sizes, with the same replicates at each."""
    weights, counts = _with_all(weights_BI), [_counts(each.ranks, k) for each in answers]
    n_I = counts[0][0]
    lengths_L = np.unique(n_I)
    of_LI = (n_I == lengths_L[:, None]).astype(np.float64)
    passed_BC = np.hstack([weights @ (of_LI * (hits_I == n_I)).T for _, hits_I in counts])
    trials_BC, S = np.tile(weights @ of_LI.T, len(answers)), [run.non_embedding_params for run in group.runs]
    rho_BM = np.column_stack([_hits(weights, n_I, hits_I)[1] for _, hits_I in counts])
    # A negative correlation over targets of any length belongs to no beta-binomial distribution.
    r_BM = np.where(np.isfinite(rho_BM), np.maximum(rho_BM, 0.0), 0.0)
    N_C, r_BC = np.tile(lengths_L, len(S)), np.repeat(r_BM, len(lengths_L), axis=1)
    cells = np.repeat(np.array(S, np.float64), len(lengths_L)), N_C, passed_BC[0], trials_BC[0], passed_BC[1:]
    r_BC = np.where(N_C == 1, 0.0, r_BC)
    outcomes = Outcomes(*cells, trials_BC[1:], r_BC[0], r_BC[1:], n_effective=len(n_I))
    for fit in (fit_outcomes(outcomes, assumed) for assumed in Correction):
        row = {"kind": "law", **group.names(), "k": k, "correction": fit.correction.value}
        row |= {name: fit.columns()[name] for name in ("C", "alpha", "alpha_lo", "alpha_hi", "aic", "status")}
        reasons = None if fit.reasons is None else [reason.value for reason in fit.reasons]
        yield row | by_name(r=fit.r) | {"n_sizes": fit.n_points, "n_sequences": fit.n_sequences, "reasons": reasons}


def _counts(ranks: Sequence[Floats], k: int) -> tuple[Floats, Floats]:
    n_hits = [(len(each), np.count_nonzero(each <= k)) for each in ranks]
    n_I, hits_I = np.array(n_hits, np.float64).reshape(-1, 2).T
    return n_I, hits_I


def _with_all(weights_BI: npt.NDArray[np.int64]) -> Floats:
    return np.vstack([np.ones(weights_BI.shape[1]), weights_BI])


def _hits(weights_BI: Floats, n_I: Floats, hits_I: Floats) -> tuple[Floats, Floats]:
    terms = n_I, hits_I, n_I * (n_I - 1), hits_I * (hits_I - 1), hits_I * (n_I - 1)
    sums = [weights_BI @ each for each in terms]
    with np.errstate(invalid="ignore"):  # a replicate may draw none of them
        return sums[1] / sums[0], correlation(*sums)
