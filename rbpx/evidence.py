"""What one run says, and would say had other documents been drawn: counts of ranks in, the curves of the laws out.

Shapes: D documents, R different ranks, K values of k, B resamples of the documents.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from rbpx.laws.derived import derived_approximation, derived_power_law
from rbpx.laws.error_entropy import Terms, decompose
from rbpx.laws.lognormal import RankFit, fit_full, fit_paper, resample_paper
from rbpx.status import Status

Floats = npt.NDArray[np.float64]
_BLOCK_BYTES = 64 * 2**20  # of resampled counts at a time


@dataclass(frozen=True, eq=False)
class Curves:
    """Quantities of one run; each is a scalar (or [K]) for the run itself, [B] (or [B, K]) for its resamples.

    Attributes:
        rbp: RBP_k for the k asked, shares.
        cross_entropy: nats.
        lognormal_rbp1: -ln RBP_1 derived from the rank model, nats; NaN where there is none.
        lognormal_cross_entropy: cross-entropy derived from the rank model, nats; NaN where there is none.
        error_entropy: nats, as are the next two; the three add up to cross_entropy.
        self_alignment: Kullback-Leibler divergence of the shares of ranks from their scores.
        confidence: -ln of the sum of the scores.
    """

    rbp: Floats
    cross_entropy: Floats
    lognormal_rbp1: Floats
    lognormal_cross_entropy: Floats
    error_entropy: Floats
    self_alignment: Floats
    confidence: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """One run under one tie rule.

    Attributes:
        measured: the curves of the run.
        resampled: the curves of its resamples.
        paper: lognormal fitted to the ranks from 2 up, as published.
        full: the same family fitted to all ranks.
        approximated: (-ln RBP_1, cross-entropy) of `paper` by the paper's own approximation; None without mu, sigma.
    """

    measured: Curves
    resampled: Curves
    paper: RankFit
    full: RankFit
    approximated: tuple[float, float] | None


def weigh(counts: pa.Table, weights_BD: npt.NDArray[np.int64], k_grid: list[int], vocab_size: int) -> Evidence:
    """Turn the rank counts of each document (query `document_ranks`) into the curves of a run and of its resamples."""
    rank_R, column = np.unique(counts["rank"].to_numpy(), return_inverse=True)
    shape = (weights_BD.shape[1], len(rank_R))
    at = (counts["doc_id"].to_numpy(), column)
    tokens_DR = csr_array((counts["n_tokens"].to_numpy().astype(np.float64), at), shape)
    logprob_DR = csr_array((counts["sum_logprob"].to_numpy(), at), shape)
    tokens_R, logprob_R = (np.asarray(counts_DR.sum(axis=0), float) for counts_DR in (tokens_DR, logprob_DR))

    paper, full = fit_paper(rank_R, tokens_R), fit_full(rank_R, tokens_R, vocab_size)
    theta = (_parameter(paper, "beta"), _parameter(paper, "gamma"))
    # k counts its ranks by position: the ranks are sorted, so RBP_k is a running sum read at one place.
    until_K = np.searchsorted(rank_R, k_grid, side="right")
    measured = _curves(tokens_R[None], logprob_R[None], until_K, _derive(*theta, vocab_size))
    rows = max(1, _BLOCK_BYTES // (8 * len(rank_R)))
    blocks = []
    for begin in range(0, len(weights_BD), rows):
        drawn_BD = weights_BD[begin : begin + rows].astype(np.float64)
        drawn_BR = np.asarray((tokens_DR.T @ drawn_BD.T).T)
        theta_B = _resampled_theta(paper, rank_R, drawn_BR)
        curves = _derive(*theta_B, vocab_size)
        blocks.append(_curves(drawn_BR, np.asarray((logprob_DR.T @ drawn_BD.T).T), until_K, curves))
    resampled = Curves(**{f.name: np.concatenate([getattr(b, f.name) for b in blocks]) for f in fields(Curves)})
    first = Curves(**{f.name: getattr(measured, f.name)[0] for f in fields(Curves)})
    return Evidence(first, resampled, paper, full, _approximate(paper))


def _parameter(fit: RankFit, name: str) -> float:
    value = fit.params[name]
    return np.nan if value is None else float(value)


def _derive(beta: Any, gamma: Any, vocab_size: int) -> tuple[Floats, Floats]:
    """Derived (-ln RBP_1, CE) for each (beta, gamma); NaN where those are, for a fit that has no numbers."""
    beta_B, gamma_B = np.atleast_1d(np.asarray(beta, float)), np.atleast_1d(np.asarray(gamma, float))
    rbp1_B, cross_entropy_B = np.full(len(beta_B), np.nan), np.full(len(beta_B), np.nan)
    known_B = np.isfinite(beta_B) & np.isfinite(gamma_B)
    if known_B.any():
        found = derived_power_law(beta_B[known_B], gamma_B[known_B], vocab_size)
        rbp1_B[known_B], cross_entropy_B[known_B] = found.neg_ln_rbp_1, found.cross_entropy_nats
    return rbp1_B, cross_entropy_B


def _resampled_theta(paper: RankFit, rank_R: Floats, drawn_BR: Floats) -> tuple[Floats, Floats]:
    """(beta, gamma) refitted to each resample; NaN where the fit itself has no mu and sigma to step from."""
    unknown_B = np.full(len(drawn_BR), np.nan)
    if paper.status is not Status.ok:
        return unknown_B, unknown_B
    mu_B, sigma_B = resample_paper(paper, rank_R, drawn_BR).T
    return 1 - mu_B / sigma_B**2, 0.5 / sigma_B**2


def _curves(
    tokens_BR: Floats, logprob_BR: Floats, until_K: npt.NDArray[np.intp], lognormal: tuple[Floats, Floats]
) -> Curves:
    n_B = tokens_BR.sum(axis=1)
    if not n_B.all():  # resamples that drew only documents without a token say nothing
        return _with_gaps(n_B > 0, tokens_BR, logprob_BR, until_K, lognormal)
    running_BR = np.concatenate([np.zeros((len(tokens_BR), 1)), np.cumsum(tokens_BR, axis=1)], axis=1)
    terms: Terms = decompose(tokens_BR, logprob_BR)
    return Curves(
        rbp=running_BR[:, until_K] / running_BR[:, -1:],
        cross_entropy=terms.cross_entropy_nats,
        lognormal_rbp1=lognormal[0],
        lognormal_cross_entropy=lognormal[1],
        error_entropy=terms.error_entropy,
        self_alignment=terms.self_alignment,
        confidence=terms.confidence,
    )


def _with_gaps(
    says_B: npt.NDArray[np.bool_],
    tokens_BR: Floats,
    logprob_BR: Floats,
    until_K: npt.NDArray[np.intp],
    lognormal: tuple[Floats, Floats],
) -> Curves:
    """The curves of the resamples that hold tokens, NaN for the others; a fit leaves those out and counts them."""
    some = _curves(tokens_BR[says_B], logprob_BR[says_B], until_K, (lognormal[0][says_B], lognormal[1][says_B]))
    filled = {}
    for field in fields(Curves):
        value = getattr(some, field.name)
        filled[field.name] = np.full((len(says_B), *value.shape[1:]), np.nan)
        filled[field.name][says_B] = value
    return Curves(**filled)


def _approximate(paper: RankFit) -> tuple[float, float] | None:
    mu, sigma = paper.params["mu"], paper.params["sigma"]
    if mu is None or sigma is None:
        return None
    found = derived_approximation(mu, sigma)
    return float(found.neg_ln_rbp_1), float(found.cross_entropy_nats)
