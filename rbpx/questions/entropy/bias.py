"""Corrects the bias of a plug-in entropy of counted ranks.

H(P) of counted ranks is too small, because ranks that were not seen are missing. Corrected values stand beside the
identity of `error_entropy`, never inside it.
Shapes: C pairs of a document and a rank, D documents, R different ranks.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import xlogy

from rbpx.runs.documents import distinct_ranks


def counts_of(document: ArrayLike, rank: ArrayLike, n_tokens: ArrayLike) -> csr_array:
    """Tokens by document and rank, [D, R].

    Args:
        document: a whole number, shape [C]; documents are in the order of their numbers.
        rank: a multiple of 1/2, shape [C]; a pair of document and rank may repeat.
        n_tokens: tokens with this rank in this document, shape [C].
    """
    _, doc_C = np.unique(document, return_inverse=True)
    _, rank_C = distinct_ranks(np.asarray(rank))
    return csr_array((np.asarray(n_tokens, dtype=np.float64), (doc_C, rank_C)))


def entropy_jackknife(n_DR: csr_array) -> tuple[float, float]:
    """Entropy corrected by leaving out documents: without the part of the bias that falls as 1/D.

    H_J = D H - (D - 1) mean_d H_(-d), H_(-d) the plug-in entropy of all tokens but those of document d. The tokens of
    a document may be alike, which corrections for independent tokens do not account for. Rare ranks go on appearing
    as documents are added, so the bias falls more slowly than 1/D, and part of it remains: H_J tends to be too small.

    Args:
        n_DR: tokens by document and rank, of at least 2 documents.

    Returns:
        H_J and its standard error sqrt((D - 1) / D sum_d (H_(-d) - mean)^2), nats.

    Source:
        Zahl (1977), Jackknifing an index of diversity; not part of arXiv 2510.04067.
    """
    n_D, n_R = n_DR.sum(axis=1), n_DR.sum(axis=0)
    D, n, each_R = len(n_D), n_R.sum(), xlogy(n_R, n_R)
    # Leaving out a document changes the counts of its own ranks only.
    left_C = n_R[n_DR.indices] - n_DR.data
    changed_C = xlogy(left_C, left_C) - each_R[n_DR.indices]
    changed_D = csr_array((changed_C, n_DR.indices, n_DR.indptr), n_DR.shape).sum(axis=1)
    without_D = np.log(n - n_D) - (each_R.sum() + changed_D) / (n - n_D)
    spread = np.sum((without_D - without_D.mean()) ** 2) * (D - 1) / D
    return float(D * _entropy(n_R) - (D - 1) * without_D.mean()), float(np.sqrt(spread))


def entropy_extrapolated(n_DR: csr_array) -> float | None:
    """Entropy at infinitely many documents, if the bias goes on falling as it does from a quarter to all of them.

    With H_1 the plug-in entropy of all documents, H_2 and H_4 its means over halves and quarters, to which documents go
    in turn, q = (H_1 - H_2) / (H_2 - H_4) and H = H_1 + (H_1 - H_2) q / (1 - q): a bias that falls as D^(-b), q =
    2^(-b). In truth it falls faster and faster, so this tends to be too large where many ranks are rare, as
    `entropy_jackknife` (b = 1) tends to be too small. Where the two differ by less than the standard error, noise may
    have reversed their order, and the remaining bias is unknown.

    Args:
        n_DR: tokens by document and rank, of at least 4 documents.

    Returns:
        H, nats; None where q is not between 0 and 1, so that nothing can be extrapolated.

    Source:
        Aitken's delta-squared process; the use of halves and quarters as in Strong et al. (1998), Phys. Rev. Lett. 80.
    """
    H_1, H_2, H_4 = (
        float(np.mean([_entropy(n_DR[part::parts].sum(axis=0)) for part in range(parts)])) for parts in (1, 2, 4)
    )
    if not 0 < H_1 - H_2 < H_2 - H_4:
        return None
    q = (H_1 - H_2) / (H_2 - H_4)
    return H_1 + (H_1 - H_2) * q / (1 - q)


def _entropy(n_R: Any) -> float:
    """Plug-in entropy of counts."""
    return float(np.log(n_R.sum()) - xlogy(n_R, n_R).sum() / n_R.sum())
