"""Cluster bootstrap: a number of documents in, how often each is drawn in each resample out."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["document_weights"]


def document_weights(n_documents: int, n_resamples: int, seed: int) -> NDArray[np.int64]:
    """How often each document is drawn when as many documents are drawn with replacement.

    The tokens of a document depend on each other, so whole documents are drawn. One table of weights serves every
    size of a family, which keeps the resamples paired: with counts c of shape [n_documents, n_columns], any sum over
    tokens under all resamples is `weights @ c`.

    Args:
        n_documents: number of documents.
        n_resamples: number of resamples B.
        seed: of numpy's PCG64 generator; the same seed gives the same weights.

    Returns:
        Integers of shape [n_resamples, n_documents]; each row sums to n_documents.

    Raises:
        ValueError: if either number is below 1.
    """
    if n_documents < 1 or n_resamples < 1:
        raise ValueError(f"needs at least 1 document and 1 resample, got {n_documents} and {n_resamples}")
    drawn_BD = np.random.default_rng(seed).integers(n_documents, size=(n_resamples, n_documents))
    drawn_BD += n_documents * np.arange(n_resamples)[:, None]
    counts = np.bincount(drawn_BD.ravel(), minlength=n_resamples * n_documents)
    return counts.reshape(n_resamples, n_documents).astype(np.int64, copy=False)
