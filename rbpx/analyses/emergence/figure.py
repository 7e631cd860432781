"""Emergence: windows of one group in; p_{N,k}, measured and predicted, against S out, in a figure for each k.

Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7.
"""

import math
from typing import Any

import altair as alt

from rbpx.analyses.emergence.analysis import Emergence, Emergences
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import PLACE_TITLES, colour, curve, data, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, magnitude, named, place, place_column, sheet_of, whole
from rbpx.display.spread import spread
from rbpx.groups.group import Group
from rbpx.groups.question import spelled
from rbpx.laws.names import Axis

__all__ = ["figures"]

_LAW, _INDEPENDENT = "law of measured windows", "if tokens were independent"


def figures(result: Emergences) -> list[Figure | Undrawn]:
    """A figure for each of up to seven k."""
    by_k = [_figure(result.group, each) for each in spread(result.by_k, MOST_SERIES)]
    return by_k or [Undrawn("k", "Emergence", "No window of more than one token is known.")]


def _figure(group: Group, result: Emergence) -> Figure | Undrawn:
    name, title = f"k{result.k}", f"N tokens in a row of rank at most {result.k:,}"
    points = [point for point in _points(group, result) if point["p"]]
    if not points:
        return Undrawn(name, title, "No window of hits was seen at any size: take a shorter n, or a larger k.")
    missing = any(p == 0 for row in result.measured_MN for p in row)
    left_out = " Shares of 0 have no place on a logarithmic axis." if missing else ""
    sql = spelled(
        "window_shares", run_ids=group.run_ids, ties=group.ties.value, k=[result.k], n=list(result.lengths)
    ) if group.is_measured else _imported(group, result)  # fmt: skip
    return Figure(
        name,
        title,
        _says(group, result),
        "Points: share of windows of N consecutive scored tokens that are all hits. Solid: the law of each N. "
        f"Dashed: RBP_k^N, if tokens were independent.{left_out}",
        _chart(points, _lines(result), [str(n) for n in result.lengths], group.axis),
        _values(name, title, group, result),
        sql,
        tuple(group.run_ids),
    )


def _imported(group: Group, result: Emergence) -> str:
    of_group = ", ".join(f"'{run_id}'" for run_id in group.run_ids)
    condition = f"run_id IN ({of_group}) AND k = {result.k}"
    return f"SELECT size, k, n, rbp, run_id FROM observations WHERE {condition} ORDER BY size, n"


def _points(group: Group, result: Emergence) -> list[dict[str, Any]]:
    rows = []
    for m, run in enumerate(group.runs):
        for at, n in enumerate(result.lengths):
            row: dict[str, Any] = {"N": str(n), "size": run.size, "S": run.x}
            row |= {
                "p": _finite_or_none(result.measured_MN[m, at]),
                "independent": _finite_or_none(result.independent_MN[m, at]),
            }
            corrected = _finite_or_none(result.dependence[m].corrected_N[at]) if result.dependence else None
            rows.append(row | {"corrected": corrected})
    return rows


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _lines(result: Emergence) -> list[dict[str, Any]]:
    """The law of each N, as p."""
    return [
        {"N": str(law.n), "S": at["S"], "p": math.exp(-(at["y"] or 0.0)), "what": _LAW}
        for law in result.laws
        if law.fit.alpha is not None
        for at in curve(law.fit)
    ]


def _says(group: Group, result: Emergence) -> str:
    largest = group.runs[-1]
    shares = []
    for at, n in enumerate(result.lengths):
        p, alone = result.measured_MN[-1, at], result.independent_MN[-1, at]
        if math.isfinite(p) and math.isfinite(alone):
            shares.append(f"N = {n}: {p:.3g} measured, {alone:.3g} if tokens were independent")
    return f"Share of windows that are all hits for {group.title}; at {largest.size} {'; '.join(shares)}."


def _chart(points: list[dict[str, Any]], lines: list[dict[str, Any]], order: list[str], axis: Axis) -> dict[str, Any]:
    x, y = logarithmic(alt.X, "S", PLACE_TITLES[axis]), logarithmic(alt.Y, "p", "share of windows")
    hue = colour("N", "N", order)
    smallest = min(point["p"] for point in points)
    alone = [
        {"N": each["N"], "S": each["S"], "p": each["independent"], "what": _INDEPENDENT}
        for each in points
        if each["independent"] is not None and each["independent"] > smallest / 10  # else it would squeeze the others
    ]
    meaning = alt.Scale(domain=[_LAW, _INDEPENDENT], range=[[1, 0], [4, 4]])
    kind = alt.StrokeDash("what:N", scale=meaning, legend=None)
    tooltip = tips(
        N="N", size="size", S="S|,", p="measured|.3~g", independent="if independent|.3~g", corrected="corrected|.3~g"
    )
    return spec_of(
        alt.layer(
            alt.Chart(data([*lines, *alone])).mark_line().encode(x=x, y=y, color=hue, strokeDash=kind),
            alt.Chart(data(points))
            .mark_point()
            .encode(x=x, y=y, color=hue, shape=shape("N", "N", order), tooltip=tooltip),
        )
    )


def _values(name: str, title: str, group: Group, result: Emergence) -> Sheet:
    rows = [
        [
            named(point["size"]),
            place(group.axis, point["S"]),
            whole(int(point["N"])),
            *(magnitude(point[which]) for which in ("p", "independent", "corrected")),
        ]
        for point in _points(group, result)
    ]
    columns = [("size", "size"), place_column(group.axis), ("N", "n"), ("measured", "p")]
    columns += [("if independent", "p_independent"), ("corrected", "p_corrected")]
    note = "Corrected: beta-binomial with the measured mean and autocorrelation of hits."
    return sheet_of(name, f"{title}: values", columns, rows, note)
