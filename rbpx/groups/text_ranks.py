"""The ranks of the scored tokens of a run in the order of its text."""

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.store.run_tokens import ranks_under, run_tokens
from rbpx.ties import Ties


def text_ranks(
    connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Document and rank of each scored token, documents one after another, tokens in the order of the text, [T] each.

    Measured runs were written in that order and mostly come in it, which takes less time to see than to sort.
    """
    tokens = run_tokens(connection, run_id, ("doc_id", "position", "greater", "ties"))
    doc_T, position_T, rank_T = *(tokens[name].to_numpy() for name in ("doc_id", "position")), ranks_under(tokens, ties)
    further_T = (doc_T[1:] == doc_T[:-1]) & (position_T[1:] > position_T[:-1])
    if not np.all(further_T | (doc_T[1:] > doc_T[:-1])):
        order = np.lexsort((position_T, doc_T))
        doc_T, rank_T = doc_T[order], rank_T[order]
    return doc_T, rank_T
