"""The law in k: one group in, -ln RBP_k against k for up to seven sizes out.

Source: RBP paper (arXiv 2510.20387), appendix B, figure 9.
"""

from typing import Any

import altair as alt

from rbpx.analyses.klaw.analysis import KLaw, KLaws
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import colour, curve, dash, data, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, decimal, named, whole
from rbpx.display.spread import spread
from rbpx.groups.question import spelled

__all__ = ["figures"]


def figures(result: KLaws) -> list[Figure | Undrawn]:
    """-ln RBP_k against k, with a line for each size."""
    title = "−ln RBP_k against k"
    laws = [law for law in result.laws if law.fit.alpha is not None]
    if not laws:
        return [
            Undrawn("k", title, "No size has −ln RBP_k at three k of the grid; ask for more with k='[1,3,10,30,100]'.")
        ]
    chosen, group = spread(laws, MOST_SERIES), result.group
    slopes = f"{chosen[0].label} with slope {-(chosen[0].fit.alpha or 0):.3f}"
    if len(chosen) > 1:
        slopes += f" to {chosen[-1].label} with slope {-(chosen[-1].fit.alpha or 0):.3f}"
    part = f" {len(chosen)} of {len(laws)} sizes are drawn; the table has all." if len(chosen) < len(laws) else ""
    return [
        Figure(
            "k",
            title,
            f"Logarithmic plot for {group.title}: falling lines, from {slopes}.",
            f"Lines: −ln RBP_k = C·k^−α at fixed S, by least squares.{part}",
            _chart(chosen),
            _values(laws),
            spelled(
                "shares",
                run_ids=group.run_ids,
                family=group.first.family,
                dataset=group.first.dataset,
                k=list(result.k_grid),
                ties=group.ties.value,
            ),
            tuple(group.run_ids),
        )
    ]


def _points(law: KLaw) -> list[dict[str, Any]]:
    pairs = zip(law.fit.params["S"], law.fit.params["y"], strict=True)  # the law's x is k here
    return [{"size": law.label, "k": int(k), "y": float(y)} for k, y in pairs if y is not None]


def _chart(laws: list[KLaw]) -> dict[str, Any]:
    order = [law.label for law in laws]
    lines = [{"size": law.label, "k": at["S"], "y": at["y"]} for law in laws for at in curve(law.fit, 2)]
    x, y = logarithmic(alt.X, "k", "k"), logarithmic(alt.Y, "y", "−ln RBP_k")
    hue = colour("size", "size", order)
    points = alt.Chart(data([point for law in laws for point in _points(law)]))
    tooltip = tips(size="size", k="k|,", y="−ln RBP_k|.4~g")
    return spec_of(
        alt.layer(
            alt.Chart(data(lines)).mark_line().encode(x=x, y=y, color=hue, strokeDash=dash("size", order)),
            points.mark_point().encode(x=x, y=y, color=hue, shape=shape("size", "size", order), tooltip=tooltip),
        )
    )


def _values(laws: list[KLaw]) -> Sheet:
    rows = [
        [named(law.label), whole(law.run.non_embedding_params), whole(point["k"]), decimal(point["y"])]
        for law in laws
        for point in _points(law)
    ]
    columns = [("size", "size"), ("S", "non_embedding_params"), ("k", "k"), ("−ln RBP_k", "neg_ln_rbp")]
    return Sheet.of("k", "−ln RBP_k against k: values", columns, rows)
