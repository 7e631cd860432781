"""Computes how far each token id improves: its slope, fall and share, with standard errors over documents.

Shapes: M tokens, T points, V token ids that occur, P pairs of an id and a document that holds it.
"""

from typing import Any, Final

import numpy as np

from rbpx.laws.intervals.estimate import document_t, effective_number
from rbpx.laws.numeric import Floats
from rbpx.runs.tokens import Tokens
from rbpx.store.store import Record


def by_token(tokens: Tokens, k: int) -> list[Record]:
    """The numbers of each token id for `learning`; None where there is none.

    The slope has half of its interval, with the effective number of documents by occurrences of the id; the share has a
    standard error, with that by all tokens. Squares about a ratio r = sum y / sum x over documents: sum (y - r x)^2 =
    Syy - 2 r Sxy + r^2 Sxx.
    """
    nats_MT, about_T = tokens.nats_MT.astype(np.float64), tokens.x_T - tokens.x_T.mean()
    id_V, of_M = np.unique(tokens.token_id_M, return_inverse=True)
    n_documents, doc_M = int(tokens.doc_M.max()) + 1, tokens.doc_M
    pair_P, pair_M = np.unique(of_M * n_documents + doc_M, return_inverse=True)
    of_P, doc_P = np.divmod(pair_P, n_documents)
    fall_M = nats_MT[:, 0] - nats_MT[:, -1]
    slope_M = nats_MT @ about_T / (about_T @ about_T)
    n_P, slope_P, fall_P = (np.bincount(pair_M, each).astype(np.float64) for each in (None, slope_M, fall_M))
    whole_D, n_V, documents_V = np.bincount(doc_M, fall_M).astype(np.float64), np.bincount(of_M), np.bincount(of_P)
    whole = float(whole_D.sum())

    def summed(value_P: Floats) -> Floats:
        return np.bincount(of_P, value_P).astype(np.float64)

    def error(y_P: Floats, x_P: Floats, r_V: Floats, xx: Floats | float, n: Any) -> Floats:
        square_V = summed(y_P * y_P) - 2 * r_V * summed(y_P * x_P) + r_V * r_V * xx
        return np.where(n > 1, np.sqrt(np.maximum(square_V, 0) * n / (n - 1)), np.nan)

    hit_MT = tokens.rank_MT[:, [0, -1]] <= k
    ends = [np.bincount(of_M, each) / n_V for each in (nats_MT[:, 0], nats_MT[:, -1], *hit_MT.T)]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope_V, fall_V = summed(slope_P) / n_V, summed(fall_P)
        effective_V, effective = n_V**2 / summed(n_P * n_P), effective_number(np.bincount(doc_M))
        slope_stderr_V = error(slope_P, n_P, slope_V, summed(n_P * n_P), effective_V) / n_V
        share_V = fall_V / (whole if whole > 0 else np.nan)
        share_stderr_V = error(fall_P, whole_D[doc_P], share_V, float(whole_D @ whole_D), effective) / whole
    slope_half_V = slope_stderr_V * [document_t(n) for n in effective_V.tolist()]
    columns = (id_V, n_V, documents_V, slope_V, slope_half_V, *ends, fall_V, share_V, share_stderr_V)
    order_V = np.lexsort((id_V, -fall_V))
    return [
        dict(zip(_COLUMNS, (None if each != each else each for each in row), strict=True))
        for row in zip(*(each[order_V].tolist() for each in columns), strict=True)
    ]


_COLUMNS: Final = (
    *("token_id", "n_tokens", "n_documents", "slope", "slope_half", "smallest_nats", "largest_nats"),
    *("smallest_rbp", "largest_rbp", "fall_nats", "share", "share_stderr"),
)
