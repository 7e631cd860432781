"""Tie rules: the rank of a token from the number of logits that exceed its own and the number that equal it.

Source: RBP paper (arXiv 2510.20387), eq. 3, which is the pessimistic rule.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["OFFICIAL", "Ties", "rank_of", "rule_of"]

OFFICIAL = "official"  # the protocol of the RBP paper's authors


class Ties(StrEnum):
    """The place of the ground-truth token among tokens with exactly its logit."""

    pessimistic = "pessimistic"
    optimistic = "optimistic"
    mid = "mid"


def rule_of(protocol: str | None) -> Ties:
    """Returns the default rule: the paper's, or for the official protocol that of its authors' code."""
    return Ties.optimistic if protocol == OFFICIAL else Ties.pessimistic


_SHARE_OF_TIES_AHEAD = {Ties.pessimistic: 1.0, Ties.optimistic: 0.0, Ties.mid: 0.5}


def rank_of(greater: "ArrayLike", ties: "ArrayLike", rule: Ties) -> "NDArray[np.float64]":
    """Returns the rank of the ground-truth token, 1 being the best, in float64; exact for counts below 2^52.

    rank = greater + share * ties + 1, with share 1 (pessimistic), 0 (optimistic), 1/2 (mid).

    Raises:
        ValueError: a count is negative.

    Source:
        RBP paper, eq. 3 (pessimistic); the authors' code uses the optimistic rule for its distributions of ranks.
    """
    import numpy as np  # imported here: a request has a tie rule, and printing a stored answer needs no numpy

    greater_f64 = np.asarray(greater, dtype=np.float64)
    ties_f64 = np.asarray(ties, dtype=np.float64)
    if np.any(greater_f64 < 0) or np.any(ties_f64 < 0):
        raise ValueError("greater and ties are counts and cannot be negative")
    return np.asarray(greater_f64 + _SHARE_OF_TIES_AHEAD[Ties(rule)] * ties_f64 + 1.0, dtype=np.float64)
