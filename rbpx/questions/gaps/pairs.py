"""Fits the gaps of losses for all pairs of a request."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import duckdb

from rbpx.display.vocabulary import law_title
from rbpx.laws.names import Axis
from rbpx.laws.power.uncertainty import holm
from rbpx.questions.gaps import GapsKeys
from rbpx.questions.gaps.law import Gap, fit_gap, settle
from rbpx.questions.gaps.slices import DEFAULT_K, LOSSES, TextLosses, slices_of
from rbpx.runs.fits import document_doubts
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import known_points
from rbpx.runs.run import ALIKE
from rbpx.runs.select.budgets import best_in_both
from rbpx.status import Status

_SHARED: Final = tuple(name for name in ALIKE if name not in ("dataset", "text_hash"))
_KNOWN: Final = (None, Status.one_document, Status.mixed)  # warnings about points that have numbers


@dataclass(frozen=True, eq=False)
class LossGap:
    """The gap of one loss (at k) between two texts or slices, `a` the harder, at their common sizes."""

    a: TextLosses
    b: TextLosses
    law: str
    k: int | None
    gap: Gap
    doubts: Sequence[Status]

    @property
    def name(self) -> str:
        """Name of the loss."""
        return law_title(self.law, self.k)


def pairs_of(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: GapsKeys) -> list[list[LossGap]]:
    """The gaps of all groups that differ only in text and share 3 sizes, or of the first slice and each."""
    if request.slices is None:
        both = list(_texts(connection, groups, request))
    else:
        sliced = [slices_of(connection, group, request) for group in groups if group.is_measured]
        both = [(first, other) for first, *others in sliced for other in others]
    fitted = [list(_fits(one, other)) for one, other in both]
    tests = [each.gap.p for of in fitted for each in of if each.gap.p is not None]
    adjusted: dict[float | None, float] = dict(zip(tests, holm(tests), strict=True))  # equal ones are adjusted alike
    return [
        [replace(each, gap=settle(each.gap, adjusted.get(each.gap.p), each.doubts)) for each in of] for of in fitted
    ]


def _texts(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: GapsKeys
) -> Iterator[tuple[TextLosses, TextLosses]]:
    """Every two groups that differ only in text, at their common sizes."""
    for one, other in combinations(groups, 2):
        apart = [name for name in _SHARED if getattr(one.first, name) != getattr(other.first, name)]
        both = {run.training for run in one.runs} & {run.training for run in other.runs}
        if apart or one.ties is not other.ties or not both:
            continue
        pair = [replace(group, runs=tuple(run for run in group.runs if run.training in both)) for group in (one, other)]
        if pair[0].axis is Axis.C:
            pair = list(best_in_both(*pair))
        if pair[0].n_sizes >= 3:
            # The documents of two texts are drawn independently.
            asked = [request.but(seed=request.seed + n) for n in (0, 1)]
            points = [known_points(connection, *each, LOSSES, DEFAULT_K) for each in zip(pair, asked, strict=True)]
            a, b = (TextLosses(group, group.first.dataset, of) for group, of in zip(pair, points, strict=True))
            yield a, b


def _fits(one: TextLosses, other: TextLosses) -> Iterator[LossGap]:
    """Of each loss that both sides have; a single document gives no test."""
    of_other = {(each.law, each.k): each for each in other.points if each.doubt in _KNOWN}
    for a in one.points:
        b = of_other.get((a.law, a.k))
        if b is None or a.doubt not in _KNOWN or len(a.runs) != len(b.runs):
            continue
        doubts = [each.doubt for each in (a, b) if each.doubt is not None]
        lone = Status.one_document in doubts
        of_a, of_b = (each.y_BN[:0] if lone and each.y_BN is not None else each.y_BN for each in (a, b))
        counted = [each.n_effective for each in (a, b) if each.n_effective is not None]
        gap = fit_gap(a.S_N, a.y_N, b.y_N, of_a, of_b, min(counted, default=None))
        doubts += [doubt for side in (one, other) for doubt in document_doubts(side.group, gap.fit)]
        yield LossGap(*((other, one) if gap.swapped else (one, other)), a.law, a.k, gap, doubts)
