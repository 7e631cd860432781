"""Finds how the ratio of losses on two texts, or on two slices of one, changes with size (verb gaps).

Source: Relative Scaling Laws for LLMs, arXiv 2510.24626.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.vocabulary import law_title
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.names import Axis, Method
from rbpx.laws.power.intervals import holm
from rbpx.questions.gaps.law import EQUATION, Gap, fit_gap, settle
from rbpx.questions.gaps.slices import DEFAULT_K, LOSSES, SlicePoints, slice_points
from rbpx.runs.fits import document_doubts, keep_fits, record_of
from rbpx.runs.group import ALIKE, Group
from rbpx.runs.points.sizes import Points, known_points
from rbpx.runs.select.along import best_in_both
from rbpx.status import Status
from rbpx.store.store import Record, Store

_SHARED: Final = tuple(name for name in ALIKE if name not in ("dataset", "text_hash"))
_KNOWN: Final = (None, Status.one_document, Status.different_tokens)  # doubts about points that have numbers


@dataclass(frozen=True, eq=False)
class LossGap:
    """The gap of one loss, `law` "rbp" or "cross_entropy", at k where it has one, and the doubts about its points."""

    law: str
    k: int | None
    gap: Gap
    doubts: tuple[Status, ...] = ()

    @property
    def name(self) -> str:
        """The name of the loss."""
        return law_title(self.law, self.k)


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps between two texts at the sizes that both were measured at, or between two slices of one text.

    Attributes:
        group: the runs on the first text, only the sizes that both have.
        other: those on the second; the same group for slices.
        gaps: one for each loss; each says which text or slice is A.
        slices: the first and the second; None for texts.
        n_tested: how many gaps of the request the p values are adjusted for.
    """

    group: Group
    other: Group
    gaps: tuple[LossGap, ...]
    slices: tuple[SlicePoints, SlicePoints] | None = None
    n_tested: int = 0

    def sides(self, loss: LossGap) -> tuple[str, str]:
        """The names of A, the harder side, and of B."""
        names = self.group.first.dataset, self.other.first.dataset
        if self.slices is not None:
            names = self.slices[0].chosen.name, self.slices[1].chosen.name
        return names[::-1] if loss.gap.swapped else names


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Gaps]:
    """Fit the gaps of every two groups that differ only in their text and share 3 sizes, or of the slices of each."""
    if request.slices is not None:
        measured = [group for group in groups if group.is_measured]
        return _adjusted([gaps for group in measured for gaps in _between_slices(connection, group, request)])
    gaps = []
    for one, other in combinations(groups, 2):
        apart = [name for name in _SHARED if getattr(one.first, name) != getattr(other.first, name)]
        if apart or one.ties is not other.ties:
            continue
        both = {run.training for run in one.runs} & {run.training for run in other.runs}
        pair = [replace(group, runs=tuple(run for run in group.runs if run.training in both)) for group in (one, other)]
        if pair[0].axis is Axis.C and both:
            pair = list(best_in_both(*pair))
        if not both or pair[0].n_sizes < 3:
            continue
        # The documents of two texts are drawn independently of each other.
        asked = [request.but(seed=request.seed + n) for n in (0, 1)]
        points = [known_points(connection, *each, LOSSES, DEFAULT_K) for each in zip(pair, asked, strict=True)]
        gaps.append(Gaps(pair[0], pair[1], _loss_gaps(points[0], points[1])))
    return _adjusted(gaps)


def _adjusted(results: Sequence[Gaps]) -> list[Gaps]:
    """Adjust the p values of gaps for all of them (Holm), which decides each verdict."""
    tests = [each.gap.p for gaps in results for each in gaps.gaps if each.gap.p is not None]
    adjusted: dict[float | None, float] = dict(zip(tests, holm(tests), strict=True))  # equal ones are adjusted alike

    def settled(gaps: Gaps, each: LossGap) -> LossGap:
        depend = [doubt for group in (gaps.group, gaps.other) for doubt in document_doubts(group, each.gap.fit)]
        return replace(each, gap=settle(each.gap, adjusted.get(each.gap.p), [*each.doubts, *depend]))

    of_all = [(gaps, tuple(settled(gaps, each) for each in gaps.gaps)) for gaps in results]
    return [replace(gaps, gaps=own, n_tested=len(tests)) for gaps, own in of_all]


def _between_slices(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> list[Gaps]:
    """Compare the first slice with each other one."""
    first, *others = slice_points(connection, group, request)
    return [Gaps(group, group, _loss_gaps(first.points, other.points), (first, other)) for other in others]


def _loss_gaps(one: Sequence[Points], other: Sequence[Points]) -> tuple[LossGap, ...]:
    """The gap of each loss that both sides have numbers for."""
    gaps, of_other = [], {(each.law, each.k): each for each in other if each.doubt in _KNOWN}
    for a in one:
        b = of_other.get((a.law, a.k))
        if b is None or a.doubt not in _KNOWN or len(a.runs) != len(b.runs):
            continue
        doubts = {each.doubt for each in (a, b) if each.doubt is not None}
        if Status.one_document in doubts:
            gap = _without_intervals(fit_gap(a.S_N, a.y_N, b.y_N))
        else:
            counted = [each.n_documents for each in (a, b) if each.n_documents is not None]
            gap = fit_gap(a.S_N, a.y_N, b.y_N, a.y_BN, b.y_BN, min(counted, default=None))
        gaps.append(LossGap(a.law, a.k, gap, tuple(doubts)))
    return tuple(gaps)


def _without_intervals(gap: Gap) -> Gap:
    """The numbers of a gap in one document, without interval, test or verdict, as it says nothing of others."""
    if gap.delta.value is None:
        return gap
    fit = replace(gap.fit, status=Status.ok, alpha_lo=None, alpha_hi=None)
    return Gap(gap.swapped, fit, gap.S_ref, Estimate(gap.ratio.value), Estimate(gap.delta.value))


def keep(store: Store, gaps: Gaps) -> list[Record]:
    """Write the gaps to the store, `dataset` the text with the higher loss, and return them."""
    records = []
    for each in gaps.gaps:
        a, b = (gaps.other, gaps.group) if each.gap.swapped else (gaps.group, gaps.other)
        params = each.gap.fit.record() | _about(each.gap)
        params |= {"loss": each.law, "verdict": each.gap.verdict, "equation": EQUATION}
        params["text_hash_b"] = b.first.text_hash
        slices, run_ids = [], [*a.run_ids, *b.run_ids]
        if gaps.slices is not None:
            parts = gaps.slices[::-1] if each.gap.swapped else gaps.slices
            for of, part in zip("ab", parts, strict=True):
                chosen = part.chosen
                params |= {f"slice_{of}": chosen.name, f"where_{of}": chosen.where, f"n_tokens_{of}": part.n_tokens}
            slices, run_ids = sorted([part.chosen.name, part.chosen.where] for part in parts), sorted(set(run_ids))
        more: Record = {"k": each.k, "n": [each.law, *slices] if slices else each.law}
        more |= {"dataset_b": b.first.dataset, "params": params}
        records.append(record_of(a, "gap", each.gap.fit, run_ids, Method.ols, **more))
    return keep_fits(store, records)


def _about(gap: Gap) -> Record:
    """What a gap says beside its fit, as plain values for JSON."""
    about: Record = {"swapped": gap.swapped, "S_ref": gap.S_ref, **by_name(ratio=gap.ratio, delta=gap.delta)}
    about |= {"p": gap.p, "p_adjusted": gap.p_adjusted, **by_name(ln_S_closed=gap.ln_S_closed)}
    bent = gap.curvature
    about |= {"closed_beyond": gap.closed_beyond, **by_name(curvature=bent or NO_ESTIMATE)}
    about |= {"curvature_p": None if bent is None else bent.p, "curvature_turns": None if bent is None else bent.turns}
    if gap.offset is None:
        return about
    return about | {"form": gap.offset.form.value, **by_name(E_a=gap.offset.E_a, E_b=gap.offset.E_b)}
