"""Mean reciprocal rank: the counts of ranks in, -ln MRR out."""

import numpy as np

from rbpx.laws.quantity import Counts, Floats, Quantity


def neg_ln_mrr(counts: Counts) -> Floats:
    """-ln MRR with MRR = mean of 1 / R over the scored tokens, shape [B]."""
    reciprocal_B = counts.tokens_BR @ (1 / counts.rank_R)
    return np.asarray(-np.log(reciprocal_B / counts.tokens_BR.sum(axis=1)))


QUANTITY = Quantity(
    label="-ln MRR",
    equation="-ln(mean of 1/R) = C * S^(-alpha)",
    source="TREC-8 question answering track (Voorhees 1999), for the mean reciprocal rank",
    value=neg_ln_mrr,
)
