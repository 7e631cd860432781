"""Answers how the gap between two texts, or two slices of one, changes with size."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import Cell, Column, Table, View, decimal, text, whole, with_ends, written
from rbpx.display.vocabulary import UNKNOWN, decimals
from rbpx.laws.names import Method
from rbpx.laws.prediction.verdict import Form
from rbpx.questions.gaps.figures import figures
from rbpx.questions.gaps.law import EQUATION, Gap
from rbpx.questions.gaps.pairs import LossGap, Pair, pairs_of
from rbpx.questions.gaps.shape import REACH
from rbpx.questions.gaps.slices import Side
from rbpx.questions.gaps.words import multiplicity, p_value, sentences
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import record_of
from rbpx.runs.group import Group, grouped
from rbpx.runs.select.ways import in_size
from rbpx.status import Status
from rbpx.store.store import Record

_SAID: Final = (Status.ok, Status.no_trend, Status.not_monotone, Status.bends, Status.beyond)  # by the verdict


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Result]:
    """Fit the gaps of all pairs, a result for each family."""
    pairs = pairs_of(connection, groups, request)
    tested = sum(each.gap.p is not None for pair in pairs for each in pair.losses)
    of_family = grouped(pairs, lambda pair: pair.one.group.title_of_family)
    return [_result(of, tested) for of in of_family.values()]


def _result(pairs: Sequence[Pair], tested: int) -> Result:
    losses = [each for pair in pairs for each in pair.losses]
    fits = [_row(each) for each in losses]
    shown = [row | row["params"] | _named(each) for row, each in zip(fits, losses, strict=True)]
    tables, drawn = list(_tables(pairs, shown, tested)), partial(figures, pairs, shown)
    return Result([pair.one.group for pair in pairs], fits, tables, [*sentences(pairs)], drawn, fits)


def _named(loss: LossGap) -> Record:
    """What tables say of a gap beside its row."""
    texts = " / ".join(sorted((loss.a.name, loss.b.name)))
    return {"pair": loss.sides, "texts": texts, "loss": loss.name, "closed": closed(loss.gap)}


def _row(loss: LossGap) -> Record:
    """The gap as the store keeps it, `dataset` the text with the higher loss."""
    a, b, gap = loss.a, loss.b, loss.gap
    params = gap.fit.record() | gap.record() | {"loss": loss.law, "verdict": gap.verdict, "equation": EQUATION}
    params["text_hash_b"] = b.group.first.text_hash
    slices, run_ids = [], [*a.group.run_ids, *b.group.run_ids]
    if a.where:
        for of, side in (("a", a), ("b", b)):
            params |= {f"slice_{of}": side.name, f"where_{of}": side.where, f"n_tokens_{of}": side.n_tokens}
        slices, run_ids = sorted([side.name, side.where] for side in (a, b)), sorted(set(run_ids))
    more: Record = {"k": loss.k, "n": [loss.law, *slices] if slices else loss.law, "params": params}
    return record_of(a.group, "gap", gap.fit, run_ids, Method.ols, dataset_b=b.group.first.dataset, **more)


def _tables(pairs: Sequence[Pair], rows: Sequence[Record], tested: int) -> Iterator[Table]:
    """The slices, where there are any, and all gaps."""
    group, axis = pairs[0].one.group, pairs[0].one.group.axis
    what, about = ("slice", group.title) if pairs[0].one.where else ("text", group.title_of_family)
    if pairs[0].one.where:
        sides = dict.fromkeys(side for pair in pairs for side in (pair.one, pair.other))
        yield SLICES.table("Slices of the scored tokens", map(_slice, sides), about)
    ties = ", ".join(dict.fromkeys(pair.one.group.ties.value for pair in pairs))
    law = f"L_A / L_B = G·({axis.value} / {axis.value}_ref)^δ, A the harder {what}"
    note = f"{law}; the gap closes where δ < 0; ties {ties}. {multiplicity(pairs, tested)}"
    yield PAIRS.table("Gaps", rows, about, axis, note)


def _slice(side: Side) -> Record:
    entropy_N = next(each.y_N for each in side.points if each.law == "cross_entropy")
    ends = {"cross_entropy_smallest": float(entropy_N[0]), "cross_entropy_largest": float(entropy_N[-1])}
    return {"slice": side.name, "n_tokens": side.n_tokens, "n_documents": side.n_documents, **ends}


def closed(gap: Gap) -> tuple[str, str, str]:
    """The size at which a gap closes and the ends of its interval, `beyond` for one too far outside the sizes."""
    if gap.is_beyond or gap.verdict != "closes":
        return "beyond" if gap.is_beyond else UNKNOWN, UNKNOWN, UNKNOWN
    lo, hi = math.log(min(gap.fit.S) / REACH), math.log(max(gap.fit.S) * REACH)

    def size(ln_S: float | None) -> str:
        if ln_S is None:
            return UNKNOWN
        return f"{math.exp(ln_S):.0e}".replace("e+0", "e").replace("e+", "e") if lo <= ln_S <= hi else "beyond"

    at = gap.ln_S_closed
    return size(at.value), size(at.lo), size(at.hi)


def _verdict(row: Record) -> Cell:
    """The verdict with the objections to the law; the status alone where there is no verdict."""
    verdict, statuses = row["verdict"], [Status(each) for each in row.get("reasons") or [row["status"]]]
    beside = [statuses[0].label] if statuses[0] not in _SAID else []
    beside += [Status.bends.label] if Status.bends in statuses and verdict not in ("turns", "bends") else []
    words = statuses[0].label if verdict is None else ", ".join([verdict, *beside])
    doubts = tuple(status for status in statuses if status is not Status.ok)
    return Cell((words,), (verdict, row["status"]), is_number=False, doubts=doubts)


SLICES: Final = View[Record](
    "slices",
    text("slice", "slice"),
    whole("tokens", "n_tokens"),
    whole("documents", "n_documents"),
    decimal("CE of the smallest", "cross_entropy_smallest", digits=3),
    decimal("of the largest", "cross_entropy_largest", digits=3),
)
PAIRS: Final = View[Record](
    "pairs",
    text("A / B", "pair"),
    text("loss", "loss"),
    with_ends(
        "ratio", "ratio", None, decimals(3), "L_A / L_B at {x}_ref, the geometric mean of the points", ends_spare=3
    ),
    with_ends("δ", "delta", means="exponent of the ratio; with an offset, its mean slope", ends_spare=1),
    written("p", "p", None, p_value, "of δ = 0", 5),
    written("p Holm", "p_adjusted", None, p_value, "for all gaps asked for", 2),
    written("p bend", "curvature_p", None, p_value, "of a straight line against a parabola", 4),
    text(
        "form", "form", lambda row: row["form"] and Form(row["form"]).word,
        "power where both losses are power laws; offset where one has an irreducible part, so the ratio is no law", 6,
    ),
    decimal("R²", "r2", digits=3, spare=7),
    whole("sizes", "n_points", spare=8),
    Column("gap", ("verdict", "status"), _verdict),
    Column(
        "closed at", ("ln_S_closed",), lambda row: Cell(row["closed"][:1], (row["ln_S_closed"],)),
        "the {x} where the ratio would be 1, by the forms that the losses call for; – for an end: unbounded; beyond: "
        f"more than {REACH:g} times outside the sizes, if at all",
    ),
    Column(
        "95 %", ("ln_S_closed_lo", "ln_S_closed_hi"), spare=3,
        cell=lambda row: Cell(row["closed"][1:], (row["ln_S_closed_lo"], row["ln_S_closed_hi"])),
    ),
)  # fmt: skip
QUESTION = Question(answer, select=partial(in_size, sizes=3, best_of_budget=False))
