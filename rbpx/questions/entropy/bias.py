"""Corrects the bias of a plug-in entropy of counted ranks: it is too small, because unseen ranks are missing.

Shapes: C pairs of a document and a rank, D documents, R ranks.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from rbpx.laws.numeric import Floats
from rbpx.runs.documents import distinct_ranks

Integers = NDArray[np.int64]


def entropy_jackknife(document_C: Integers, rank_C: Floats, n_C: Floats) -> tuple[float, float]:
    """The entropy corrected by leaving out documents, H_J, and its standard error, nats.

    H_J = D H - (D - 1) mean_d H_(-d), H_(-d) the plug-in entropy without document d; its standard error is sqrt((D - 1)
    / D sum_d (H_(-d) - mean)^2). This removes the bias that falls as 1/D; rare ranks keep appearing as documents are
    added, so H_J tends to be too small. There are 2 documents or more; each pair comes once.

    Source:
        Zahl (1977), Jackknifing an index of diversity; not part of arXiv 2510.04067.
    """
    _, doc_C = np.unique(document_C, return_inverse=True)
    _, at_C = distinct_ranks(rank_C)
    n_D, n_R = np.bincount(doc_C, n_C), np.bincount(at_C, n_C)
    D, n, whole = len(n_D), n_R.sum(), xlogy(n_R, n_R).sum()
    # Leaving out a document changes the counts of its own ranks only.
    left_C = n_R[at_C] - n_C
    changed_D = np.bincount(doc_C, xlogy(left_C, left_C) - xlogy(n_R, n_R)[at_C])
    without_D = np.log(n - n_D) - (whole + changed_D) / (n - n_D)
    spread = np.sum((without_D - without_D.mean()) ** 2) * (D - 1) / D
    return float(D * (np.log(n) - whole / n) - (D - 1) * without_D.mean()), float(np.sqrt(spread))


def entropy_extrapolated(document_C: Integers, rank_C: Floats, n_C: Floats) -> float | None:
    """Extrapolates the entropy, nats, to infinitely many documents, with the rate at which its bias falls.

    With H_1 that of all documents, H_2 and H_4 its means over halves and quarters, q = (H_1 - H_2) / (H_2 - H_4) and H
    = H_1 + (H_1 - H_2) q / (1 - q): a bias that falls as D^(-b), q = 2^(-b); None where q is not between 0 and 1. It
    tends to be too large where many ranks are rare. There are 4 documents or more, which go to the parts in turn.

    Source:
        Aitken's delta-squared process; halves and quarters as in Strong et al. (1998), Phys. Rev. Lett. 80.
    """
    _, doc_C = np.unique(document_C, return_inverse=True)
    _, at_C = distinct_ranks(rank_C)

    def plug_in(of_C: NDArray[np.bool_]) -> float:
        n_R = np.bincount(at_C[of_C], n_C[of_C])
        return float(np.log(n_R.sum()) - xlogy(n_R, n_R).sum() / n_R.sum())

    H_1, H_2, H_4 = (np.mean([plug_in(doc_C % parts == at) for at in range(parts)]) for parts in (1, 2, 4))
    if not 0 < H_1 - H_2 < H_2 - H_4:
        return None
    q = (H_1 - H_2) / (H_2 - H_4)
    return float(H_1 + (H_1 - H_2) * q / (1 - q))
