"""The curves of one run that laws are fitted to, as measured and for resampled documents, from its counts of ranks.

Shapes: D documents, R different ranks, K values of k, B resamples of the documents.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from rbpx.groups.points.token_ranks import distinct_ranks
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.quantity import Counts, Quantity, quantity
from rbpx.laws.ranks.derived import derived_approximation, derived_power_law
from rbpx.laws.ranks.distribution import fit_distribution
from rbpx.laws.ranks.error_entropy import decompose, resample_terms
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.ranks.lognormal import fit_paper, paper_slopes, step_paper
from rbpx.status import Status

Curves = dict[str, Floats]
"""Quantities of one run by the name of their law; `rbp` has a last axis [K], and those of resamples a first one [B]."""

# Of resampled counts at a time, for each run; larger blocks take new memory from the system each time.
_BLOCK_BYTES = 8 * 2**20
_LOGNORMAL = ("lognormal_rbp1", "lognormal_cross_entropy")
_TERMS = ("error_entropy", "self_alignment", "confidence")
_PARTS = {"lognormal": _LOGNORMAL, "terms": _TERMS}


@dataclass(frozen=True, eq=False)
class Evidence:
    """One run under one tie rule, or those of its curves that do not depend on k.

    Attributes:
        measured: rbp (shares), cross_entropy (nats) and, where they were asked for, the terms of the error-entropy
            decomposition (nats, they add up to cross_entropy) and the curves derived from the rank model (nats, NaN
            where there is none).
        resampled: the same of its resamples; NaN for a resample without a token.
        paper: lognormal fitted to the ranks from 2 up, as published; None where it was not asked for.
        full: the same family fitted to all ranks.
        approximated: (-ln RBP_1, cross-entropy) of `paper` by the paper's own approximation; None without mu, sigma.
    """

    measured: Curves
    resampled: Curves
    paper: RankFit | None = None
    full: RankFit | None = None
    approximated: tuple[float, float] | None = None


def weigh(
    counts: pa.Table,
    weights_BD: npt.NDArray[Any],
    k_grid: Sequence[int],
    vocab_size: int,
    laws: Collection[str],
    kept: dict[str, Evidence] | None = None,
) -> Evidence:
    """Turn the rank counts of each document (`document_ranks`) into the curves of a run and of its resamples.

    Args:
        counts: doc_id, rank, n_tokens, sum_logprob.
        weights_BD: how often each document is drawn in each resample, whole numbers of any type.
        k_grid: the k of RBP.
        vocab_size: V, where the rank models end.
        laws: those that need more than RBP and cross-entropy are computed if they are named here.
        kept: what was computed of the same counts and weights before; what is computed now is added.
    """
    doc, rank, tokens, logprob = (counts[name].to_numpy() for name in ("doc_id", "rank", "n_tokens", "sum_logprob"))
    weights_BD = weights_BD.astype(np.float64, copy=False)
    parts = [Evidence(*_shares(doc, rank, tokens, logprob, weights_BD, k_grid))]
    kept = {} if kept is None else kept
    needed = [name for name, of in _PARTS.items() if set(of) & set(laws)]
    needed += [law for law in laws if quantity(law) is not None]
    missing = [name for name in needed if name not in kept]
    if missing:
        kept |= _whole(doc, rank, tokens.astype(np.float64), logprob, weights_BD, vocab_size, missing)
    parts += [kept[name] for name in needed]
    model = next((each for each in parts if each.paper is not None), parts[0])
    measured, resampled = (
        {k: v for each in parts for k, v in getattr(each, of).items()} for of in ("measured", "resampled")
    )
    return Evidence(measured, resampled, model.paper, model.full, model.approximated)


def _whole(
    doc: Any, rank: Any, tokens: Floats, logprob: Any, weights_BD: Floats, vocab_size: int, names: Sequence[str]
) -> dict[str, Evidence]:
    """The parts that need all ranks, whatever the k: those of `_PARTS`, and each quantity with a module of its own."""
    rank_R, column = distinct_ranks(rank)
    shape = (weights_BD.shape[1], len(rank_R))
    tokens_R, logprob_R = (np.bincount(column, each).astype(np.float64) for each in (tokens, logprob))
    parts = {}
    if "lognormal" in names:
        paper, full = fit_paper(rank_R, tokens_R), fit_distribution("lognormal_full", rank_R, tokens_R, vocab_size)
        theta = _derive(_parameter(paper, "beta"), _parameter(paper, "gamma"), vocab_size)
        theta_B = _resampled_theta(paper, rank_R, csr_array((tokens, (doc, column)), shape), weights_BD)
        parts["lognormal"] = Evidence(
            {name: curve[0] for name, curve in zip(_LOGNORMAL, theta, strict=True)},
            dict(zip(_LOGNORMAL, _derive(*theta_B, vocab_size), strict=True)),
            paper,
            full,
            _approximate(paper),
        )
    if "terms" in names:
        measured, resampled = (
            {name: np.asarray(getattr(terms, name)) for name in _TERMS}
            for terms in (
                decompose(tokens_R, logprob_R),
                resample_terms(doc, column, tokens, logprob, weights_BD),
            )
        )
        parts["terms"] = Evidence(measured, resampled)
    more = {law: definition for law in names if (definition := quantity(law)) is not None}
    if more:
        measured = _values(more, Counts(rank_R, tokens_R[None], logprob_R[None], vocab_size))
        tokens_DR, logprob_DR = (csr_array((each, (doc, column)), shape) for each in (tokens, logprob))
        resampled = _resampled_values(more, rank_R, tokens_DR, logprob_DR, weights_BD, vocab_size)
        parts |= {law: Evidence({law: measured[law][0]}, {law: resampled[law]}) for law in more}
    return parts


def _shares(
    doc: Any, rank: Any, tokens: Any, logprob: Any, weights_BD: npt.NDArray[Any], k_grid: Sequence[int]
) -> tuple[Curves, Curves]:
    """RBP and cross-entropy: sums over documents, so that resampling them is one product."""
    n_documents, n_k = weights_BD.shape[1], len(k_grid)
    order = np.argsort(k_grid)
    bin_N = np.searchsorted(np.asarray(k_grid)[order], rank)  # of the smallest k that the rank does not exceed
    counted = np.bincount(doc * (n_k + 1) + bin_N, tokens, n_documents * (n_k + 1)).reshape(n_documents, n_k + 1)
    up_to_DK = np.cumsum(counted, axis=1)
    sums_DC = np.column_stack([up_to_DK[:, np.argsort(order)], up_to_DK[:, -1], np.bincount(doc, logprob, n_documents)])
    total_C = sums_DC.sum(axis=0)
    measured = {"rbp": total_C[:-2] / total_C[-2], "cross_entropy": np.asarray(-total_C[-1] / total_C[-2])}
    drawn_BC = weights_BD.astype(np.float64, copy=False) @ sums_DC
    n_B = drawn_BC[:, -2]
    n_B[n_B == 0] = np.nan  # a resample that drew only documents without a token says nothing
    return measured, {"rbp": drawn_BC[:, :-2] / n_B[:, None], "cross_entropy": -drawn_BC[:, -1] / n_B}


def _resampled_values(
    more: dict[str, Quantity], rank_R: Floats, tokens_DR: csr_array, logprob_DR: csr_array, weights_BD: Floats, V: int
) -> Curves:
    rows, blocks = max(1, _BLOCK_BYTES // (8 * len(rank_R))), []
    for begin in range(0, len(weights_BD), rows):
        drawn_BR, logprob_BR = ((each.T @ weights_BD[begin : begin + rows].T).T for each in (tokens_DR, logprob_DR))
        blocks.append(_values(more, Counts(rank_R, drawn_BR, logprob_BR, V)))
    return {law: np.concatenate([block[law] for block in blocks]) for law in more}


def _values(more: dict[str, Quantity], counts: Counts) -> Curves:
    """Quantities defined in `rbpx.laws.quantities`; NaN where a resample contains no token."""
    says_B = counts.tokens_BR.sum(axis=1) > 0
    resampled = Counts(counts.rank_R, counts.tokens_BR[says_B], counts.sum_logprob_BR[says_B], counts.vocab_size)
    filled = {law: np.full(len(says_B), np.nan) for law in more}
    for law, definition in more.items():
        filled[law][says_B] = definition.value(resampled)
    return filled


def _parameter(fit: RankFit, name: str) -> float:
    value = fit.params[name]
    return np.nan if value is None else float(value)


def _derive(beta: Any, gamma: Any, vocab_size: int) -> tuple[Floats, Floats]:
    """Derived (-ln RBP_1, CE) for each (beta, gamma); NaN where those are, for a fit that has no numbers."""
    beta_B, gamma_B = np.atleast_1d(np.asarray(beta, float)), np.atleast_1d(np.asarray(gamma, float))
    rbp1_B, cross_entropy_B = np.full(len(beta_B), np.nan), np.full(len(beta_B), np.nan)
    known_B = np.isfinite(beta_B) & np.isfinite(gamma_B)
    if known_B.any():
        derived = derived_power_law(beta_B[known_B], gamma_B[known_B], vocab_size)
        rbp1_B[known_B], cross_entropy_B[known_B] = derived.neg_ln_rbp_1, derived.cross_entropy_nats
    return rbp1_B, cross_entropy_B


def _resampled_theta(paper: RankFit, rank_R: Floats, tokens_DR: csr_array, weights_BD: Floats) -> tuple[Floats, Floats]:
    """(beta, gamma) refitted to each resample; NaN where the fit itself has no mu and sigma to step from."""
    if paper.status is not Status.ok:
        unknown_B = np.full(len(weights_BD), np.nan)
        return unknown_B, unknown_B
    mu_B, sigma_B = step_paper(paper, weights_BD @ (tokens_DR @ paper_slopes(paper, rank_R))).T
    return 1 - mu_B / sigma_B**2, 0.5 / sigma_B**2


def _approximate(paper: RankFit) -> tuple[float, float] | None:
    mu, sigma = paper.params["mu"], paper.params["sigma"]
    if mu is None or sigma is None:
        return None
    derived = derived_approximation(mu, sigma)
    return float(derived.neg_ln_rbp_1), float(derived.cross_entropy_nats)
