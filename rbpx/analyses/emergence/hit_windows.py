"""Windows of consecutive tokens that are all hits: hits in, windows by document and their share out.

A hit is a token whose rank is at most k. Shapes: T tokens, D documents, N window lengths, B resamples, R streaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of each length in each document, at stride 1.

    Attributes:
        hit_DN: windows in which every token is a hit.
        total_DN: all windows; 0 where the document is shorter than the window.
    """

    hit_DN: Integers
    total_DN: Integers


def streaks(hit_T: ArrayLike, doc_T: ArrayLike) -> tuple[Integers, Integers]:
    """The streaks of hits: maximal sequences of consecutive scored tokens of a document that are all hits.

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

    Returns:
        The counts, shape [D, N].

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
    total = [np.maximum(0, n_D - N + 1) for N in lengths]
    return Windows(np.stack(hit, axis=1), np.stack(total, axis=1))


def window_share(windows: Windows, weights_BD: ArrayLike | None = None) -> NDArray[np.float64]:
    """Share p_{N,k} of windows in which every token is a hit, pooled over documents.

    p_N = sum_d w_d hit_dN / sum_d w_d total_dN, NaN where no document that counts is as long as the window.

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
