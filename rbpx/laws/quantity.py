"""Quantities of a run that have a law in S, computed from the counts of its ranks and looked up by the name of the law.

Shapes: B is the number of replicates of the documents (1 for what was measured), R of different ranks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from rbpx.laws.names import QUANTITIES
from rbpx.laws.numeric import Floats


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each rank occurs in a run, and in each of its replicates.

    Attributes:
        rank_R: the ranks that occur, from the smallest; multiples of 1/2 under ties=mid.
        tokens_BR: tokens of each rank.
        sum_logprob_BR: sum of their log-probabilities, nats.
        vocab_size: V, the largest rank that there could be.
    """

    rank_R: Floats
    tokens_BR: Floats
    sum_logprob_BR: Floats
    vocab_size: int


@dataclass(frozen=True)
class Quantity:
    """What a module of `rbpx.laws.quantities` gives under the name QUANTITY.

    Attributes:
        label: its name in tables, at most 16 characters.
        equation: how it follows from the ranks.
        source: the publication it is taken from.
        value: of the counts, shape [B]; NaN where it is not known.
        signed: whether it may be negative; the law is then fitted to its absolute value, and a change of sign is a
            status.
    """

    label: str
    equation: str
    source: str
    value: Callable[[Counts], Floats]
    signed: bool = False


def quantity(law: str) -> Quantity | None:
    """The quantity of a law that is a module of its own; None for the laws that are built in."""
    if law not in QUANTITIES:
        return None
    module_quantity: Quantity = import_module(f"rbpx.laws.quantities.{law}").QUANTITY
    return module_quantity
