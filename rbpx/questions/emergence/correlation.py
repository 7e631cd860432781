"""Counts windows of consecutive tokens that are all hits, and predicts their share from how hits are correlated.

A hit is a token whose rank is at most k. Hits cluster: in easy documents, in easy passages, in the copy of a phrase. So
windows of hits are more frequent than RBP_k^N, and the autocorrelation of hits says by how much, to second order.
Shapes: T tokens, D documents, R streaks of hits, L lags 1 to L, N window lengths, B resamples.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.numeric import Floats


def autocorrelation(hits: Iterable[ArrayLike], max_lag: int) -> Floats:
    """Correlation of the hits of two tokens of a document that are `lag` scored tokens apart.

    rho_l = mean over all pairs (i, i + l) of (x_i - p)(x_{i+l} - p) / (p (1 - p)), pairs pooled over documents, p the
    share of hits of all tokens. There is one p for all documents, so differences between documents count as correlation
    too: they make windows of hits just as differences within a document do.

    Args:
        hits: for each document whether each token is a hit, in order (query `hits`).
        max_lag: the largest lag, in tokens.

    Returns:
        rho at lags 1 to max_lag, shape [L]; NaN at lags without a pair, and everywhere if p is 0 or 1.

    Raises:
        ValueError: if max_lag is below 1, or there are no tokens.
    """
    hits_D = [np.asarray(document) for document in hits]
    length_D = np.array([len(x) for x in hits_D], dtype=np.int64)
    n_tokens = int(length_D.sum())
    if max_lag < 1 or n_tokens == 0:
        raise ValueError(f"needs a lag of at least 1 and a token, got max_lag {max_lag} and {n_tokens} tokens")
    hit_T = np.concatenate(hits_D).astype(np.float64)
    p = hit_T.sum() / n_tokens
    rho_L, lag_L = np.full(max_lag, np.nan), np.arange(1, max_lag + 1)
    if p in (0.0, 1.0):
        return rho_L
    # All documents in one row, with so many zeros behind each that no lag reaches from one into the next.
    n_lags = min(max_lag, int(length_D.max()) - 1)
    row = np.zeros(n_tokens + n_lags * len(length_D))
    row[np.arange(n_tokens) + n_lags * np.repeat(np.arange(len(length_D)), length_D)] = hit_T - p
    product_L = np.zeros(max_lag)
    product_L[:n_lags] = [row[:-lag] @ row[lag:] for lag in range(1, n_lags + 1)]
    # Of the documents that are longer than a lag, each has as many pairs as tokens beyond it.
    ascending_D = np.sort(length_D)
    first_L = np.searchsorted(ascending_D, lag_L, side="right")
    from_D = np.append(np.cumsum(ascending_D[::-1])[::-1], 0)
    pairs_L = from_D[first_L] - (len(ascending_D) - first_L) * lag_L
    np.divide(product_L, pairs_L * p * (1 - p), out=rho_L, where=pairs_L > 0)
    return rho_L


def adjacent_correlation(hit_T: ArrayLike, n_scored: ArrayLike, weights_BD: ArrayLike) -> Floats:
    """The correlation of hits at lag 1, as `autocorrelation` has it, in each resample of the documents, [B].

    Args:
        hit_T: whether each token is a hit, documents one after another.
        n_scored: tokens of each document, [D].
        weights_BD: how often each document is drawn in each resample.

    Returns:
        NaN where all tokens are hits, or none is, or no document has two tokens.
    """
    hit, n_D, weights = np.asarray(hit_T, np.float64), np.asarray(n_scored, np.int64), np.asarray(weights_BD)
    doc_T = np.repeat(np.arange(len(n_D)), n_D)
    is_pair = doc_T[1:] == doc_T[:-1]
    of_pair, ends = doc_T[1:][is_pair], hit[1:][is_pair] + hit[:-1][is_pair]
    both = (hit[1:] * hit[:-1])[is_pair]
    sums_D = [np.bincount(at, of, len(n_D)) for at, of in ((doc_T, hit), (of_pair, both), (of_pair, ends))]
    hits_B, both_B, ends_B, tokens_B, pairs_B = (weights @ of_D for of_D in (*sums_D, n_D, np.maximum(n_D - 1, 0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        p_B = hits_B / tokens_B
        return np.asarray((both_B - p_B * ends_B + p_B**2 * pairs_B) / (pairs_B * p_B * (1 - p_B)), np.float64)


def effective_tokens(rho_L: ArrayLike, lengths: Sequence[int]) -> Floats:
    """Number of independent tokens whose share of hits varies as much as that of a window of N tokens.

    N_eff = N / (1 + 2 sum_{l=1}^{N-1} (1 - l/N) rho_l)

    Args:
        rho_L: autocorrelation at lags 1 to L.
        lengths: window lengths N, in tokens, at most L + 1.

    Returns:
        N_eff, tokens, shape [N]; NaN where a rho is NaN, or where the variance would not be positive.

    Raises:
        ValueError: if a length is below 1 or needs lags that are not there.
    """
    N, inflation_N = np.asarray(lengths, dtype=np.float64), _inflation(rho_L, lengths)
    effective_N = np.full(N.shape, np.nan)
    np.divide(N, inflation_N, out=effective_N, where=inflation_N > 0)
    return effective_N


def beta_binomial_share(rbp: float, rho_L: ArrayLike, lengths: Sequence[int]) -> Floats:
    """Share of windows of hits if the hits of a window are beta-binomial with the measured mean and variance.

    Each window has an ease of its own, drawn from a beta distribution with mean RBP_k; given it, tokens are
    independent. With r_N = 2 / (N (N - 1)) sum_{l=1}^{N-1} (N - l) rho_l, the mean correlation of two tokens of a
    window, the hits of the window have variance N RBP_k (1 - RBP_k) (1 + (N - 1) r_N), and
    p_N = prod_{i=0}^{N-1} (a + i) / (a + b + i) with a = RBP_k (1/r_N - 1), b = (1 - RBP_k) (1/r_N - 1), that is
    p_N = RBP_k prod_{i=1}^{N-1} (RBP_k + (i - RBP_k) r_N) / (1 + (i - 1) r_N), which is RBP_k^N at r_N = 0 and goes on
    to small negative r_N (an urn without replacement).

    Args:
        rbp: RBP_k, the share of hits.
        rho_L: autocorrelation of hits at lags 1 to L.
        lengths: window lengths N, in tokens.

    Returns:
        p_N, shape [N]; NaN where a rho is NaN, or where r_N is above 1 or so negative that no such distribution
        exists. If rbp is 0 or 1, so is p_N.

    Raises:
        ValueError: as in `effective_tokens`, or if rbp is not a share.
    """
    inflation_N = _inflation(rho_L, lengths)
    if not 0 <= rbp <= 1:
        raise ValueError(f"RBP_k is a share from 0 to 1, got {rbp}")
    if rbp in (0.0, 1.0):
        return np.full(inflation_N.shape, rbp)
    return np.array([_beta_binomial(rbp, float(f), N) for f, N in zip(inflation_N, lengths, strict=True)])


def _beta_binomial(rbp: float, inflation: float, N: int) -> float:
    if N == 1:
        return rbp
    r, i = (inflation - 1) / (N - 1), np.arange(1, N)
    chances = rbp + (i - rbp) * r
    if not (r <= 1 and np.all(chances >= 0)):  # false for NaN
        return np.nan
    return float(rbp * np.prod(chances / (1 + (i - 1) * r)))


def _inflation(rho_L: ArrayLike, lengths: Sequence[int]) -> Floats:
    """Variance of the hits of a window over that of independent tokens, 1 + 2 sum_{l<N} (1 - l/N) rho_l."""
    rho = np.asarray(rho_L, dtype=np.float64)
    if not lengths or min(lengths) < 1 or max(lengths) > len(rho) + 1:
        raise ValueError(f"windows of {list(lengths)} tokens need 1 <= N <= {len(rho) + 1}, one more than the lags")
    return np.array([1 + 2 * float((1 - np.arange(1, N) / N) @ rho[: N - 1]) for N in lengths])


Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of each length in each document, at stride 1.

    Attributes:
        hit_DN: windows in which every token is a hit.
        total_DN: all windows; 0 where a document is shorter than the window.
    """

    hit_DN: Integers
    total_DN: Integers


def streaks(hit_T: ArrayLike, doc_T: ArrayLike) -> tuple[Integers, Integers]:
    """Find the streaks of hits: maximal sequences of consecutive scored tokens of a document that are all hits.

    Args:
        hit_T: whether each token is a hit, documents one after another, tokens in the order of the text, shape [T].
        doc_T: the document of each, shape [T].

    Returns:
        The document of each streak and its length in tokens, in the order of the text, shape [R] each.
    """
    hit, doc = np.asarray(hit_T, dtype=bool), np.asarray(doc_T)
    follows = np.zeros(len(hit), dtype=bool)  # a hit in the same document
    follows[1:] = hit[:-1] & (doc[1:] == doc[:-1])
    begin_R = np.flatnonzero(hit & ~follows)
    # All hits from the beginning of one streak to that of the next are in the first.
    hits_before_T = np.cumsum(hit) - hit
    length_R = np.diff(np.append(hits_before_T[begin_R], hit.sum()))
    return np.asarray(doc[begin_R], dtype=np.int64), np.asarray(length_R, dtype=np.int64)


def count_windows(n_scored: ArrayLike, doc_id: ArrayLike, length: ArrayLike, lengths: Sequence[int]) -> Windows:
    """Count the windows of N consecutive scored tokens, and those made of hits only, in each document.

    A document of n tokens has max(0, n - N + 1) windows of N. A window of hits lies whole within one streak, and a
    streak of L hits contains max(0, L - N + 1) of them, so the streaks (`streaks`) serve every N.

    Args:
        n_scored: scored tokens of each document, shape [D].
        doc_id: the document of each streak, 0 to D - 1, shape [R].
        length: its tokens, shape [R].
        lengths: the window lengths N, in tokens.

    Raises:
        ValueError: if a window length is below 1, shapes disagree, a document is not among the D, or the streaks of a
            document do not fit into its tokens with a miss between any two.

    Source:
        RBP paper (arXiv 2510.20387), eq. 6.
    """
    n_D = np.asarray(n_scored, dtype=np.int64)
    doc_R, length_R = np.asarray(doc_id, dtype=np.int64), np.asarray(length, dtype=np.int64)
    if not lengths or min(lengths) < 1:
        raise ValueError(f"windows have at least 1 token, got lengths {list(lengths)}")
    if n_D.ndim != 1 or doc_R.ndim != 1 or doc_R.shape != length_R.shape:
        raise ValueError(f"shapes {n_D.shape}, {doc_R.shape}, {length_R.shape} do not go together")
    if np.any((doc_R < 0) | (doc_R >= len(n_D))) or np.any(length_R < 1):
        raise ValueError(f"streaks lie in documents 0 to {len(n_D) - 1}, and have a length of at least 1")
    # The miss between two streaks takes a token too.
    needed_D = _by_document(doc_R, length_R + 1, len(n_D)) - 1
    if np.any(needed_D > n_D):
        worst = int(np.argmax(needed_D - n_D))
        raise ValueError(f"the streaks of document {worst} need {needed_D[worst]} tokens, it has {n_D[worst]}")
    hit = [_by_document(doc_R, np.maximum(0, length_R - N + 1), len(n_D)) for N in lengths]
    return Windows(np.stack(hit, axis=1), np.maximum(0, n_D[:, None] - np.array(lengths) + 1))


def window_share(windows: Windows, weights_BD: ArrayLike | None = None) -> NDArray[np.float64]:
    """Share p_{N,k} of windows in which every token is a hit, pooled over documents.

    p_N = sum_d w_d hit_dN / sum_d w_d total_dN; NaN where no document with a weight is as long as the window.

    Args:
        windows: the counts.
        weights_BD: how often each document is drawn in each resample, shape [B, D]; None counts each once.

    Returns:
        Shares, shape [N], or [B, N] with weights.

    Raises:
        ValueError: if the weights are for another number of documents.
    """
    n_documents = len(windows.total_DN)
    # Counts are whole and far below 2^53, so sums in float64 are exact, and fast.
    weights = np.ones(n_documents) if weights_BD is None else np.asarray(weights_BD, dtype=np.float64)
    if weights.shape[-1] != n_documents:
        raise ValueError(f"weights are for {weights.shape[-1]} documents, the windows are of {n_documents}")
    hit, total = weights @ windows.hit_DN.astype(np.float64), weights @ windows.total_DN.astype(np.float64)
    share = np.full(hit.shape, np.nan)
    np.divide(hit, total, out=share, where=total > 0)
    return share


def _by_document(doc_R: Integers, count_R: Integers, n_documents: int) -> Integers:
    return np.bincount(doc_R, weights=count_R, minlength=n_documents).astype(np.int64)
