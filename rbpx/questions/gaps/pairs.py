"""Finds how the ratio of losses on two texts, or on two slices of one, changes with size, for all pairs of a request.

Source: Relative Scaling Laws for LLMs, arXiv 2510.24626.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.vocabulary import law_title
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.laws.power.intervals import holm
from rbpx.questions.gaps.law import Gap, fit_gap, settle
from rbpx.questions.gaps.slices import DEFAULT_K, LOSSES, Side, slices_of
from rbpx.runs.fits import document_doubts
from rbpx.runs.group import ALIKE, Group
from rbpx.runs.points.sizes import known_points
from rbpx.runs.select.along import best_in_both
from rbpx.status import Status

_SHARED: Final = tuple(name for name in ALIKE if name not in ("dataset", "text_hash"))
_KNOWN: Final = (None, Status.one_document, Status.different_tokens)  # doubts about points that have numbers


@dataclass(frozen=True, eq=False)
class LossGap:
    """The gap of one loss, `law` "rbp" or "cross_entropy", at k where it has one; `a` is the harder side."""

    a: Side
    b: Side
    law: str
    k: int | None
    gap: Gap

    @property
    def name(self) -> str:
        """The name of the loss."""
        return law_title(self.law, self.k)

    @property
    def sides(self) -> str:
        """The names of both."""
        return f"{self.a.name} / {self.b.name}"


@dataclass(frozen=True, eq=False)
class Pair:
    """Two texts at the sizes that both were measured at, or two slices of one text, and the gap of each loss."""

    one: Side
    other: Side
    losses: tuple[LossGap, ...]


_Fitted = tuple[str, int | None, Gap, set[Status]]
"""A law, its k, the gap, and the doubts about its points."""


def pairs_of(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Pair]:
    """The gaps of every two groups that differ only in their text and share 3 sizes, or of the first slice and each.

    The p values are adjusted for all of them (Holm), which decides each verdict.
    """
    both = list(_texts(connection, groups, request))
    if request.slices is not None:
        sliced = [slices_of(connection, group, request) for group in groups if group.is_measured]
        both = [(first, other) for first, *others in sliced for other in others]
    fitted = [(one, other, list(_fits(one, other))) for one, other in both]
    tests = [gap.p for _, _, fits in fitted for _, _, gap, _ in fits if gap.p is not None]
    adjusted: dict[float | None, float] = dict(zip(tests, holm(tests), strict=True))  # equal ones are adjusted alike

    def settled(one: Side, other: Side, law: str, k: int | None, gap: Gap, doubts: set[Status]) -> LossGap:
        depend = [doubt for side in (one, other) for doubt in document_doubts(side.group, gap.fit)]
        sides = (other, one) if gap.swapped else (one, other)
        return LossGap(*sides, law, k, settle(gap, adjusted.get(gap.p), [*doubts, *depend]))

    return [Pair(one, other, tuple(settled(one, other, *fit) for fit in fits)) for one, other, fits in fitted]


def _texts(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request
) -> Iterator[tuple[Side, Side]]:
    """Every two groups that differ only in their text, at the sizes that they share; none for slices."""
    for one, other in combinations(groups if request.slices is None else (), 2):
        apart = [name for name in _SHARED if getattr(one.first, name) != getattr(other.first, name)]
        if apart or one.ties is not other.ties:
            continue
        both = {run.training for run in one.runs} & {run.training for run in other.runs}
        pair = [replace(group, runs=tuple(run for run in group.runs if run.training in both)) for group in (one, other)]
        if pair[0].axis is Axis.C and both:
            pair = list(best_in_both(*pair))
        if both and pair[0].n_sizes >= 3:
            # The documents of two texts are drawn independently of each other.
            asked = [request.but(seed=request.seed + n) for n in (0, 1)]
            points = [known_points(connection, *each, LOSSES, DEFAULT_K) for each in zip(pair, asked, strict=True)]
            a, b = (Side(group, group.first.dataset, of) for group, of in zip(pair, points, strict=True))
            yield a, b


def _fits(one: Side, other: Side) -> Iterator[_Fitted]:
    """The gap of each loss that both sides have numbers for."""
    of_other = {(each.law, each.k): each for each in other.points if each.doubt in _KNOWN}
    for a in one.points:
        b = of_other.get((a.law, a.k))
        if b is None or a.doubt not in _KNOWN or len(a.runs) != len(b.runs):
            continue
        doubts = {each.doubt for each in (a, b) if each.doubt is not None}
        if Status.one_document in doubts:
            gap = _without_intervals(fit_gap(a.S_N, a.y_N, b.y_N))
        else:
            counted = [each.n_documents for each in (a, b) if each.n_documents is not None]
            gap = fit_gap(a.S_N, a.y_N, b.y_N, a.y_BN, b.y_BN, min(counted, default=None))
        yield a.law, a.k, gap, doubts


def _without_intervals(gap: Gap) -> Gap:
    """The numbers of a gap in one document, without interval, test or verdict, as it says nothing of others."""
    if gap.delta.value is None:
        return gap
    fit = replace(gap.fit, alpha=Estimate(gap.fit.alpha.value))
    return Gap(gap.swapped, fit, gap.S_ref, Estimate(gap.ratio.value), Estimate(gap.delta.value))
