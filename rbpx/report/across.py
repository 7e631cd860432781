"""Figures across groups: their fitted laws in; all laws in one plot, and all exponents in another, out."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rbpx.analyses.fit.analysis import Laws
from rbpx.analyses.fit.headline import headline
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import PLACE_TITLES, colour, curve, data, linear, logarithmic, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import decimal, named, sheet_of, span
from rbpx.groups.fits import Law
from rbpx.groups.labels import titles_of
from rbpx.groups.question import spelled
from rbpx.store.store import Record

__all__ = ["figures_across"]

Rows = list[dict[str, Any]]


def figures_across(answer: Sequence[tuple[Laws, Sequence[Record]]]) -> tuple[Figure | Undrawn, ...]:
    """The laws of all groups against size, and the exponent of cross-entropy of each against that of RBP.

    Args:
        answer: fitted groups, each with the rows of its fits.
    """
    laws = [each for each, _ in answer]
    hue = _hue(laws)
    fit_ids = [
        str(row["fit_id"])
        for each, rows in answer
        for law in headline(each)
        for row in rows
        if law is not None and (row["law"], row["k"]) == (law.law, law.k)
    ]
    lines, points = Rows(), Rows()
    for each, title, series in zip(laws, titles_of([each.group for each in laws]), hue, strict=True):
        shares, entropy = headline(each)
        lines += [{"series": series, "group": title, **at} for at in ([] if shares is None else curve(shares.fit))]
        of = {"series": series, "group": title}
        points.append(of | _ends("rbp", shares) | _ends("ce", entropy))
    run_ids = tuple(run_id for each in laws for run_id in each.group.run_ids)
    origin: dict[str, Any] = {"sql": spelled("laws", fit_ids=fit_ids), "run_ids": run_ids}
    return _laws(laws, lines, list(dict.fromkeys(hue)), origin), _exponents(points, list(dict.fromkeys(hue)), origin)


def _hue(laws: Sequence[Laws]) -> list[str]:
    """What tells groups apart by colour: texts, else families, else nothing."""
    for of in ("dataset", "family"):
        names = [str(getattr(each.group.first, of)) for each in laws]
        if len(set(names)) <= MOST_SERIES:
            return names
    return ["all"] * len(laws)


def _ends(name: str, law: Law | None) -> dict[str, float | None]:
    fit = None if law is None else law.fit
    ends = (None, None, None) if fit is None else (fit.alpha, fit.alpha_lo, fit.alpha_hi)
    return dict(zip((name, f"{name}_lo", f"{name}_hi"), ends, strict=True))


def _laws(laws: Sequence[Laws], lines: Rows, order: list[str], origin: dict[str, Any]) -> Figure | Undrawn:
    name, title = "laws-across", "The laws of all groups"
    if not lines:
        return Undrawn(name, title, "No group has a law of RBP_k: at least three sizes are needed.")
    axis = laws[0].group.axis
    n = len({row["group"] for row in lines})
    chart = (
        alt.Chart(data(lines))
        .mark_line(strokeWidth=1.2, opacity=0.7)
        .encode(
            x=logarithmic(alt.X, "S", PLACE_TITLES[axis]),
            y=logarithmic(alt.Y, "y", "−ln RBP"),
            detail="group:N",
            color=colour("series", "", order),
            tooltip=tips(group="group", S="S|.3~s", y="−ln RBP|.4~g"),
        )
    )
    rows = [[named(row["group"]), decimal(row["S"]), decimal(row["y"], 5)] for row in lines]
    return Figure(
        name=name,
        title=title,
        says=f"Logarithmic plot of {n} laws of −ln RBP against size, a line for each group.",
        caption="A line for each group: its law of −ln RBP at the smallest k, between its smallest and largest size.",
        spec=spec_of(alt.layer(chart), height=340),
        values=sheet_of(name, f"{title}: values", [("group", "group"), ("S", "S"), ("−ln RBP", "y")], rows),
        **origin,
    )


def _exponents(points: Rows, order: list[str], origin: dict[str, Any]) -> Figure | Undrawn:
    name, title = "exponents-across", "The exponents of all groups"
    both = [row for row in points if row["rbp"] is not None and row["ce"] is not None]
    if not both:
        return Undrawn(name, title, "No group has laws of both RBP_k and cross-entropy.")
    x, y = linear(alt.X, "rbp", "α of −ln RBP"), linear(alt.Y, "ce", "α of cross-entropy")
    base, hue = alt.Chart(data(both)), colour("series", "", order)
    tooltip = tips(group="group", rbp="α of −ln RBP|.3~f", ce="α of cross-entropy|.3~f")
    chart = alt.layer(
        base.mark_rule(opacity=0.3).encode(x=alt.X("rbp_lo:Q"), x2="rbp_hi:Q", y=y, color=hue),
        base.mark_rule(opacity=0.3).encode(x=x, y=alt.Y("ce_lo:Q"), y2="ce_hi:Q", color=hue),
        base.mark_point().encode(x=x, y=y, color=hue, tooltip=tooltip),
    )
    least, most = (fold(both, key=lambda row: float(row["rbp"])) for fold in (min, max))
    rows = [
        [
            named(r["group"]),
            *(e for q in ("rbp", "ce") for e in (decimal(r[q], 4), span(r[f"{q}_lo"], r[f"{q}_hi"], 4))),
        ]
        for r in points
    ]
    columns = [("group", "group"), ("α, RBP", "alpha_rbp"), ("95 %", "alpha_rbp_lo alpha_rbp_hi")]
    columns += [("α, CE", "alpha_ce"), ("95 % ", "alpha_ce_lo alpha_ce_hi")]
    return Figure(
        name=name,
        title=title,
        says=f"Exponents of {len(both)} groups; that of −ln RBP goes from {least['rbp']:.3f} ({least['group']}) to "
        f"{most['rbp']:.3f} ({most['group']}).",
        caption="A point for each group. Bars: 95 % intervals over documents and models.",
        spec=spec_of(chart, height=340),
        values=sheet_of(name, f"{title}: values", columns, rows),
        **origin,
    )
