"""Quantities computed from the rank counts of a run, each with a law in S, looked up by the name of the law.

Shapes: B bootstrap replicates of the documents (1 for the measured counts), R different ranks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from rbpx.laws.names import QUANTITIES
from rbpx.laws.numeric import Floats


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each rank occurs in a run, or in each of its bootstrap replicates.

    Attributes:
        rank_R: the ranks that occur, ascending; multiples of 1/2 under ties=mid.
        sum_logprob_BR: nats.
        vocab_size: V, the largest possible rank.
    """

    rank_R: Floats
    tokens_BR: Floats
    sum_logprob_BR: Floats
    vocab_size: int


@dataclass(frozen=True)
class Quantity:
    """What a module of `rbpx.laws.quantities` defines as QUANTITY.

    Attributes:
        label: its name in tables, at most 16 characters.
        equation: how it follows from the ranks.
        source: a publication.
        value: function of the counts, shape [B]; NaN where it is undefined.
        signed: whether it may be negative; the law is then fitted to its absolute value.
    """

    label: str
    equation: str
    source: str
    value: Callable[[Counts], Floats]
    signed: bool = False


def quantity(law: str) -> Quantity | None:
    """The quantity of a law that has a module of its own; None for built-in laws."""
    if law not in QUANTITIES:
        return None
    module_quantity: Quantity = import_module(f"rbpx.laws.quantities.{law}").QUANTITY
    return module_quantity
