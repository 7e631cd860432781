"""Where two models differ most: nats of both over stretches of text in, the places that stand out in."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.analyses.compare.meeting import Stretches

SPAN: Final = 8  # stretches in a row; a line of code or half of a sentence


@dataclass(frozen=True)
class Span:
    """One place of a text.

    Attributes:
        doc_id: its document.
        first_byte: where it begins there.
        n_bytes: its length.
        first: its first stretch.
        change_nats: b - a, summed.
    """

    doc_id: int
    first_byte: int
    n_bytes: int
    first: int
    change_nats: float


def telling_spans(text: Stretches) -> Iterator[Span]:
    """Places, `SPAN` stretches long each and apart from each other, by how far b - a is from 0, furthest first."""
    change_M = text.nats_b_M - text.nats_a_M
    if len(change_M) < SPAN:
        return
    sum_P = np.lib.stride_tricks.sliding_window_view(change_M, SPAN).sum(axis=1)
    (within,) = np.nonzero(text.doc_M[: len(sum_P)] == text.doc_M[SPAN - 1 :])
    taken: npt.NDArray[np.bool_] = np.zeros(len(change_M), bool)
    for first in within[np.argsort(-np.abs(sum_P[within]), kind="stable")]:
        if not taken[first : first + SPAN].any():
            taken[first : first + SPAN] = True
            begin, last = text.begin_M[first], first + SPAN - 1
            n_bytes = text.begin_M[last] + text.length_M[last] - begin
            yield Span(int(text.doc_M[first]), int(begin), int(n_bytes), int(first), float(sum_P[first]))
