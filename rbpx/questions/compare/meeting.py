"""Cuts a text into the stretches that two models both scored, with the nats of each under both.

The nats of a token are spread evenly over its bytes. Shapes: N tokens of one side, M stretches, D documents.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rbpx.laws.numeric import Floats

Integers = npt.NDArray[np.int64]

_DOCUMENT = np.int64(1) << 32  # offset between documents that are laid end to end on one axis


class RunTokens(NamedTuple):
    """The scored tokens of one run, by document and position, with the nats (-logprob) of each.

    `begin_N` is the first byte in the document, `length_N` counts bytes. Of the tokens of one character the first has
    its bytes and all their nats.
    """

    doc_N: Integers
    begin_N: Integers
    length_N: Integers
    nats_N: Floats


class Stretches(NamedTuple):
    """The text that both sides scored, cut where a token of either begins or ends.

    `begin_M` is the first byte in the document, `a_M` and `b_M` index the tokens of each side, the first where several
    make a character.
    """

    doc_M: Integers
    begin_M: Integers
    length_M: Integers
    a_M: Integers
    nats_a_M: Floats
    b_M: Integers
    nats_b_M: Floats

    def sums(self, chosen_M: npt.NDArray[Any] | slice = np.s_[:]) -> Floats:
        """Nats of a, nats of b, and bytes of the chosen stretches by document, [3, D]."""
        doc_ids, at_M = np.unique(self.doc_M, return_inverse=True)
        columns = (self.nats_a_M, self.nats_b_M, self.length_M)
        return np.stack([np.bincount(at_M[chosen_M], each[chosen_M], len(doc_ids)) for each in columns])


def meet(*sides: RunTokens) -> Stretches:
    """The stretches that both sides scored, without first tokens and cut ends of one side."""
    spans = [_spans(side) for side in sides]
    edges = np.unique(np.concatenate([ends for begin, end, *_ in spans for ends in (begin, end)]))
    begin, length = edges[:-1], np.diff(edges)
    places = [np.maximum(np.searchsorted(of[0], begin, side="right") - 1, 0) for of in spans]
    inside = [(of[0][at] <= begin) & (begin < of[1][at]) for of, at in zip(spans, places, strict=True)]
    both, of_sides = np.logical_and(*inside), list[npt.NDArray[Any]]()
    for (first, last, nats, token), place in zip(spans, places, strict=True):
        at = place[both]
        # Exactly the nats of the token where the stretch is a whole token.
        of_sides += [token[at], nats[at] * (length[both] / (last - first)[at])]
    return Stretches(begin[both] // _DOCUMENT, begin[both] % _DOCUMENT, length[both], *of_sides)


def _spans(tokens: RunTokens) -> tuple[Integers, Integers, Floats, Integers]:
    """Begin, end, nats and index of each token on the axis of all documents.

    A token without bytes adds its nats to the one before it, and is dropped if there is none.
    """
    begin, starts = tokens.doc_N * _DOCUMENT + tokens.begin_N, tokens.length_N > 0
    end, first, owner = begin + tokens.length_N, np.flatnonzero(starts), np.cumsum(starts) - 1
    placed = owner >= 0
    placed[placed] &= begin[placed] <= end[first[owner[placed]]]
    nats = np.bincount(owner[placed], tokens.nats_N[placed], len(first)).astype(np.float64)
    return begin[first], end[first], nats, first
