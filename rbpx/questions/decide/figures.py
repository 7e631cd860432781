"""Draws what a decision rests on: the best of each compute, what other splits lose, and how backtests came out.

All of it is over forms, bends and misfit. A picture of what is not known, as the best size where size and tokens vary
together, is left out. Source: arXiv 2203.15556, figures 2 and 3, for the first three.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Mark,
    Origin,
    Rows,
    Scale,
    Undrawn,
    bars,
    drawn,
    line,
    points,
    rule,
    scale_of,
)
from rbpx.display.view import View, error, magnitude, share, text, with_ends
from rbpx.display.vocabulary import short, significant
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import BudgetTest
from rbpx.laws.surface.checks import HeldOut
from rbpx.laws.surface.decision import Best
from rbpx.laws.surface.landscape import LEVELS, Landscape, Margin, Split
from rbpx.questions.decide.analysis import Decision, Decisions
from rbpx.questions.question import one_by_one
from rbpx.runs.origin import spelled

_RING: Final = {"filled": False, "color": "gray"}
_DOTS: Final = {"strokeDash": [1, 4], "strokeWidth": 3, "color": "gray"}
_LINE, _RUN, _LEADING, _ASKED, _PARABOLA = "best of each C", "run", "best run so far", "asked for", "IsoFLOP parabola"
_SIDES: Final = ("more tokens", "fewer tokens")


@dataclass(frozen=True)
class _Point:
    """A run, or the best of a budget."""

    what: str
    C: float
    S: Estimate
    D: Estimate
    y: Estimate

    @classmethod
    def of(cls, what: str, best: Best, sign: int) -> "_Point":
        return cls(what, best.C, best.S, best.D, best.y.times(sign))


FRONTIER: Final = View[_Point](
    "frontier",
    text("shown", "shown", lambda row: row.what),
    magnitude("C", "C", lambda row: row.C),
    magnitude("S", "S", lambda row: row.S.value),
    magnitude("D", "D", lambda row: row.D.value),
    with_ends("y", "y", lambda row: row.y, lambda value: significant(value, 4)),
)
ISOFLOP: Final = View[tuple[str, str, float, float]](
    "isoflop",
    text("budget", "budget", lambda row: row[0]),
    text("shown", "shown", lambda row: row[1]),
    magnitude("S", "S", lambda row: row[2]),
    magnitude("y", "y", lambda row: row[3]),
)
OPTIMUM: Final = View[_Point](
    "optimum",
    text("shown", "shown", lambda row: row.what),
    magnitude("C", "C", lambda row: row.C),
    with_ends("best S", "S", lambda row: row.S, short),
    with_ends("best D", "D", lambda row: row.D, short),
)
MARGINS: Final = View[tuple[str, str, float, Estimate, Estimate]](
    "margins",
    text("worse by", "level", lambda row: row[0]),
    text("side", "side", lambda row: row[1]),
    magnitude("C", "C", lambda row: row[2]),
    with_ends("S", "S", lambda row: row[3], short),
    with_ends("D / S", "ratio", lambda row: row[4], short),
)
BACKTESTS: Final = View[tuple[BudgetTest, HeldOut, float]](
    "backtests",
    text("foretold from", "gap", lambda row: _from(row[0])),
    magnitude("S", "S", lambda row: row[1].S),
    magnitude("D", "D", lambda row: row[1].D),
    with_ends("predicted", "predicted", lambda row: row[1].predicted, lambda value: significant(value, 4)),
    magnitude("measured", "measured", lambda row: row[1].measured),
    share("interval", "reach", lambda row: row[2], 2, "how far the interval reaches on the side of the measured y"),
    error("error", "error", lambda row: _off(row[1]), "(measured - predicted) / predicted"),
)


@one_by_one
def figures(of: Decisions, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """The frontier, IsoFLOP curves, the best size, what other splits lose, and backtests; of each quantity."""
    origin = Origin(spelled("runs_of_text", dataset=of.group.first.dataset), tuple(of.group.run_ids))
    for decision in of.of:
        trained, name = decision.trained, f"{decision.trained.law}{decision.trained.k or ''}"
        for each in _of_decision(decision, origin):
            yield replace(each, name=f"{each.name}-{name}", title=f"{each.title}: {trained.title}")


def _of_decision(of: Decision, origin: Origin) -> Iterator[Figure]:
    around = of.landscape
    if around is not None and around.splits:
        yield _frontier(of, around, origin)
    if around is not None and around.curves:
        yield _isoflop(of, around, origin)
    if around is not None and around.splits:
        yield _optimum(of, around, origin)
        yield _margins(of, around, origin)
    if any(_reach(test) is not None for budget in of.budgets for test in budget.held_out):
        yield _backtests(of, origin)


def _y(of: Decision) -> Scale:
    return Scale("y", of.trained.title, log=of.trained.sign == 1)


def _only(rows: Rows, *what: str) -> Rows:
    return [row for row in rows if row["shown"] in what]


def _with_rows(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    return tuple(mark for mark in marks if mark.rows)


def _bests(of: Decision, landscape: Landscape) -> list[_Point]:
    """The line of the best of each budget, and what was asked for, which is on the line too."""
    asked = [_Point.of(_ASKED, best, of.trained.sign) for best in of.best if best.S.value is not None]
    return [*(_Point.of(_LINE, each.best, of.trained.sign) for each in landscape.splits), *asked]


def _frontier(of: Decision, landscape: Landscape, origin: Origin) -> Figure:
    runs, sign = of.trained.runs, of.trained.sign
    at: list[Floats] = [runs.along(Axis.C), runs.S_N, runs.D_N, sign * runs.y_N]
    ran = [
        _Point(_LEADING if n in landscape.leading else _RUN, C, Estimate(S), Estimate(D), Estimate(y))
        for n, (C, S, D, y) in enumerate(zip(*(each.tolist() for each in at), strict=True))
    ]
    best = _bests(of, landscape)
    table = FRONTIER.table("Loss against compute", [*best, *ran])
    rows = table.records()
    named = tuple(name for name in (_LINE, _ASKED, _LEADING, _RUN) if _only(rows, name))
    along, asked = _only(rows, _LINE), _only(rows, _ASKED)
    marks = [
        points(rows=_only(rows, _RUN), look={"filled": False, "size": 25, "strokeWidth": 1}),
        points(rows=_only(rows, _LEADING), look={"size": 40}),
        Mark("band", along, "y_lo", "y_hi"),
        line(along),
        bars("y_lo", "y_hi", rows=asked),
        points(rows=asked),
    ]
    first, last = best[0], landscape.splits[-1].best
    return drawn(
        table,
        Chart(scale_of(Axis.C), _y(of), _with_rows(marks), "shown", "", named, height=340),
        f"The best of a budget goes from {significant(first.y.value, 4)} at {short(first.C)} FLOPs to "
        f"{significant(last.y.times(sign).value, 4)} at {short(last.C)}; {number_of(len(landscape.leading), 'run')} of "
        f"{len(ran)} had less than all before.",
        "Line and band: what a new run of the best size of each C = 6 S D would show, and where 95 % of such runs "
        "would lie. Best run so far: none of as much compute or less shows less.",
        origin,
    )


def _isoflop(of: Decision, landscape: Landscape, origin: Origin) -> Figure:
    sign = of.trained.sign
    named = {f"C = {short(curve.budget.C)}": curve for curve in landscape.curves}
    ran = [
        (name, "runs", S, sign * y)
        for name, each in named.items()
        for S, y in zip(each.budget.sizes, each.budget.y_of_sizes, strict=True)
    ]
    minima = [
        (name, "minimum", each.best.S.value, sign * each.best.y.value)
        for name, each in named.items()
        if each.best.S.value is not None and each.best.y.value is not None
    ]
    table = ISOFLOP.table("Loss against size at equal compute", [*ran, *minima])
    rows = table.records()
    curves: Rows = [
        {"budget": name, "S": S, "y": sign * y}
        for name, each in named.items()
        for S, y in zip(each.S, each.y, strict=True)
    ]
    ring = points(rows=_only(rows, "minimum"), plain=True, look={**_RING, "size": 200, "shape": "circle"})
    least = "; ".join(f"{name}: least at S = {short(S)}" for name, _, S, _ in minima)
    return drawn(
        table,
        Chart(
            scale_of(Axis.S, "S", of.trained.members[0].size_by),
            _y(of),
            (line(curves), points(rows=_only(rows, "runs")), *([ring] if minima else [])),
            "budget",
            height=340,
        ),
        f"{least or 'no curve has a minimum'}.",
        "Points: runs of each budget C = 6 S D, interpolated in ln C between two runs of a size. Lines: the surface "
        "over forms; rings: its minima.",
        origin,
    )


def _optimum(of: Decision, landscape: Landscape, origin: Origin) -> Figure:
    parabolas = [
        _Point(_PARABOLA, each.budget.C, each.budget.S, each.budget.D, Estimate())
        for each in landscape.curves
        if each.budget.S.value is not None
    ]
    best = _bests(of, landscape)
    table = OPTIMUM.table("The best size of each compute", [*best, *parabolas])
    rows = table.records()
    asked, seen = _only(rows, _ASKED), _only(rows, _PARABOLA)
    bounded = [row for row in seen if row["S_lo"] is not None and row["S_hi"] is not None]
    marks = [
        Mark("band", _only(rows, _LINE), "S_lo", "S_hi"),
        line(_only(rows, _LINE)),
        bars("S_lo", "S_hi", rows=[*bounded, *asked]),
        points(rows=[*seen, *asked]),
    ]
    first, last = landscape.splits[0].best, landscape.splits[-1].best
    return drawn(
        table,
        Chart(
            scale_of(Axis.C),
            Scale("S", "best S", log=True, form="~s"),
            _with_rows(marks),
            "shown",
            "",
            tuple(name for name in (_LINE, _ASKED, _PARABOLA) if _only(rows, name)),
        ),
        f"The best size goes from {short(first.S.value)} at {short(first.C)} FLOPs to {short(last.S.value)} at "
        f"{short(last.C)}.",
        "Line and band: best S of each C = 6 S D over forms, 95 %; its D is C / (6 S). Parabola: minima through the "
        "runs of one budget alone, which know no form.",
        origin,
    )


def _ratio(C: float, S: Estimate) -> Estimate:
    """D / S of a size of a budget."""
    value, lo, hi = (None if each is None else C / 6 / each**2 for each in (S.value, S.hi, S.lo))
    return Estimate(value, lo, hi)


def _end(margin: Margin, side: str) -> Estimate:
    return margin.smaller if side == _SIDES[0] else margin.larger


def _level(level: float) -> str:
    return f"{100 * level:g} %"


def _margins(of: Decision, landscape: Landscape, origin: Origin) -> Figure:
    splits: Sequence[Split] = landscape.splits
    said = [
        (_level(level), side, split.best.C, S, _ratio(split.best.C, S))
        for at, level in enumerate(LEVELS)
        for side in _SIDES
        for split in splits
        for S in (_end(split.margins[at], side),)
        if S.value is not None
    ]
    table = MARGINS.table("What other splits of a budget lose", said)
    runs = of.trained.runs
    at_C, ratio = runs.along(Axis.C).tolist(), (runs.D_N / runs.S_N).tolist()
    ran: Rows = [{"C": C, "ratio": each} for C, each in zip(at_C, ratio, strict=True)]
    best: Rows = [{"C": each.best.C, "ratio": _ratio(each.best.C, each.best.S).value} for each in splits]
    marks = [
        points(rows=ran, plain=True, name="", look={**_RING, "size": 40}),
        line(best, plain=True, look=_DOTS),
        line(table.records(), by="side"),
        *([rule(C=each.C) for each in of.best]),
    ]
    last, level = splits[-1], LEVELS.index(0.01)
    one, S = last.margins[level].smaller.value, last.best.S.value
    longer = (
        "at the most compute no line is known"
        if one is None or S is None
        else f"at {short(last.best.C)} FLOPs {one / S:.2g} times the best size, with {S / one:.2g} times the tokens, "
        f"loses {_level(LEVELS[level])}"
    )
    return drawn(
        table,
        Chart(
            scale_of(Axis.C),
            Scale("ratio", "D / S, tokens per parameter", log=True, form="~g"),
            _with_rows(marks),
            "level",
            "worse by",
            tuple(_level(level) for level in LEVELS),
            height=360,
        ),
        f"{longer}.",
        "Lines: where y is as likely as not so much larger than the least of its C = 6 S D, above the dots (the best) "
        "with more tokens, below with fewer; circles: the runs; dashed rules: what was asked for.",
        origin,
    )


def _from(test: BudgetTest) -> str:
    return f"1/{test.gap:g} of the compute"


def _off(test: HeldOut) -> float | None:
    y = test.predicted.value
    return None if y is None else test.measured / y - 1


def _reach(test: HeldOut) -> float | None:
    """How far the interval reaches on the side of the measured value, relative to the prediction."""
    y, ends = test.predicted.value, test.predicted.ends
    return None if y is None or ends is None else abs(ends[int(test.measured > y)] / y - 1)


def _backtests(of: Decision, origin: Origin) -> Figure:
    tested = [(budget, test, _reach(test)) for budget in of.budgets for test in budget.held_out]
    known = [(budget, test, reach) for budget, test, reach in tested if reach is not None]
    table = BACKTESTS.table("Expected and realised errors of backtests", known)
    widest = 1.05 * max(reach for *_, reach in known)
    wedge: Rows = [{"reach": at, "lo": -at, "hi": at} for at in (0.0, widest)]
    inside = sum(test.is_inside is True for _, test, _ in known)
    return drawn(
        table,
        Chart(
            Scale("reach", "95 % interval of the prediction, ±", zero=True, form="~%"),
            Scale("error", "measured / predicted − 1", form="~%"),
            (Mark("band", wedge, plain=True), rule(error=0.0), points()),
            "gap",
            "foretold from",
            height=320,
        ),
        f"{inside} of {number_of(len(known), 'point')} that smaller budgets foretold lie in their 95 % intervals.",
        "Points: runs of the larger budgets, foretold over forms from those with a third or a ninth of the compute or "
        "less; inside the wedge the interval held. Where it did not, intervals of what is said are wider.",
        origin,
    )
