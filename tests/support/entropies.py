"""A correction of entropies for independent tokens, which those over documents are compared with."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy


def entropy_miller_madow(n_tokens: ArrayLike) -> NDArray[np.float64]:
    """H_MM = H + (m - 1) / (2 n), nats: H the plug-in entropy of n tokens of m different ranks, shape [..., m].

    Source: Miller (1955), Note on the bias of information estimates.
    """
    n_E = np.asarray(n_tokens, dtype=np.float64)
    n = n_E.sum(axis=-1)
    plug_in = -np.sum(xlogy(n_E / n[..., None], n_E / n[..., None]), axis=-1)
    return np.asarray(plug_in + (np.count_nonzero(n_E, axis=-1) - 1) / (2.0 * n))
