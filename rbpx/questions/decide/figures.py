"""Draws what a decision rests on: the best of each compute, and how backtests came out.

All of it is over forms, bends and misfit. Source of the first: arXiv 2203.15556, figure 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Mark,
    Origin,
    Rows,
    Scale,
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
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Axis
from rbpx.laws.surface.decision import best_of
from rbpx.runs.origin import spelled
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.store.store import Record

if TYPE_CHECKING:
    from rbpx.questions.decide.ask import Decision

_LINE, _RUN, _LEADING, _ASKED = "best of each C", "run", "best run so far", "asked for"
_BUDGETS: Final = 13  # from the least compute of the runs to the most, or to what is asked for
_SAME: Final = 1.01  # of C: runs that are so close spend the same


FRONTIER: Final = View[Record](
    "frontier",
    text("shown", "shown"),
    [magnitude(name, name) for name in "CSD"],
    with_ends("y", "y", None, in_digits(4)),
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


def figures(group: TrainingGroup, decisions: "Sequence[Decision]", seed: int) -> Iterator[Figure]:
    """The frontier and the backtests of each quantity; a picture of what is not known is left out."""
    origin = Origin(spelled("runs_of_text", dataset=group.first.dataset), tuple(group.run_ids))
    for of in decisions:
        asked = [row for row in of.of_kind("best") if row["S"] is not None]
        for each in (*_frontier(of, asked, seed, origin), *_backtests(of, origin)):
            name = f"{each.name}-{of.trained.law}{of.trained.k or ''}"
            yield replace(each, name=name, title=f"{each.title}: {of.trained.title}")


def _frontier(of: "Decision", asked: Sequence[Record], seed: int, origin: Origin) -> Iterator[Figure]:
    runs, sign = of.trained.runs, of.trained.sign
    if not of.of_kind("best"):
        return
    C_N = runs.along(Axis.C)
    spaced = np.geomspace(C_N.min(), max(C_N.max(), *(row["C"] for row in of.of_kind("best"))), _BUDGETS)
    best = [best_of(of.fits, C, of.foretold, seed) for C in spaced.tolist()]
    rows: Rows = [
        {"shown": _LINE, "C": each.C, "S": each.S.value, "D": each.D.value, **by_name(y=each.y.times(sign))}
        for each in best
        if each is not None and each.S.value is not None
    ]
    if not rows:
        return
    named = ("C", "S", "D", "y", "y_lo", "y_hi")
    rows += [{"shown": _ASKED, **{name: row[name] for name in named}} for row in asked]
    leads = [y <= runs.y_N[C_N <= _SAME * C].min() for C, y in zip(C_N, runs.y_N, strict=True)]
    ran = zip(leads, *(each.tolist() for each in (C_N, runs.S_N, runs.D_N, sign * runs.y_N)), strict=True)
    rows += [{"shown": _LEADING if lead else _RUN, **dict(zip("CSDy", at, strict=True))} for lead, *at in ran]
    table = FRONTIER.table("Loss against compute", rows)
    shown = {name: [row for row in table.records() if row["shown"] == name] for name in (_LINE, _ASKED, _LEADING, _RUN)}
    marks = (
        points(rows=shown[_RUN], look={"filled": False, "size": 25, "strokeWidth": 1}),
        points(rows=shown[_LEADING], look={"size": 40}),
        Mark("band", shown[_LINE], "y_lo", "y_hi"),
        line(shown[_LINE]),
        bars("y_lo", "y_hi", rows=shown[_ASKED]),
        points(rows=shown[_ASKED]),
    )
    ends = (f"{significant(row['y'], 4)} at {short(row['C'])} FLOPs" for row in (rows[0], shown[_LINE][-1]))
    order = tuple(name for name, each in shown.items() if each)
    yield drawn(
        table,
        Chart(
            scale_of(Axis.C),
            Scale("y", of.trained.title, log=sign == 1),
            tuple(each for each in marks if each.rows),
            "shown",
            "",
            order,
            340,
        ),
        f"The best of a budget goes from {' to '.join(ends)}.",
        "Line and band: what a new run of the best size of each C = 6 S D would show, and where 95 % of such runs "
        "would lie. Best run so far: none of as much compute or less shows less.",
        origin,
    )


def _backtests(of: "Decision", origin: Origin) -> Iterator[Figure]:
    """Runs of larger budgets beside what smaller ones announced, where that has an interval."""
    known: list[Record] = []
    for budget, test in [(each, test) for each in of.foretold for test in each.held_out]:
        y, ends = test.predicted.value, test.predicted.ends
        if y is not None and ends is not None:
            at: Record = {"gap": f"1/{budget.gap:g} of the compute", "S": test.S, "D": test.D, "inside": test.is_inside}
            at |= {"reach": abs(ends[int(test.measured > y)] / y - 1), "error": test.measured / y - 1}
            known.append(at | {"measured": test.measured} | by_name(predicted=test.predicted))
    if not known:
        return
    widest = 1.05 * max(row["reach"] for row in known)
    wedge: Rows = [{"reach": at, "lo": -at, "hi": at} for at in (0.0, widest)]
    inside = sum(row["inside"] is True for row in known)
    yield drawn(
        BACKTESTS.table("Expected and realised errors of backtests", known),
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
        "less; inside the wedge the interval held.",
        origin,
    )
