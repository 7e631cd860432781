"""Corrects the bias of a plug-in entropy of counted ranks.

H(P) of counted ranks is too small, because ranks that were not seen are missing. Corrected values stand beside the
identity of `error_entropy`, never inside it.
Shapes: C pairs of a document and a rank, D documents, R different ranks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from rbpx.laws.numeric import Floats
from rbpx.runs.documents import distinct_ranks


def entropy_jackknife(document: ArrayLike, rank: ArrayLike, n_tokens: ArrayLike) -> tuple[float, float]:
    """Entropy corrected by leaving out documents: without the part of the bias that falls as 1/D.

    H_J = D H - (D - 1) mean_d H_(-d), H_(-d) the plug-in entropy of all tokens but those of document d. The tokens of
    a document may be alike, which corrections for independent tokens do not account for. Rare ranks go on appearing
    as documents are added, so the bias falls more slowly than 1/D, and part of it remains: H_J tends to be too small.

    Args:
        document: the document, any whole number, shape [C].
        rank: the rank, a multiple of 1/2, shape [C]; a pair of document and rank may repeat.
        n_tokens: tokens with this rank in this document, shape [C].

    Returns:
        H_J and its standard error sqrt((D - 1) / D sum_d (H_(-d) - mean)^2), nats.

    Raises:
        ValueError: if shapes disagree, a count is negative, or fewer than 2 documents have tokens.

    Source:
        Zahl (1977), Jackknifing an index of diversity; not part of arXiv 2510.04067.
    """
    pairs = _pairs(document, rank, n_tokens, 2)
    n_D, n_R = pairs.of_document(), pairs.of_rank()
    D, n, whole = len(n_D), n_R.sum(), xlogy(n_R, n_R).sum()
    # Leaving out a document changes the counts of its own ranks only.
    left_C = n_R[pairs.rank_C] - pairs.n_C
    changed_C = xlogy(left_C, left_C) - xlogy(n_R, n_R)[pairs.rank_C]
    without_D = np.log(n - n_D) - (whole + np.bincount(pairs.doc_C, weights=changed_C)) / (n - n_D)
    plug_in = np.log(n) - whole / n
    spread = np.sum((without_D - without_D.mean()) ** 2) * (D - 1) / D
    return float(D * plug_in - (D - 1) * without_D.mean()), float(np.sqrt(spread))


def entropy_extrapolated(document: ArrayLike, rank: ArrayLike, n_tokens: ArrayLike) -> float | None:
    """Entropy at infinitely many documents, if the bias goes on falling as it does from a quarter to all of them.

    With H_1 the plug-in entropy of all documents, H_2 and H_4 its means over halves and quarters,
    q = (H_1 - H_2) / (H_2 - H_4) and H = H_1 + (H_1 - H_2) q / (1 - q): a bias that falls as D^(-b), q = 2^(-b). In
    truth it falls faster and faster, so this tends to be too large where many ranks are rare, as `entropy_jackknife`
    (b = 1) tends to be too small. Where the two differ by less than the standard error, noise may have reversed their
    order, and the remaining bias is unknown.

    Args:
        document: as in `entropy_jackknife`; documents go to the parts in turn, in the order of their numbers.
        rank: as in `entropy_jackknife`.
        n_tokens: as in `entropy_jackknife`.

    Returns:
        H, nats; None where q is not between 0 and 1, so that nothing can be extrapolated.

    Raises:
        ValueError: if shapes disagree, a count is negative, or fewer than 4 documents have tokens.

    Source:
        Aitken's delta-squared process; the use of halves and quarters as in Strong et al. (1998), Phys. Rev. Lett. 80.
    """
    pairs = _pairs(document, rank, n_tokens, 4)
    H_1, H_2, H_4 = (np.mean([pairs.entropy(parts, part) for part in range(parts)]) for parts in (1, 2, 4))
    if not 0 < H_1 - H_2 < H_2 - H_4:
        return None
    q = (H_1 - H_2) / (H_2 - H_4)
    return float(H_1 + (H_1 - H_2) * q / (1 - q))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Counts by document and rank, both numbered from 0 without holes."""

    doc_C: NDArray[np.intp]
    rank_C: NDArray[np.intp]
    n_C: Floats

    def of_document(self) -> Floats:
        return np.bincount(self.doc_C, weights=self.n_C).astype(np.float64)

    def of_rank(self) -> Floats:
        return np.bincount(self.rank_C, weights=self.n_C).astype(np.float64)

    def entropy(self, parts: int, part: int) -> float:
        """Plug-in entropy of every `parts`-th document."""
        mine_C = self.doc_C % parts == part
        n_R = np.bincount(self.rank_C[mine_C], weights=self.n_C[mine_C])
        return float(np.log(n_R.sum()) - xlogy(n_R, n_R).sum() / n_R.sum())


def _pairs(document: ArrayLike, rank: ArrayLike, n_tokens: ArrayLike, least: int) -> _Pairs:
    doc_C, rank_C = np.asarray(document), np.asarray(rank)
    n_C = np.asarray(n_tokens, dtype=np.float64)
    if doc_C.ndim != 1 or not doc_C.shape == rank_C.shape == n_C.shape:
        raise ValueError(f"document, rank and n_tokens have shapes {doc_C.shape}, {rank_C.shape}, {n_C.shape}")
    if not np.all((n_C >= 0) & np.isfinite(n_C)):
        raise ValueError("n_tokens must be finite counts >= 0")
    doc_C, rank_C, n_C = (each[n_C > 0] for each in (doc_C, rank_C, n_C))
    further_C = (doc_C[1:] == doc_C[:-1]) & (rank_C[1:] > rank_C[:-1])
    is_next_C = doc_C[1:] > doc_C[:-1]
    ranks, rank_C = distinct_ranks(rank_C)
    if np.all(further_C | is_next_C):  # each pair once and in order, as the store gives them
        pairs = _Pairs(np.append(0, np.cumsum(is_next_C))[: len(n_C)], rank_C, n_C)
    else:
        _, doc_C = np.unique(doc_C, return_inverse=True)
        places, where_C = np.unique(doc_C * len(ranks) + rank_C, return_inverse=True)
        summed_C = np.bincount(where_C, weights=n_C).astype(np.float64)
        pairs = _Pairs(places // len(ranks), places % len(ranks), summed_C)
    n_documents = len(pairs.of_document())
    if n_documents < least:
        raise ValueError(f"needs at least {least} documents with tokens, got {n_documents}")
    return pairs
