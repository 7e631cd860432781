"""Cuts a text into the stretches that two models both scored, each with its nats under both.

The nats of a token are spread evenly over the bytes that it stands for. Under one tokenizer a stretch is a token.
Some stretches in a row make a place; the places where the models are furthest apart are found too.
Shapes: N tokens of one side, M stretches, D documents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.laws.numeric import Floats

Integers = npt.NDArray[np.int64]

SPAN: Final = 8  # stretches of a place; a line of code or half of a sentence
_DOCUMENT = np.int64(1) << 32  # places of a text; documents follow each other on one line


@dataclass(frozen=True, eq=False)
class Tokens:
    """The scored tokens of one run, in order of document and place.

    Attributes:
        doc_N: document of each.
        begin_N: first byte in the document.
        length_N: bytes; 0 for all but the first token of a character that takes several, whose nats belong to it.
        nats_N: -logprob.
    """

    doc_N: Integers
    begin_N: Integers
    length_N: Integers
    nats_N: Floats


@dataclass(frozen=True, eq=False)
class Stretches:
    """The text that both sides scored, cut where a token of either begins or ends.

    Attributes:
        doc_M: document of each.
        begin_M: first byte in the document.
        length_M: bytes.
        a_M: which token of side a it lies in; where several make a character, the first.
        b_M: the same of side b.
        nats_a_M: nats of the stretch under side a.
        nats_b_M: the same under side b.
    """

    doc_M: Integers
    begin_M: Integers
    length_M: Integers
    a_M: Integers
    b_M: Integers
    nats_a_M: Floats
    nats_b_M: Floats

    @cached_property
    def documents(self) -> tuple[Integers, npt.NDArray[np.intp]]:
        """The ids of the D documents, and the place of each stretch's document among them."""
        return np.unique(self.doc_M, return_inverse=True)

    def sums(self, chosen_M: npt.NDArray[Any] | slice = np.s_[:]) -> Floats:
        """Nats of a, nats of b and bytes by document, of all stretches or of the chosen ones: [3, D]."""
        doc_ids, document_M = self.documents
        columns, doc, D = (self.nats_a_M, self.nats_b_M, self.length_M), document_M[chosen_M], len(doc_ids)
        return np.stack([np.bincount(doc, each[chosen_M], D).astype(np.float64) for each in columns])


@dataclass(frozen=True, eq=False)
class _Spans:
    """The tokens of one side on a line of all documents; nats of tokens without bytes count for the token with them."""

    begin: Integers
    end: Integers
    nats: Floats
    token: Integers


def meet(a: Tokens, b: Tokens) -> Stretches:
    """The stretches that both sides scored; leaves out bytes that only one side scored (first tokens, cut ends)."""
    of_a, of_b = _spans(a), _spans(b)
    edge = np.unique(np.concatenate([of_a.begin, of_a.end, of_b.begin, of_b.end]))
    (at_a, in_a), (at_b, in_b) = (_inside(spans, edge[:-1]) for spans in (of_a, of_b))
    begin, length, at_a, at_b = (each[in_a & in_b] for each in (edge[:-1], np.diff(edge), at_a, at_b))
    tokens = of_a.token[at_a], of_b.token[at_b]
    nats = _share(of_a, at_a, length), _share(of_b, at_b, length)
    return Stretches(begin // _DOCUMENT, begin % _DOCUMENT, length, *tokens, *nats)


def telling_spans(text: Stretches) -> Iterator[tuple[int, float]]:
    """Places that do not overlap, those with b - a furthest from 0 first: their first stretch, and b - a in nats."""
    change_M = text.nats_b_M - text.nats_a_M
    if len(change_M) < SPAN:
        return
    sum_P = np.lib.stride_tricks.sliding_window_view(change_M, SPAN).sum(axis=1)
    (within,) = np.nonzero(text.doc_M[: len(sum_P)] == text.doc_M[SPAN - 1 :])
    taken: npt.NDArray[np.bool_] = np.zeros(len(change_M), bool)
    for first in within[np.argsort(-np.abs(sum_P[within]), kind="stable")]:
        if not taken[first : first + SPAN].any():
            taken[first : first + SPAN] = True
            yield int(first), float(sum_P[first])


def _spans(tokens: Tokens) -> _Spans:
    """Put tokens on one line. One without bytes belongs to the token before it, and is dropped if that is missing."""
    begin = tokens.doc_N * _DOCUMENT + tokens.begin_N
    end = begin + tokens.length_N
    starts = tokens.length_N > 0
    first = np.flatnonzero(starts)
    owner = np.cumsum(starts) - 1
    placed = owner >= 0
    placed[placed] &= begin[placed] <= end[first[owner[placed]]]
    nats = np.bincount(owner[placed], tokens.nats_N[placed], len(first))
    return _Spans(begin[first], end[first], nats.astype(np.float64), first)


def _inside(spans: _Spans, place: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    at = np.maximum(np.searchsorted(spans.begin, place, side="right") - 1, 0)
    return at, (spans.begin[at] <= place) & (place < spans.end[at])


def _share(spans: _Spans, at: Integers, length: Integers) -> Floats:
    """Nats of each stretch; exactly those of the token where it is a whole one."""
    whole = spans.end[at] - spans.begin[at]
    return np.asarray(spans.nats[at] * (length / whole))
