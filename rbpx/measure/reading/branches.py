"""Finds the shared beginnings of windows (a trie of their tokens) that are worth reading once.

A beginning ends before the state that predicts the first scored token of any of its windows, so ordinary texts share
none.

Symbols: n windows in the order of their tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rbpx.data.windows import Window
from rbpx.measure.reading.batches import PASS, PAST, distinct_reads

_LEAST_SAVED = 0.2  # share of tokens that a shared beginning must save
_MOST_READ_AGAIN = 0.1  # share of a batch's tokens, plus a pass's overhead

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stem:
    """Windows that share a beginning.

    Attributes:
        depth: tokens of the beginning.
        n_reads: distinct token sequences that they read.
        n_tokens: of these together.
    """

    windows: list[Window]
    depth: int
    n_reads: int
    n_tokens: int


def branches(windows: Sequence[Window], begun: int = 0) -> tuple[list[Stem], list[Window]]:
    """The stems of windows, and the windows that are read by themselves; `begun` tokens of each were read before."""
    if len(windows) < 2 or max(map(_free, windows)) <= begun:
        return [], list(windows)
    ordered = sorted(windows, key=lambda window: window.ids[: window.n_read].astype(">i4").tobytes())
    shared_n, is_new_n = _shared(ordered)
    length_n = np.asarray([window.n_read for window in ordered])
    n_reads = np.concatenate([[0], np.cumsum(is_new_n)])
    n_tokens = np.concatenate([[0], np.cumsum(length_n * is_new_n)])
    stems: list[Stem] = []
    alone: list[Window] = []
    left = [(0, len(ordered))]
    while left:
        low, high = left.pop()
        within = shared_n[low + 1 : high]
        if len(within) == 0:
            alone.append(ordered[low])
            continue
        depth = int(within.min())
        # The first of an interval counts as new, even if it equals the one before.
        reads = int(n_reads[high] - n_reads[low + 1]) + 1
        tokens = int(n_tokens[high] - n_tokens[low + 1] + length_n[low])
        saved = (reads - 1) * (depth - begun)
        if saved > 0 and saved >= _LEAST_SAVED * (tokens - reads * begun):
            stems.append(Stem(ordered[low:high], depth, reads, tokens))
            continue
        if within.max() <= begun:
            alone += ordered[low:high]
            continue
        cuts = [low, *(low + 1 + np.flatnonzero(within == depth)).tolist(), high]
        left += pairwise(cuts)
    return stems, alone


def _free(window: Window) -> int:
    """Tokens before the state that predicts the first scored token."""
    return max(0, int(window.scored.argmax()) - 1)


def _shared(ordered: Sequence[Window]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Unscored tokens that each window shares with the window before it; whether it reads other tokens."""
    shared_n, is_new_n = np.zeros(len(ordered), np.int64), np.ones(len(ordered), bool)
    free_n = [_free(window) for window in ordered]
    for at in range(1, len(ordered)):
        one, other = (window.ids[: window.n_read] for window in ordered[at - 1 : at + 1])
        n = min(len(one), len(other))
        parts = one[:n] != other[:n]
        alike = int(parts.argmax()) if parts.any() else n
        shared_n[at] = min(alike, free_n[at - 1], free_n[at])
        is_new_n[at] = alike < max(len(one), len(other)) or not ordered[at].ends_in_label
    return shared_n, is_new_n


def stem_batches(
    stems: Sequence[Stem], tokens_per_batch: int, begun: int = 0, device: str = "cpu"
) -> Iterator[tuple[list[Stem], int]]:
    """Batches of stems, the deepest first, with the depth to which each is read, that of its shallowest beginning.

    What the others share beyond it is read with each of their windows. `begun` tokens were read before.
    """
    batch: list[Stem] = []
    for stem in sorted(stems, key=lambda stem: -stem.depth):
        if batch:
            together = [*batch, stem]
            again = sum((each.depth - stem.depth) * each.n_reads for each in together)
            n_tokens = sum(each.n_tokens - (each.n_reads - 1) * each.depth - begun for each in together)
            n_stem, n_past = (len(together) * (stem.depth - part) for part in (begun, 0))
            too_much = n_stem > tokens_per_batch or n_past > PAST * tokens_per_batch
            if too_much or again > max(2 * PASS[device], _MOST_READ_AGAIN * n_tokens):
                yield batch, batch[-1].depth
                batch = []
        batch.append(stem)
    if batch:
        yield batch, batch[-1].depth


def read_once(windows: Sequence[Window], begun: int = 0) -> tuple[int, int]:
    """Tokens and (token, context) pairs that a model reads where each beginning is read once.

    Batches read somewhat more: beginnings of one length, and padding.
    """
    stems, alone = branches(windows, begun)
    firsts, _ = distinct_reads(alone)
    ends = [*(stem.depth for stem in stems), *(alone[at].n_read for at in firsts)]
    further = [read_once(stem.windows, stem.depth) for stem in stems]
    n_tokens = sum(end - begun for end in ends) + sum(tokens for tokens, _ in further)
    return n_tokens, sum(end**2 - begun**2 for end in ends) + sum(pairs for _, pairs in further)


def n_saved(windows: Sequence[Window]) -> int:
    """Lower bound on the tokens that reading beginnings once saves: those of the first level."""
    return sum((stem.n_reads - 1) * stem.depth for stem in branches(windows)[0])
