"""Tie rules: the rank of a token from the number of logits that exceed its own and the number that equal it.

Source: RBP paper (arXiv 2510.20387), eq. 3, which is the pessimistic rule.
"""

from enum import StrEnum

__all__ = ["OFFICIAL", "Ties", "rule_of"]

OFFICIAL = "official"  # the protocol of the RBP paper's authors


class Ties(StrEnum):
    """The place of the ground-truth token among tokens with exactly its logit."""

    pessimistic = "pessimistic"
    optimistic = "optimistic"
    mid = "mid"


def rule_of(protocol: str | None) -> Ties:
    """The default rule: the paper's, or for the official protocol that of its authors' code."""
    return Ties.optimistic if protocol == OFFICIAL else Ties.pessimistic
