"""Gaps of one family in; how fast each pair of texts converges, and its ratio of losses against S, out.

Source: arXiv 2510.24626.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rbpx.analyses.gaps.analysis import Gaps, LossGap
from rbpx.display.along import LARGEST, in_axis
from rbpx.display.chart.drawing import (
    PLACE_TITLES,
    colour,
    curve,
    dash,
    data,
    linear,
    logarithmic,
    shape,
    spec_of,
    tips,
    zero_line,
)
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, decimal, named, place, place_column, span
from rbpx.display.names import law_title
from rbpx.groups.question import spelled
from rbpx.laws.names import Axis

MOST_PAIRS = 6  # with a figure of their own: the 15 pairs of 6 texts would fill a page

__all__ = ["MOST_PAIRS", "figures", "loss_name", "pair_name"]


def figures(results: Sequence[Gaps], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The exponents of all pairs, then a figure for each of the first six pairs."""
    return [_exponents(results, fit_ids), *(_ratios(gaps, at, fit_ids) for at, gaps in enumerate(results[:MOST_PAIRS]))]


def loss_name(loss: LossGap) -> str:
    """The name of a loss in the report."""
    return law_title(loss.law, loss.k)


def pair_name(gaps: Gaps, loss: LossGap) -> str:
    """The names of a pair: A, the harder text, then B; with the revision where the models have one."""
    names = (gaps.group.first.dataset, gaps.other.first.dataset)
    revision = gaps.group.first.revision
    return " / ".join(names[::-1] if loss.gap.swapped else names) + (f", revision {revision}" if revision else "")


def _run_ids(results: Sequence[Gaps]) -> tuple[str, ...]:
    return tuple(sorted({run_id for gaps in results for run_id in (*gaps.group.run_ids, *gaps.other.run_ids)}))


def _exponents(results: Sequence[Gaps], fit_ids: Sequence[str]) -> Figure | Undrawn:
    name, title = "delta", "Do gaps close with size?"
    rows = [
        {
            "texts": f"{gaps.group.first.dataset}, {gaps.other.first.dataset}",
            "pair": pair_name(gaps, loss),
            "loss": loss_name(loss),
            "delta": loss.gap.delta,
            "lo": loss.gap.delta_lo,
            "hi": loss.gap.delta_hi,
            "verdict": loss.gap.verdict,
        }
        for gaps in results
        for loss in gaps.gaps
        if loss.gap.delta is not None
    ]
    if not rows:
        return Undrawn(name, title, "No pair of texts has a ratio of losses at three sizes.")
    verdicts = [f"{row['loss']} of {row['pair']} {row['verdict'] or 'unknown'}" for row in rows[:12]]
    return Figure(
        name,
        title,
        f"Exponents of the ratio of losses for {results[0].group.title_of_family}: {'; '.join(verdicts)}.",
        "L_A / L_B = G·(S / S_ref)^δ, A the harder text. Left of 0 the gap closes with size, right of 0 it opens. "
        "Bars: 95 %, documents and models, each gap by itself; the verdicts are adjusted for all of them (Holm).",
        _exponents_chart(rows),
        _exponents_values(name, title, rows),
        spelled("laws", fit_ids=fit_ids),
        _run_ids(results),
    )


def _exponents_chart(rows: list[dict[str, Any]]) -> dict[str, Any]:
    order = list(dict.fromkeys(row["loss"] for row in rows))
    pairs = list(dict.fromkeys(row["texts"] for row in rows))
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("texts:N", sort=pairs, title=None, axis=alt.Axis(grid=True, labelLimit=150)),
        yOffset=alt.YOffset("loss:N", sort=order),
        color=colour("loss", "loss", order),
    )
    tooltip = tips(
        pair="A / B", loss="loss", delta="δ|+.4f", lo="95 % from|+.4f", hi="to|+.4f", verdict="gap"
    )  # fmt: skip
    return spec_of(
        alt.layer(
            zero_line("delta", "δ"),
            base.mark_rule(strokeWidth=2).encode(x=alt.X("lo:Q", title="δ"), x2="hi:Q"),
            base.mark_point().encode(
                x=linear(alt.X, "delta", "δ", zero=True, form="+.3~f"),
                shape=shape("loss", "loss", order),
                tooltip=tooltip,
            ),
        ),
        height=max(140, 14 * len(order) * len(pairs)),
    )


def _exponents_values(name: str, title: str, rows: list[dict[str, Any]]) -> Sheet:
    cells = [
        [named(r["pair"]), named(r["loss"]), decimal(r["delta"]), span(r["lo"], r["hi"]), named(r["verdict"])]
        for r in rows
    ]
    columns = [("A / B", "pair"), ("loss", "loss"), ("δ", "delta"), ("95 %", "delta_lo delta_hi"), ("gap", "gap")]
    return Sheet.of(name, f"{title}: values", columns, cells)


def _ratios(gaps: Gaps, at: int, fit_ids: Sequence[str]) -> Figure | Undrawn:
    names = f"{gaps.group.first.dataset} and {gaps.other.first.dataset}"
    name, title = f"ratio{at + 1}", f"The gap between {names}"
    losses = [loss for loss in gaps.gaps if loss.gap.fit.alpha is not None]
    if not losses:
        return Undrawn(name, title, "The ratio of losses is not known at three sizes.")
    points, lines = [], []
    for loss in losses:
        fit = loss.gap.fit
        series = f"{loss_name(loss)}, {pair_name(gaps, loss)}"
        sizes = {run.x: run.size for run in gaps.group.runs}
        points += [
            {"series": series, "size": sizes.get(S), "S": S, "ratio": y}
            for S, y in zip(fit.params["S"], fit.params["y"], strict=True)
            if y is not None
        ]
        lines += [{"series": series, "S": c["S"], "ratio": c["y"], "lo": c["lo"], "hi": c["hi"]} for c in curve(fit)]
    ratios = [f"{loss_name(loss)} {loss.gap.ratio:.3f}" for loss in losses if loss.gap.ratio is not None]
    return Figure(
        name,
        title,
        f"Losses of {gaps.group.title_of_family} on {names}, their ratio against {LARGEST[gaps.group.axis]}; at the "
        f"geometric mean of the {in_axis('sizes', gaps.group.axis)} {', '.join(ratios)}.",
        "Ratio of the losses of each model, that of the harder text on top. At 1 the gap is closed. Bands: where 95 % "
        "of new models would lie.",
        _ratios_chart(points, lines, gaps.group.axis),
        _ratios_values(name, title, points, gaps.group.axis),
        spelled("laws", fit_ids=fit_ids),
        _run_ids([gaps]),
    )


def _ratios_chart(points: list[dict[str, Any]], lines: list[dict[str, Any]], axis: Axis) -> dict[str, Any]:
    order = list(dict.fromkeys(point["series"] for point in points))
    x, y = logarithmic(alt.X, "S", PLACE_TITLES[axis]), linear(alt.Y, "ratio", "L_A / L_B")
    hue = colour("series", "", order)
    base = alt.Chart(data(lines)).encode(x=x, color=hue)
    tooltip = tips(series="loss, A / B", size="size", S="S|,", ratio="L_A / L_B|.4f")
    return spec_of(
        alt.layer(
            base.mark_area().encode(y=alt.Y("lo:Q", title="L_A / L_B"), y2="hi:Q"),
            base.mark_line().encode(y=y, strokeDash=dash("series", order)),
            alt.Chart(data(points))
            .mark_point()
            .encode(x=x, y=y, color=hue, shape=shape("series", "", order), tooltip=tooltip),
        )
    )


def _ratios_values(name: str, title: str, points: list[dict[str, Any]], axis: Axis) -> Sheet:
    rows = [[named(p["size"]), place(axis, int(p["S"])), named(p["series"]), decimal(p["ratio"])] for p in points]
    columns = [("size", "size"), place_column(axis), ("loss, A / B", "loss"), ("L_A / L_B", "ratio")]
    return Sheet.of(name, f"{title}: values", columns, rows)
