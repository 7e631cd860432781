"""How far two models are apart on a part of a text: sums by document in, both levels and b - a with intervals out.

Everything is computed for each side alike and subtracted last, so that swapping the sides flips signs and no digit.
Shapes: D documents, N tokens that both scored; the 3 sums are nats of a, nats of b, and bytes (or tokens).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbpx.laws.interval import Estimate, from_influence

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """Two models on one part of a text; bits per byte, or per token where bytes are not known.

    Attributes:
        by: text, kind, place, slice or document.
        name: which one.
        a: bits of side a.
        b: bits of side b.
        change: b - a; below 0 where b predicts better.
        share: of the whole difference in bits; the parts of a text add up to 1. None where there is no difference.
        n_units: bytes (or tokens) of the part.
        n_documents: documents that have some of it.
    """

    by: str
    name: str
    a: Estimate
    b: Estimate
    change: Estimate
    share: float | None
    n_units: int
    n_documents: int


def compared(by: str, name: str, part_3D: Floats, whole_3D: Floats) -> Part | None:
    """Both levels of one part and b - a, intervals over documents (linearised); None for a part without text.

    Args:
        by: what the part is one of.
        name: which one.
        part_3D: its sums.
        whole_3D: those of the text, which the share is of.
    """
    nats_a_D, nats_b_D, units_D = part_3D
    units = float(units_D.sum())
    if not units:
        return None
    change_D = nats_b_D - nats_a_D
    whole_change = float((whole_3D[1] - whole_3D[0]).sum())
    a, b, change = (_ratio(nats_D / math.log(2), units_D) for nats_D in (nats_a_D, nats_b_D, change_D))
    share = float(change_D.sum()) / whole_change if whole_change else None
    return Part(by, name, a, b, change, share, round(units), int(np.count_nonzero(units_D)))


def shares(doc_N: npt.NDArray[np.intp], n_documents: int, **meets_N: npt.NDArray[np.bool_]) -> dict[str, Estimate]:
    """The shares of tokens of which something is true, by name, with their intervals over documents."""
    tokens_D = np.bincount(doc_N, minlength=n_documents).astype(np.float64)
    return {
        name: _ratio(np.bincount(doc_N, of_N, n_documents).astype(np.float64), tokens_D)
        for name, of_N in meets_N.items()
    }


def _ratio(sum_D: Floats, units_D: Floats) -> Estimate:
    """A ratio of sums over documents, with its interval."""
    units = units_D.sum()
    value = float(sum_D.sum() / units)
    return from_influence(value, (sum_D - value * units_D) / units)
