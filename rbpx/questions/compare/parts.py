"""Computes bits per byte and shares of two models on a part of a text, with intervals over documents.

The sides are subtracted last, so that swapping them changes signs and no digit. Shapes: D documents, N tokens that both
scored; the 3 sums are nats of a, nats of b, and bytes.
"""

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.laws.intervals.estimate import Estimate, by_name, effective_number, from_influence
from rbpx.laws.numeric import Floats
from rbpx.store.store import Record

KINDS: Final = ("word", "number", "white space", "punctuation", "non-ASCII", "mixed", "unknown")
"""Kinds of stretches, white space around them ignored; `unknown` if the store lacks the text."""


def compare_part(part_3D: Floats, whole_3D: Floats) -> Record | None:
    """Compares two models on one part of a text, from its sums and those of the whole; None without text.

    `bits_a` and `bits_b` per byte and `change` b - a have linearised intervals; `share` is of the whole difference.
    """
    nats_a_D, nats_b_D, bytes_D = part_3D
    if not bytes_D.any():
        return None
    change_D, whole = nats_b_D - nats_a_D, float((whole_3D[1] - whole_3D[0]).sum())
    a, b, change = (_ratio(nats_D / math.log(2), bytes_D) for nats_D in (nats_a_D, nats_b_D, change_D))
    share = float(change_D.sum()) / whole if whole else None
    counts = {"n_bytes": round(float(bytes_D.sum())), "documents": int(np.count_nonzero(bytes_D))}
    return {**by_name(bits_a=a, bits_b=b, change=change), "share": share, **counts}


def shares(doc_N: npt.NDArray[np.int64], **meets_N: npt.NDArray[np.bool_]) -> Record:
    """Shares of the tokens that meet each named condition, with intervals over documents."""
    _, doc_N, tokens_D = np.unique(doc_N, return_inverse=True, return_counts=True)
    hits = {name: np.bincount(doc_N, of_N, len(tokens_D)) for name, of_N in meets_N.items()}
    found = {name: _ratio(hits_D, tokens_D) for name, hits_D in hits.items()}
    return by_name(**{name: each.through(lambda end: min(max(end, 0.0), 1.0)) for name, each in found.items()})


def _ratio(sum_D: npt.NDArray[Any], units_D: npt.NDArray[Any]) -> Estimate:
    units = units_D.sum()
    value = float(sum_D.sum() / units)
    return from_influence(value, (sum_D - value * units_D) / units, effective_number(units_D))


@lru_cache(maxsize=65_536)
def kind_of(text: str | None) -> str:
    """The kind of a stretch: letters and _ make a word, digits a number, any non-ASCII character non-ASCII.

    U+FFFD, a tokenizer's sign for part of a character, is non-ASCII: only such characters have parts.
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
    """`length` bytes of a token's text from byte `begin`; None where unknown.

    `n_bytes` is -1 where unknown, and then the part is the whole token.
    """
    if text is None or n_bytes in (-1, length):
        return text
    written = text.encode("utf-8", "surrogatepass")
    if len(written) != n_bytes:
        return None
    return written[begin : begin + length].decode("utf-8", "replace")
