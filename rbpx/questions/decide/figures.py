"""Draws the best run of each compute, averaged over forms, bends and misfit.

Source: arXiv 2203.15556, figure 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rbpx.display.chart.figure import Chart, Figure, Mark, Origin, Scale, bars, drawn, line, points, scale_of
from rbpx.display.table import interval, table_of
from rbpx.display.vocabulary import UNITS, in_digits, short, significant
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.names import Axis
from rbpx.laws.surface.decision import best_run
from rbpx.runs.group import Group
from rbpx.runs.origin import spelled

if TYPE_CHECKING:
    from rbpx.questions.decide.decision import Decision

_LINE, _ASKED, _LEADING, _RUN = "best of each C", "to train", "best run so far", "run"
_BUDGETS: Final = 13  # from the least compute of the runs to the most, or to the requested one
_SAME: Final = 1.01  # ratio of C within which runs spend the same

FRONTIER: Final = table_of(
    "frontier", ("shown", "shown"), *((x, x, short) for x in "CSD"), *interval("y", "y", in_digits(4)),
)  # fmt: skip


def figures(group: Group, decisions: "Sequence[Decision]", seed: int) -> Iterator[Figure]:
    """Draws the best run of each budget with the runs, for each quantity."""
    origin = Origin(spelled("runs_of_text", dataset=group.first.dataset), tuple(group.run_ids))
    for of in decisions:
        runs, sign, asked, title = of.trained.runs, of.trained.sign, of.of_kind("best"), of.trained.title
        if not asked:
            continue
        C_N = runs.along(Axis.C)
        spaced = np.geomspace(C_N.min(), max(C_N.max(), *(row["C"] for row in asked)), _BUDGETS)
        best = [each for C in spaced.tolist() if (each := best_run(of.fits, C, of.budget_tests, seed)).S.value]
        along: list[dict[str, Any]] = [
            {"shown": _LINE, "C": each.C, "S": each.S.value, "D": each.D.value, **by_name(y=each.y.times(sign))}
            for each in best
        ]
        if not along:
            continue
        ran = zip(*(of_N.tolist() for of_N in (C_N, runs.S_N, runs.D_N, sign * runs.y_N)), strict=True)
        leads = [y <= runs.y_N[C_N <= _SAME * C].min() for C, y in zip(C_N, runs.y_N, strict=True)]
        table = FRONTIER.of(
            f"Loss against compute: {title}",
            [
                *along,
                *({**row, "shown": _ASKED} for row in asked if row["S"] is not None),
                *(
                    {"shown": _LEADING if lead else _RUN, **dict(zip("CSDy", at, strict=True))}
                    for lead, at in zip(leads, ran, strict=True)
                ),
            ],
        )
        rows = {
            name: [row for row in table.records() if row["shown"] == name] for name in (_LINE, _ASKED, _LEADING, _RUN)
        }
        marks = (
            points(rows=rows[_RUN], look={"filled": False, "size": 25, "strokeWidth": 1}),
            points(rows=rows[_LEADING], look={"size": 40}),
            Mark("band", rows[_LINE], "y_lo", "y_hi"),
            line(rows[_LINE]),
            bars("y_lo", "y_hi", rows=rows[_ASKED]),
            points(rows=rows[_ASKED]),
        )
        y, order = (
            Scale("y", f"{title}{UNITS.get(of.trained.law, '')}", log=sign == 1),
            tuple(name for name, each in rows.items() if each),
        )
        chart = Chart(scale_of(Axis.C), y, tuple(each for each in marks if each.rows), "shown", "", order, 340)
        ends = (f"{significant(row['y'], 4)} at {short(row['C'])} FLOPs" for row in (along[0], along[-1]))
        caption = (
            "Line and band: what a new run of the best size of each C = 6 S D would show, and where 95 % of such runs "
            "would lie. Best run so far: none of as much compute or less shows less."
        )
        drawing = drawn(table, chart, f"The best of a budget goes from {' to '.join(ends)}.", caption, origin)
        yield replace(drawing, name=f"frontier-{of.trained.law}{of.trained.k or ''}")
