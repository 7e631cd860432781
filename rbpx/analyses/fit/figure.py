"""The laws of size: one fitted group in; -ln RBP_k and cross-entropy against S, with fits and bands, out.

Source: RBP paper (arXiv 2510.20387), figures 3 to 5.
"""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from rbpx.analyses.fit.analysis import Laws
from rbpx.analyses.fit.residuals import residual_figure
from rbpx.display.along import LARGEST
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import PLACE_TITLES, colour, curve, dash, data, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, decimal, named, place, place_column, sheet_of, span, whole
from rbpx.display.spread import spread
from rbpx.groups.fits import Law
from rbpx.groups.question import spelled
from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.names import Axis, Method

__all__ = ["figures"]

_METHODS = {
    Method.ols: "least squares",
    Method.weighted: "weighted least squares",
    Method.offset: "least squares with an offset",
    Method.robust: "Huber's loss",
}
_BAND = "Lines: laws fitted by {method}. Bands: where 95 % of new models would lie. Bars: 95 % over documents."
_POINTS = "A law needs three sizes; only the points are drawn."


def figures(result: Laws) -> list[Figure | Undrawn]:
    """-ln RBP_k at up to seven k, cross-entropy, then what both leave about their laws."""
    first = [law for law in result.laws if law.method is result.laws[0].method]
    shares = [law for law in first if law.law == "rbp" and _is_drawn(law)]
    entropy = [law for law in first if law.law == "cross_entropy" and _is_drawn(law)]
    return [
        _figure(result, "rbp", "−ln RBP_k against size", spread(shares, MOST_SERIES)),
        _figure(result, "cross_entropy", "Cross-entropy against size", entropy),
        residual_figure(result),
    ]


def _is_drawn(law: Law) -> bool:
    return any(y is not None and y > 0 for y in law.fit.params["y"])


def _figure(result: Laws, name: str, title: str, laws: Sequence[Law]) -> Figure | Undrawn:
    if not laws:
        return Undrawn(name, title, "It is not known at any size.")
    group = result.group
    points = [point for law in laws for point in _points(result, law)]
    lines = [{"series": _series(law), **at} for law in laws if law.fit.alpha is not None for at in curve(law.fit)]
    order = [_series(law) for law in laws]
    return Figure(
        name=name,
        title=title,
        says=_says(group.title, laws),
        caption=_BAND.format(method=_METHODS[laws[0].method]) if lines else _POINTS,
        spec=_chart(points, lines, order, "−ln RBP_k" if name == "rbp" else "cross-entropy, nats", group.axis),
        values=_values(name, title, points, group.axis),
        sql=spelled(
            "shares",
            run_ids=group.run_ids,
            family=group.first.family,
            dataset=group.first.dataset,
            k=[law.k for law in laws if law.k is not None] or [1],
            ties=group.ties.value,
        ),
        run_ids=tuple(group.run_ids),
    )


def _series(law: Law) -> str:
    return "CE" if law.k is None else str(law.k)


def _points(result: Laws, law: Law) -> list[dict[str, Any]]:
    rows = []
    for at, (run, y) in enumerate(zip(law.runs, law.fit.params["y"], strict=True)):
        lo, hi = _interval(result, law, at)
        if y is not None and y > 0:
            row = {"series": _series(law), "size": run.size, "S": run.x, "y": float(y)}
            rows.append(row | {"lo": lo, "hi": hi})
    return rows


def _interval(result: Laws, law: Law, at: int) -> tuple[float | None, float | None]:
    """95 % interval of one point over documents; None where no documents were resampled."""
    if not result.evidence or result.group.n_resampled < 2:
        return None, None
    resampled = result.evidence[at].resampled
    if law.k is None:
        y_B = resampled["cross_entropy"]
    else:
        with np.errstate(divide="ignore"):  # a resample without a hit is infinite, and left out
            y_B = -np.log(resampled["rbp"][:, result.k_grid.index(law.k)])
    y_B = y_B[np.isfinite(y_B) & (y_B > 0)]
    within = estimate(float(law.fit.params["y"][at] or 0.0), y_B, result.group.n_resampled, Recipe.expanded)
    return within.lo, within.hi


def _says(title: str, laws: Sequence[Law]) -> str:
    changes = []
    for law in laws:
        values = [y for y in law.fit.params["y"] if y]
        what = "cross-entropy" if law.k is None else f"−ln RBP_{law.k}"
        slope = "" if law.fit.alpha is None else f" with alpha {law.fit.alpha:.3f}"
        changes.append(f"{what} goes from {values[0]:.3g} to {values[-1]:.3g}{slope}")
    axis = laws[0].runs[0].axis
    return f"Logarithmic plot for {title}, from the smallest to the largest {LARGEST[axis]}: {'; '.join(changes)}."


def _chart(points: list[Any], lines: list[Any], order: list[str], y_title: str, axis: Axis) -> dict[str, Any]:
    x, y = (
        logarithmic(alt.X, "S", PLACE_TITLES[axis], "~s" if axis is not Axis.C else "~e"),
        logarithmic(alt.Y, "y", y_title),
    )
    hue: dict[str, Any] = {"color": colour("series", "k", order)} if len(order) > 1 else {}
    form: dict[str, Any] = {"shape": shape("series", "k", order)} if len(order) > 1 else {}
    line: dict[str, Any] = {"strokeDash": dash("series", order)} if len(order) > 1 else {}
    layers: list[Any] = []
    if lines:
        base = alt.Chart(data(lines)).encode(x=x)
        layers += [
            base.mark_area().encode(y=alt.Y("lo:Q", title=y_title), y2="hi:Q", **hue),
            base.mark_line().encode(y=y, **hue, **line),
        ]
    base = alt.Chart(data(points)).encode(x=x)
    tooltip = tips(series="k", size="size", S="S|,", y=f"{y_title}|.4~g", lo="95 % from|.4~g", hi="to|.4~g")
    if any(point["lo"] is not None for point in points):
        layers.append(base.mark_rule().encode(y=alt.Y("lo:Q", title=y_title), y2="hi:Q", **hue))
    layers.append(base.mark_point().encode(y=y, **hue, **form, tooltip=tooltip if len(order) > 1 else tooltip[1:]))
    return spec_of(alt.layer(*layers), height=340)


def _values(name: str, title: str, points: list[Any], axis: Axis) -> Sheet:
    rows = []
    for point in points:
        share = math.exp(-point["y"]) if name == "rbp" else None
        rows.append(
            [
                named(point["size"]),
                place(axis, point["S"]),
                *([whole(int(point["series"])), decimal(share)] if name == "rbp" else []),
                decimal(point["y"]),
                span(point["lo"], point["hi"]),
            ]
        )
    of_k = [("k", "k"), ("RBP_k", "rbp")] if name == "rbp" else []
    y = ("−ln RBP_k", "neg_ln_rbp") if name == "rbp" else ("cross-entropy", "cross_entropy_nats")
    columns = [
        ("size", "size"),
        place_column(axis),
        *of_k,
        y,
        ("95 %", "lo hi"),
    ]
    return sheet_of(name, f"{title}: values", columns, rows)
