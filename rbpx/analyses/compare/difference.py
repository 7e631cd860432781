"""How far two models are apart on a part of a text: sums by document in, both levels and b - a with intervals out.

Everything is computed for each side alike and subtracted last, so that swapping the sides flips signs and no digit.
Shapes: D documents, M stretches of text.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbpx.laws.interval import Estimate, from_influence

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """Two models on one part of a text; bits per byte, or per token where bytes are not known.

    Attributes:
        a: bits of side a.
        b: bits of side b.
        change: b - a; below 0 where b predicts better.
        share: of the whole difference in bits; the parts of a text add up to 1. None where there is no difference.
        n_units: bytes (or tokens) of the part.
        n_documents: documents that have some of it.
    """

    a: Estimate
    b: Estimate
    change: Estimate
    share: float | None
    n_units: int
    n_documents: int


@dataclass(frozen=True, eq=False)
class Sums:
    """What a part of a text sums to, by document: nats of both sides [D] and bytes (or tokens) [D]."""

    nats_a_D: Floats
    nats_b_D: Floats
    units_D: Floats

    @classmethod
    def of(cls, doc_M: npt.NDArray[np.intp], columns: tuple[Floats, Floats, Floats], n_documents: int) -> "Sums":
        """Sums over stretches by their document; the columns are nats of a, nats of b and bytes, each [M]."""
        return cls(*(np.bincount(doc_M, each_M, n_documents).astype(np.float64) for each_M in columns))


def difference(part: Sums, whole: Sums) -> Difference | None:
    """Both levels of one part and b - a, intervals over documents (linearised); None for a part without text.

    Args:
        part: its sums.
        whole: those of the text, which the share is of.
    """
    units = float(part.units_D.sum())
    if not units:
        return None
    change_D = part.nats_b_D - part.nats_a_D
    whole_change = float((whole.nats_b_D - whole.nats_a_D).sum())
    a, b, change = (_ratio(nats_D / math.log(2), part.units_D) for nats_D in (part.nats_a_D, part.nats_b_D, change_D))
    share = float(change_D.sum()) / whole_change if whole_change else None
    return Difference(a, b, change, share, round(units), int(np.count_nonzero(part.units_D)))


def _ratio(sum_D: Floats, units_D: Floats) -> Estimate:
    """A ratio of sums over documents, with its interval."""
    units = units_D.sum()
    value = float(sum_D.sum() / units)
    return from_influence(value, (sum_D - value * units_D) / units)


def share_of(meets_N: npt.NDArray[np.bool_], doc_N: npt.NDArray[np.intp], n_documents: int) -> Estimate:
    """The share of tokens of which something is true, with its interval over documents."""
    meets_D = np.bincount(doc_N, meets_N.astype(np.float64), n_documents)
    return _ratio(meets_D.astype(np.float64), np.bincount(doc_N, minlength=n_documents).astype(np.float64))
