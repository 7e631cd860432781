"""Counts windows of consecutive tokens that are all hits, and predicts their share from the correlation of hits.

Hits cluster in easy documents, passages and copied phrases, so such windows are more frequent than RBP_k^N.

Shapes: T tokens, D documents, R streaks of hits, L lags, N window lengths, B replicates.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.numeric import Floats

Integers = NDArray[np.int64]


def count_windows(
    hit_T: NDArray[np.bool_], doc_T: Integers, n_D: Integers, lengths: Sequence[int]
) -> tuple[Floats, Floats]:
    """Counts windows of N consecutive tokens of a document, at stride 1: those of hits, and all, each [D, N].

    A document of n tokens has max(0, n - N + 1); a streak of L hits contains max(0, L - N + 1) of hits. Tokens come
    document by document, in order. Source: RBP paper (arXiv 2510.20387), eq. 6.
    """
    follows_T = np.zeros(len(hit_T), dtype=bool)  # a hit in the same document
    follows_T[1:] = hit_T[:-1] & (doc_T[1:] == doc_T[:-1])
    begin_R = np.flatnonzero(hit_T & ~follows_T)
    # The hits between the starts of two streaks are those of the first.
    length_R = np.diff(np.append((np.cumsum(hit_T) - hit_T)[begin_R], hit_T.sum()))
    of_hits = [np.bincount(doc_T[begin_R], np.maximum(0, length_R - N + 1), len(n_D)) for N in lengths]
    return np.stack(of_hits, axis=1), np.maximum(0.0, n_D[:, None] - np.array(lengths) + 1)


def window_share(hit_DN: Floats, total_DN: Floats, weights_BD: Floats | None = None) -> Floats:
    """The share of windows of hits, pooled over documents, [N] or [B, N]; NaN without such a window."""
    weights = np.ones(len(hit_DN)) if weights_BD is None else weights_BD
    with np.errstate(invalid="ignore"):
        return np.asarray((weights @ hit_DN) / (weights @ total_DN))


def autocorrelation(hit_T: NDArray[np.bool_], n_D: Integers, max_lag: int) -> Floats:
    """The correlation of the hits of two tokens of a document that are `lag` scored tokens apart, [L].

    rho_l is the mean over all pairs (i, i + l) of (x_i - p)(x_{i+l} - p) / (p (1 - p)), p the share of hits of all
    tokens, so differences between documents count. NaN without a pair, and if p is 0 or 1.
    """
    p, rho_L = float(hit_T.mean()), np.full(max_lag, np.nan)
    if p in (0.0, 1.0):
        return rho_L
    # All documents in one row, each followed by zeros so that no lag reaches into the next.
    n_lags = min(max_lag, int(n_D.max()) - 1)
    row = np.zeros(len(hit_T) + n_lags * len(n_D))
    row[np.arange(len(hit_T)) + n_lags * np.repeat(np.arange(len(n_D)), n_D)] = hit_T - p
    for lag in range(1, n_lags + 1):
        n_pairs = np.maximum(n_D - lag, 0).sum()
        rho_L[lag - 1] = row[:-lag] @ row[lag:] / (n_pairs * p * (1 - p))
    return rho_L


def dependent_hits(rbp: float, rho_L: Floats, N: int) -> tuple[float, float]:
    """Predicts the share of windows of N hits, and N_eff, from mean and autocorrelation of the hits.

    The hits in a window vary 1 + 2 sum_{l<N} (1 - l/N) rho_l times as much as independent ones; N_eff is N over that.
    With r the mean correlation of two tokens of a window, p_N = RBP_k prod_{i=1}^{N-1} (RBP_k + (i - RBP_k) r) / (1 +
    (i - 1) r), a beta-binomial. NaN where a rho is NaN or too negative for that.
    """
    inflation = 1 + 2 * float((1 - np.arange(1, N) / N) @ rho_L[: N - 1])
    n_effective = N / inflation if inflation > 0 else np.nan
    if N == 1 or rbp in (0.0, 1.0):
        return rbp, n_effective
    r, i = (inflation - 1) / (N - 1), np.arange(1, N)
    chances = rbp + (i - rbp) * r
    if not (r <= 1 and np.all(chances >= 0)):  # false for NaN
        return np.nan, n_effective
    return float(rbp * np.prod(chances / (1 + (i - 1) * r))), n_effective
