"""Shows gaps as tables: every pair of texts, or every slice against the first, at each loss; and the slices."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from rbpx.display.view import Cell, Column, Table, View, decimal, text, whole, with_ends, written
from rbpx.display.vocabulary import UNKNOWN, decimals
from rbpx.questions.gaps.analysis import Gaps, LossGap, analyse, keep
from rbpx.questions.gaps.figures import figures
from rbpx.questions.gaps.law import Gap
from rbpx.questions.gaps.shape import REACH
from rbpx.questions.gaps.slices import SlicePoints
from rbpx.questions.gaps.words import multiplicity, p_value, sentences
from rbpx.questions.question import of_parts
from rbpx.runs.select.ways import in_size
from rbpx.status import Status

_Row = tuple[Gaps, LossGap]


def tables(results: Sequence[Gaps]) -> list[Table]:
    """The slices, where there are any, and all gaps."""
    group, axis, what, about = results[0].group, results[0].group.axis, "text", results[0].group.title_of_family
    found, slices = [], [gaps.slices for gaps in results if gaps.slices is not None]
    if slices:
        parts, what, about = [slices[0][0], *(other for _, other in slices)], "slice", group.title
        found = [SLICES.table("Slices of the scored tokens", parts, about)]
    ties = ", ".join(dict.fromkeys(gaps.group.ties.value for gaps in results))
    law = f"L_A / L_B = G·({axis.value} / {axis.value}_ref)^δ, A the harder {what}"
    note = f"{law}; the gap closes where δ < 0; ties {ties}. {multiplicity(results)}"
    rows = [(gaps, loss) for gaps in results for loss in gaps.gaps]
    return [*found, PAIRS.table("Gaps", rows, about, axis, note)]


def _power(ln_S: float | None) -> str:
    """A size of any magnitude in one digit."""
    if ln_S is None:
        return UNKNOWN
    exponent = math.floor(ln_S / math.log(10))
    digit = round(math.exp(ln_S - exponent * math.log(10)))
    return f"1e{exponent + 1}" if digit == 10 else f"{digit}e{exponent}"


def closed(gap: Gap) -> tuple[str, str, str]:
    """The size at which a gap closes and the ends of its interval, `beyond` for one too far outside the sizes."""
    if gap.is_beyond or gap.verdict != "closes":
        return "beyond" if gap.is_beyond else UNKNOWN, UNKNOWN, UNKNOWN
    lo, hi = math.log(min(gap.fit.S) / REACH), math.log(max(gap.fit.S) * REACH)

    def size(ln_S: float | None) -> str:
        return "beyond" if ln_S is not None and not lo <= ln_S <= hi else _power(ln_S)

    return _power(gap.ln_S_closed.value), size(gap.ln_S_closed.lo), size(gap.ln_S_closed.hi)


def _verdict(row: _Row) -> Cell:
    """The verdict with the objections to the law; the status alone where there is no verdict."""
    gap = row[1].gap
    statuses = dict.fromkeys(status for status in (gap.fit.status, *gap.reasons()) if status is not Status.ok)
    beside = [] if gap.fit.status in (Status.ok, *gap.reasons()) else [gap.fit.status.label]
    beside += [Status.bends.label] if gap.bends and gap.verdict not in ("turns", "bends") else []
    words = gap.fit.status.label if gap.verdict is None else ", ".join([gap.verdict, *beside])
    return Cell((words,), (gap.verdict, gap.fit.status.value), is_number=False, doubts=tuple(statuses))


def _entropy(part: SlicePoints, at: int) -> float:
    return float(next(each for each in part.points if each.law == "cross_entropy").y_N[at])


SLICES: Final = View[SlicePoints](
    "slices",
    text("slice", "slice", lambda part: part.chosen.name),
    whole("tokens", "n_tokens", lambda part: part.n_tokens),
    whole("documents", "n_documents", lambda part: part.n_documents),
    decimal("CE of the smallest", "cross_entropy_smallest", lambda part: _entropy(part, 0), 3),
    decimal("of the largest", "cross_entropy_largest", lambda part: _entropy(part, -1), 3),
)
PAIRS: Final = View[_Row](
    "pairs",
    text("A / B", "pair", lambda row: " / ".join(row[0].sides(row[1]))),
    text("loss", "loss", lambda row: row[1].name),
    with_ends(
        "ratio", "ratio", lambda row: row[1].gap.ratio, decimals(3),
        "L_A / L_B at {x}_ref, the geometric mean of the points", ends_spare=3,
    ),
    with_ends(
        "δ", "delta", lambda row: row[1].gap.delta, means="exponent of the ratio; with an offset, its mean slope",
        ends_spare=1,
    ),
    written("p", "p", lambda row: row[1].gap.p, p_value, "of δ = 0", 5),
    written("p Holm", "p_adjusted", lambda row: row[1].gap.p_adjusted, p_value, "for all gaps asked for", 2),
    written(
        "p bend", "curvature_p", lambda row: None if row[1].gap.curvature is None else row[1].gap.curvature.p,
        p_value, "of a straight line against a parabola", 4,
    ),
    text(
        "form", "form", lambda row: None if row[1].gap.offset is None else row[1].gap.offset.form.word,
        "power where both losses are power laws; offset where one has an irreducible part, so the ratio is no law", 6,
    ),
    decimal("R²", "r2", lambda row: row[1].gap.fit.r2, 3, spare=7),
    whole("sizes", "n_points", lambda row: row[1].gap.fit.n_points, spare=8),
    Column("gap", ("verdict", "status"), _verdict),
    Column(
        "closed at", ("ln_S_closed",), lambda row: Cell(closed(row[1].gap)[:1], (row[1].gap.ln_S_closed.value,)),
        "the {x} where the ratio would be 1, by the forms that the losses call for; – for an end: unbounded; beyond: "
        f"more than {REACH:g} times outside the sizes, if at all",
    ),
    Column(
        "95 %", ("ln_S_closed_lo", "ln_S_closed_hi"), spare=3,
        cell=lambda row: Cell(closed(row[1].gap)[1:], (row[1].gap.ln_S_closed.lo, row[1].gap.ln_S_closed.hi)),
    ),
)  # fmt: skip
QUESTION = of_parts(
    analyse, keep, tables, sentences, figures, together="family", select=partial(in_size, sizes=3, best_of_budget=False)
)
