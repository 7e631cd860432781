"""Gaps (verb gaps): how the ratio of losses on two texts, or two slices of one, changes with size.

Source: Relative Scaling Laws for LLMs, arXiv 2510.24626.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Final

import duckdb

from rbpx.analyses.gaps.law import EQUATION, Gap, fit_gap, settle
from rbpx.analyses.gaps.slices import SlicePoints, slice_points
from rbpx.config.request import Request
from rbpx.groups.along import best_in_both
from rbpx.groups.fits import document_doubts, keep_fits, record_of
from rbpx.groups.group import ALIKE, Group
from rbpx.groups.points import Points, size_points, weigh_group
from rbpx.laws.names import Axis, Method
from rbpx.laws.significance import holm
from rbpx.status import Status
from rbpx.store.store import Record, Store

DEFAULT_K: Final = (1, 10, 100)
_LAWS: Final = ("rbp", "cross_entropy")
_SHARED: Final = tuple(name for name in ALIKE if name not in ("dataset", "text_hash"))
_ByLaw = dict[tuple[str, int | None], Points]


@dataclass(frozen=True, eq=False)
class LossGap:
    """The gap of one loss: of `law` ("rbp" or "cross_entropy"), at k where it has one; `doubts`: of its points."""

    law: str
    k: int | None
    gap: Gap
    doubts: tuple[Status, ...] = ()


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps between two texts at the sizes that both were measured at, or between two slices of one text.

    Attributes:
        group: of the first text, only the sizes that both have.
        other: of the second; the same group for slices.
        gaps: one a loss; each says which text or slice is A.
        slices: the first and the second; None for texts.
        n_tested: gaps of the request, for all of which p values are adjusted.
    """

    group: Group
    other: Group
    gaps: tuple[LossGap, ...]
    slices: tuple[SlicePoints, SlicePoints] | None = None
    n_tested: int = 0


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Gaps]:
    """The gaps of every two groups that differ in their text alone and share 3 sizes or more, or of slices of each."""
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
        points = [_points(connection, g, request.but(seed=request.seed + n)) for n, g in enumerate(pair)]
        gaps.append(Gaps(pair[0], pair[1], _loss_gaps(points[0], points[1])))
    return _adjusted(gaps)


def _adjusted(results: Sequence[Gaps]) -> list[Gaps]:
    """The same gaps with their p values adjusted for all of them (Holm), which decides each verdict."""
    tests = [each.gap.p for gaps in results for each in gaps.gaps if each.gap.p is not None]
    adjusted = iter(holm(tests))
    settled = []
    for gaps in results:
        of_losses = []
        for each in gaps.gaps:
            p = None if each.gap.p is None else next(adjusted)
            depend = [doubt for group in (gaps.group, gaps.other) for doubt in document_doubts(group, each.gap.fit)]
            of_losses.append(replace(each, gap=settle(each.gap, p, [*each.doubts, *depend])))
        settled.append(replace(gaps, gaps=tuple(of_losses), n_tested=len(tests)))
    return settled


def _between_slices(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> list[Gaps]:
    """The first slice against each other one."""
    first, *others = slice_points(connection, group, request, _k_grid(group, request), _LAWS)
    return [
        Gaps(group, group, _loss_gaps(_by_law(first.points), _by_law(other.points)), (first, other)) for other in others
    ]


def _loss_gaps(one: _ByLaw, other: _ByLaw) -> tuple[LossGap, ...]:
    gaps = []
    for key, a in one.items():
        b = other.get(key)
        if b is None or len(a.runs) != len(b.runs):
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
    """The numbers of a gap of one document, which says nothing of others: no interval, no test and no verdict."""
    if gap.delta is None:
        return gap
    bare = Gap(gap.swapped, gap.fit, gap.S_ref, gap.ratio, delta=gap.delta)
    return replace(bare, fit=replace(gap.fit, status=Status.ok, alpha_lo=None, alpha_hi=None))


def _by_law(points: Sequence[Points]) -> _ByLaw:
    doubts = (None, Status.one_document, Status.different_tokens)  # these have numbers nevertheless
    return {(each.law, each.k): each for each in points if each.doubt in doubts}


def _k_grid(group: Group, request: Request) -> list[int]:
    return request.k.grid(min(run.vocab_size or 0 for run in group.runs), DEFAULT_K) if group.is_measured else []


def _points(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> _ByLaw:
    k_grid = _k_grid(group, request)
    evidence = weigh_group(connection, group, request, k_grid, _LAWS)
    return _by_law(size_points(group, evidence, request, k_grid, _LAWS))


def keep(store: Store, gaps: Gaps) -> list[Record]:
    """Write the gaps to the store, `dataset` the text with the higher loss, and return them."""
    records = []
    for each in gaps.gaps:
        a, b = (gaps.other, gaps.group) if each.gap.swapped else (gaps.group, gaps.other)
        params = each.gap.fit.record() | _about(each.gap)
        params |= {"loss": each.law, "verdict": each.gap.verdict, "equation": EQUATION}
        params["text_hash_b"] = b.first.text_hash
        params |= _slice_params(gaps, each.gap.swapped)
        slices = [] if gaps.slices is None else sorted([part.chosen.name, part.chosen.where] for part in gaps.slices)
        more: Record = {"k": each.k, "n": [each.law, *slices] if slices else each.law}
        more |= {"dataset_b": b.first.dataset, "params": params}
        run_ids = sorted({*a.run_ids, *b.run_ids}) if slices else [*a.run_ids, *b.run_ids]
        records.append(record_of(a, "gap", each.gap.fit, run_ids, Method.ols, **more))
    return keep_fits(store, records)


def _about(gap: Gap) -> dict[str, Any]:
    """What a gap says beside its fit, as plain values."""
    about: dict[str, Any] = {
        name: value for name, value in vars(gap).items() if name not in ("fit", "curvature", "offset")
    }
    about |= {"closed_beyond": gap.closed_beyond}
    bent = gap.curvature
    for name in ("value", "lo", "hi", "p", "turns"):
        own = "curvature" if name == "value" else f"curvature_{name}"
        about[own] = None if bent is None else getattr(bent, name)
    if gap.offset is not None:
        closing = ("ln_S_closed", "ln_S_closed_lo", "ln_S_closed_hi")
        about |= {name: value for name, value in asdict(gap.offset).items() if name not in closing}
        about |= {"form": gap.offset.form.value}
    return about


def _slice_params(gaps: Gaps, swapped: bool) -> dict[str, Any]:
    if gaps.slices is None:
        return {}
    a, b = gaps.slices[::-1] if swapped else gaps.slices
    return {
        "slice_a": a.chosen.name,
        "slice_b": b.chosen.name,
        "where_a": a.chosen.where,
        "where_b": b.chosen.where,
        "n_tokens_a": a.n_tokens,
        "n_tokens_b": b.n_tokens,
    }
