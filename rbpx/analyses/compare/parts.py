"""Parts of a text: of which kind a stretch is, and how far apart two models are on a part, with intervals.

Everything is computed for each side alike and subtracted last, so that swapping the sides flips signs and no digit.
Shapes: D documents, N tokens that both scored; the 3 sums are nats of a, nats of b, and bytes (or tokens).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.laws.intervals.estimate import Estimate, from_influence
from rbpx.laws.numeric import Floats

KINDS: Final = ("word", "number", "white space", "punctuation", "non-ASCII", "mixed", "unknown")
"""What a stretch of text is, white space around it aside; `unknown` where its text is not in the store."""


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


@lru_cache(maxsize=65_536)
def kind_of(text: str | None) -> str:
    """The kind of a stretch: letters and _ make words, digits numbers; one character beyond ASCII makes it non-ASCII.

    A tokenizer writes a part of a character as U+FFFD, and only characters beyond ASCII have parts.
    """
    if not text:
        return "unknown"
    core = text.strip()
    if not core:
        return "white space"
    if not core.isascii():
        return "non-ASCII"
    if all(c.isalpha() or c == "_" for c in core):
        return "word"
    if core.isdigit():
        return "number"
    return "mixed" if any(c.isalnum() or c == "_" for c in core) else "punctuation"


def part_of(text: str | None, n_bytes: int, begin: int, length: int) -> str | None:
    """The part of a token's text from byte `begin`, `length` bytes long; None where the text is not those bytes.

    Args:
        text: of the token, as its tokenizer writes it alone.
        n_bytes: of the document that the token stands for; -1 where that is not known, and all of it is the part.
        begin: first byte of the part in the token.
        length: bytes of the part.
    """
    if text is None or n_bytes in (-1, length):
        return text
    written = text.encode("utf-8", "surrogatepass")
    if len(written) != n_bytes:
        return None
    return written[begin : begin + length].decode("utf-8", "replace")
