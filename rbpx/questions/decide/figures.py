"""Draws what a decision rests on: the best of each compute, what other splits lose, and how backtests came out.

All of it is over forms, bends and misfit. A picture of what is not known, as the best size where size and tokens vary
together, is left out. Source: arXiv 2203.15556, figures 2 and 3, for the first three.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from rbpx.display.vocabulary import in_digits, short, significant
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import Estimate, by_name, flat
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.decision import Best
from rbpx.laws.surface.landscape import LEVELS, Landscape
from rbpx.questions.budgets import (
    DOTS,
    RING,
    isoflop_figure,
    of_budget,
    of_quantity,
    optimum_figure,
    scale_of_y,
)
from rbpx.questions.decide.analysis import Decision
from rbpx.runs.origin import spelled
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.store.store import Record

_LINE, _RUN, _LEADING, _ASKED, _PARABOLA = "best of each C", "run", "best run so far", "asked for", "IsoFLOP parabola"
_SIDES: Final = {"more tokens": "smaller", "fewer tokens": "larger"}  # size


FRONTIER: Final = View[Record](
    "frontier",
    text("shown", "shown"),
    [magnitude(name, name) for name in "CSD"],
    with_ends("y", "y", None, in_digits(4)),
)
MARGINS: Final = View[Record](
    "margins",
    text("worse by", "level"),
    text("side", "side"),
    magnitude("C", "C"),
    with_ends("S", "S", None, short),
    with_ends("D / S", "ratio", None, short),
)
BACKTESTS: Final = View[Record](
    "backtests",
    text("foretold from", "gap"),
    [magnitude(name, name) for name in "SD"],
    with_ends("predicted", "predicted", None, in_digits(4)),
    magnitude("measured", "measured"),
    share("interval", "reach", None, 2, "how far the interval reaches on the side of the measured y"),
    error("error", "error", means="(measured - predicted) / predicted"),
)


def figures(group: TrainingGroup, decisions: Sequence[Decision]) -> Iterator[Figure | Undrawn]:
    """The frontier, IsoFLOP curves, the best size, what other splits lose, and backtests; of each quantity."""
    origin = Origin(spelled("runs_of_text", dataset=group.first.dataset), tuple(group.run_ids))
    for decision in decisions:
        yield from (of_quantity(each, decision.trained) for each in _of_decision(decision, origin))


def _of_decision(of: Decision, origin: Origin) -> Iterator[Figure]:
    around = of.landscape
    if around is not None and around.splits:
        yield _frontier(of, around, origin)
    if around is not None and around.curves:
        yield _isoflop(of, around, origin)
    if around is not None and around.splits:
        yield _optimum(of, around, origin)
        yield _margins(of, around, origin)
    if foretold := _foretold(of):
        yield _backtests(foretold, origin)


def _only(rows: Rows, *what: str) -> Rows:
    return [row for row in rows if row["shown"] in what]


def _with_rows(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    return tuple(mark for mark in marks if mark.rows)


def _point(what: str, best: Best, sign: int) -> Record:
    return {"shown": what, **flat(vars(replace(best, y=best.y.times(sign))))}


def _lines(of: Decision, landscape: Landscape) -> dict[str, list[Record]]:
    """The line of the best of each budget, and what was asked for, which is on the line too."""
    bests = {_LINE: [each.best for each in landscape.splits], _ASKED: [each for each in of.best if each.S.value]}
    return {what: [_point(what, each, of.trained.sign) for each in best] for what, best in bests.items()}


def _frontier(of: Decision, landscape: Landscape, origin: Origin) -> Figure:
    runs, sign = of.trained.runs, of.trained.sign
    at: list[Floats] = [runs.along(Axis.C), runs.S_N, runs.D_N, sign * runs.y_N]
    ran = [
        {"shown": _LEADING if n in landscape.leading else _RUN, **dict(zip("CSDy", each, strict=True))}
        for n, each in enumerate(zip(*(each.tolist() for each in at), strict=True))
    ]
    best = [row for rows in _lines(of, landscape).values() for row in rows]
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
    first, last = best[0], best[len(along) - 1]
    return drawn(
        table,
        Chart(scale_of(Axis.C), scale_of_y(of.trained), _with_rows(marks), "shown", "", named, height=340),
        f"The best of a budget goes from {significant(first['y'], 4)} at {short(first['C'])} FLOPs to "
        f"{significant(last['y'], 4)} at {short(last['C'])}; {number_of(len(landscape.leading), 'run')} of {len(ran)} "
        "had less than all before.",
        "Line and band: what a new run of the best size of each C = 6 S D would show, and where 95 % of such runs "
        "would lie. Best run so far: none of as much compute or less shows less.",
        origin,
    )


def _isoflop(of: Decision, landscape: Landscape, origin: Origin) -> Figure:
    curves = landscape.curves
    known = [(each.budget.C, each.best.S.value, each.best.y.value) for each in curves]
    return isoflop_figure(
        "Loss against size at equal compute",
        of.trained,
        [row for each in curves for row in of_budget(each.budget.C, each.budget.sizes, each.budget.y_of_sizes)],
        [row for each in curves for row in of_budget(each.budget.C, each.S, each.y)],
        [row for C, S, y in known if S is not None and y is not None for row in of_budget(C, [S], [y])],
        "Points: runs of each budget C = 6 S D, interpolated in ln C between two runs of a size. Lines: the surface "
        "over forms; rings: its minima.",
        origin,
    )


def _optimum(of: Decision, landscape: Landscape, origin: Origin) -> Figure:
    seen = [flat(vars(each.budget)) for each in landscape.curves if each.budget.S.value is not None]
    return optimum_figure(
        "The best size of each compute",
        {**_lines(of, landscape), _PARABOLA: seen},
        "Line and band: best S of each C = 6 S D over forms, 95 %; its D is C / (6 S). Parabola: minima through the "
        "runs of one budget alone, which know no form.",
        origin,
    )


def _ratio(C: float, S: Estimate) -> Estimate:
    """D / S of a size of a budget."""
    return S.through(lambda each: C / 6 / each**2, falls=True)


def _level(level: float) -> str:
    return f"{100 * level:g} %"


def _margins(of: Decision, landscape: Landscape, origin: Origin) -> Figure:
    splits = landscape.splits
    said = [
        {"level": _level(level), "side": side, "C": split.best.C, **by_name(S=S, ratio=_ratio(split.best.C, S))}
        for at, level in enumerate(LEVELS)
        for side, end in _SIDES.items()
        for split in splits
        for S in (getattr(split.margins[at], end),)
        if S.value is not None
    ]
    table = MARGINS.table("What other splits of a budget lose", said)
    runs = of.trained.runs
    at_C, ratio = runs.along(Axis.C).tolist(), (runs.D_N / runs.S_N).tolist()
    ran: Rows = [{"C": C, "ratio": each} for C, each in zip(at_C, ratio, strict=True)]
    best: Rows = [{"C": each.best.C, "ratio": _ratio(each.best.C, each.best.S).value} for each in splits]
    marks = [
        points(rows=ran, plain=True, name="", look={**RING, "size": 40}),
        line(best, plain=True, look=DOTS),
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


def _foretold(of: Decision) -> list[Record]:
    """Runs of larger budgets beside what smaller ones announced, where that has an interval.

    `reach` is how far this reaches on the side of the measured value, relative to the prediction.
    """
    rows = []
    for budget, test in [(each, test) for each in of.budgets for test in each.held_out]:
        y, ends = test.predicted.value, test.predicted.ends
        if y is not None and ends is not None:
            row: Record = {"gap": f"1/{budget.gap:g} of the compute", "S": test.S, "D": test.D}
            row |= {"reach": abs(ends[int(test.measured > y)] / y - 1), "error": test.measured / y - 1}
            row |= {"measured": test.measured, "inside": test.is_inside}
            rows.append(row | by_name(predicted=test.predicted))
    return rows


def _backtests(known: Sequence[Record], origin: Origin) -> Figure:
    table = BACKTESTS.table("Expected and realised errors of backtests", known)
    widest = 1.05 * max(row["reach"] for row in known)
    wedge: Rows = [{"reach": at, "lo": -at, "hi": at} for at in (0.0, widest)]
    inside = sum(row["inside"] is True for row in known)
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
