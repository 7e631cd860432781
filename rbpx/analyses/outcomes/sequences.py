"""Documents cut into sequences of N scored tokens: ranks in, how many sequences there are and pass, by document out.

Shapes: T tokens, K values of k, L lengths of a sequence, D documents, Q sequences, d documents that have tokens.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["cut_sequences"]

Floats = npt.NDArray[np.float64]


def cut_sequences(
    doc_T: npt.NDArray[np.int64], rank_T: Floats, k_grid: Sequence[int], lengths: Sequence[int], n_documents: int
) -> Floats:
    """Sequences, passes (all ranks at most k), hits and ordered pairs of hits, of each document: [4, K, L, D].

    Each document is cut from its first scored token on. What is left at its end is dropped; positions that were not
    scored are bridged.

    Args:
        doc_T: the document of each scored token, from 0, tokens in the order of the text.
        rank_T: their ranks.
        k_grid: a hit is a rank of at most k.
        lengths: tokens of a sequence.
        n_documents: number of documents, those without a token included.
    """
    begin_d = np.flatnonzero(np.diff(doc_T, prepend=-1))
    doc_d, n_tokens_d = doc_T[begin_d], np.diff(begin_d, append=len(doc_T))
    hits_upto_KT = np.zeros((len(k_grid), len(doc_T) + 1), np.int64)
    np.cumsum(rank_T <= np.asarray(k_grid)[:, None], axis=1, out=hits_upto_KT[:, 1:])
    counts_4KLD = np.zeros((4, len(k_grid), len(lengths), n_documents))
    for at, n in enumerate(lengths):
        n_sequences_d = n_tokens_d // n
        which_Q = np.repeat(np.arange(len(doc_d)), n_sequences_d)
        nth_Q = np.arange(len(which_Q)) - (np.cumsum(n_sequences_d) - n_sequences_d)[which_Q]
        first_Q = begin_d[which_Q] + n * nth_Q
        counts_4KLD[0, :, at, doc_d] = n_sequences_d[:, None]
        for of_k, upto_T in zip(range(len(k_grid)), hits_upto_KT, strict=True):
            hits_Q = upto_T[first_Q + n] - upto_T[first_Q]
            for c, of_Q in enumerate((hits_Q == n, hits_Q, hits_Q * (hits_Q - 1)), start=1):
                counts_4KLD[c, of_k, at, doc_d] = np.bincount(which_Q, of_Q, len(doc_d))
    return counts_4KLD
