"""Residuals of the laws of size: one fitted group in; ln y about -ln RBP_k and cross-entropy's laws against S out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rbpx.analyses.fit.analysis import Laws
from rbpx.display.along import LARGEST
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.residuals import CAPTION, residual_chart, residual_values
from rbpx.display.names import law_name
from rbpx.display.numbers import number, rough
from rbpx.display.plot.canvas import Series
from rbpx.display.spread import spread
from rbpx.groups.fits import Law
from rbpx.groups.question import spelled
from rbpx.laws.lack_of_fit import curvature, runs_p
from rbpx.laws.names import Method

__all__ = ["residual_figure", "residual_series"]

_NAME, _TITLE = "residuals", "Residuals about the laws"


def residual_figure(result: Laws) -> Figure | Undrawn:
    """The residuals of cross-entropy and of -ln RBP_k at up to seven k, about the laws of the first method."""
    first = [law for law in result.laws if law.method is result.laws[0].method]
    laws = [law for law in first if law.law == "cross_entropy" and _has_residuals(law)]
    shares = [law for law in first if law.law == "rbp" and _has_residuals(law)]
    laws += spread(shares, MOST_SERIES - len(laws))
    if not laws:
        return Undrawn(_NAME, _TITLE, "No law has numbers.")
    rows = [row for law in laws for row in _rows(law)]
    group = result.group
    said = "; ".join(f"{_name(law)}{_shape(law)}" for law in laws)
    return Figure(
        name=_NAME,
        title=_TITLE,
        says=f"Residuals for {group.title} against {LARGEST[group.axis]}: {said}.",
        caption=CAPTION,
        spec=residual_chart(rows, [_name(law) for law in laws], "law", group.axis),
        values=residual_values(_NAME, _TITLE, rows, "law", group.axis),
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


def residual_series(laws: Sequence[Law]) -> list[Series]:
    """The residuals of some laws for a terminal, each with the law itself, which is at 0."""
    series = []
    for law in laws:
        if _has_residuals(law):
            S_N, left_N = (np.array(law.fit.params[key], dtype=np.float64) for key in ("S", "residuals_ln"))
            x_L = np.geomspace(S_N.min(), S_N.max(), 60)
            name = f"{law_name(law.law, law.k)}{_shape(law)}"
            series.append(Series(name, S_N, left_N, x_L=x_L, y_L=np.zeros_like(x_L)))
    return series


def _has_residuals(law: Law) -> bool:
    return bool(law.fit.params.get("residuals_ln"))


def _name(law: Law) -> str:
    return "CE" if law.k is None else f"k = {law.k}"


def _rows(law: Law) -> list[dict[str, Any]]:
    return [
        {"series": _name(law), "size": run.size, "S": run.x, "residual": float(left)}
        for run, left in zip(law.runs, law.fit.params["residuals_ln"], strict=True)
    ]


def _shape(law: Law) -> str:
    """Spread of the residuals, and of a straight law how they curve and run."""
    params = law.fit.params
    left_N = np.array(params["residuals_ln"], dtype=np.float64)
    words = f", off by {rough(float(np.sqrt((left_N**2).mean())))}"
    if law.method is not Method.ols:
        return words
    ln_S_N = np.log(np.array(params["S"], dtype=np.float64))
    curve, p = curvature(ln_S_N, left_N), runs_p(ln_S_N, left_N)
    if curve.lo is not None and curve.hi is not None:
        words += f", curvature {number(curve.value)} ({number(curve.lo)} to {number(curve.hi)})"
    return words if p is None else f"{words}, runs p {number(p, 3)}"
