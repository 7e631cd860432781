"""Draws figures across groups: all laws in one plot, and all exponents in another."""

from collections.abc import Sequence
from typing import Final

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Chart, Figure, Origin, Scale, Undrawn, bars, curve, drawn, line, points, scale_of
from rbpx.display.view import Column, View, decimal, magnitude, text, with_ends
from rbpx.questions.fit.analysis import Laws
from rbpx.report.overview import alpha_of
from rbpx.runs.group import titles_of
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record

__all__ = ["figures_across"]

_Named = tuple[str, str, Laws]  # what tells it apart by colour, its title, and its laws
_Place = tuple[str, str, float, float]  # the same with a place on the law of RBP
_HUE: Final = "series"


def figures_across(answer: Sequence[tuple[Laws, Sequence[Record]]]) -> tuple[Figure | Undrawn, ...]:
    """Draw the laws of all groups against size, and the exponent of cross-entropy of each against that of RBP.

    Args:
        answer: fitted groups, each with the rows of its fits.
    """
    laws = [each for each, _ in answer]
    fit_ids = [
        str(row["fit_id"])
        for each, rows in answer
        for law in each.headline
        for row in rows
        if law is not None and (row["law"], row["k"]) == (law.law, law.k)
    ]
    named = list(zip(_hue(laws), titles_of([each.group for each in laws]), laws, strict=True))
    origin = from_fits(fit_ids, *(each.group for each in laws))
    return _laws(named, origin), _exponents(named, origin)


def _hue(laws: Sequence[Laws]) -> list[str]:
    """What colour tells apart: texts, else families, else nothing."""
    firsts = [each.group.first for each in laws]
    for names in ([first.dataset for first in firsts], [first.family for first in firsts]):
        if len(set(names)) <= MOST_SERIES:
            return names
    return ["all"] * len(laws)


def _laws(named: Sequence[_Named], origin: Origin) -> Figure | Undrawn:
    name, title = "laws-across", "The laws of all groups"
    rows: list[_Place] = [
        (hue, group, float(at["S"] or 0), float(at["y"] or 0))
        for hue, group, laws in named
        if (law := laws.headline[0]) is not None
        for at in curve(law.fit, "S", "y")
    ]
    if not rows:
        return Undrawn(name, title, "No group has a law of RBP_k, which needs three points.")
    columns: list[Column[_Place]] = [
        text("colour", _HUE, lambda row: row[0]),
        text("group", "group", lambda row: row[1]),
        magnitude("{x}", "S", lambda row: row[2]),
        decimal("−ln RBP", "y", lambda row: row[3], 5),
    ]
    one_colour = line(by="group", look={"strokeWidth": 1.2, "opacity": 0.7, "strokeDash": [1, 0]})
    axis = named[0][2].group.axis
    x, y = scale_of(axis, "S"), Scale("y", "−ln RBP", log=True)
    return drawn(
        View(name, columns).table(title, rows, axis=axis),
        Chart(x, y, (one_colour,), _HUE, height=340),
        f"Logarithmic plot of {len({row[1] for row in rows})} laws of −ln RBP against {axis.value}, one per group.",
        "A line for each group: its law of −ln RBP at the smallest k, between its smallest and its largest point.",
        origin,
    )


EXPONENTS: Final = View[_Named](
    "exponents-across",
    text("colour", _HUE, lambda row: row[0]),
    text("group", "group", lambda row: row[1]),
    with_ends("α, RBP", "alpha_rbp", lambda row: alpha_of(row[2], 0)),
    with_ends("α, CE", "alpha_ce", lambda row: alpha_of(row[2], 1)),
)


def _exponents(named: Sequence[_Named], origin: Origin) -> Figure | Undrawn:
    title = "The exponents of all groups"
    both = [each for each in named if None not in each[2].headline]
    if not both:
        return Undrawn(EXPONENTS.name, title, "No group has laws of both RBP_k and cross-entropy.")
    alphas = [(alpha.value or 0.0, group) for _, group, laws in both if (alpha := alpha_of(laws, 0)) is not None]
    (least, of_least), (most, of_most) = min(alphas), max(alphas)
    thin = {"opacity": 0.3}
    marks = (
        bars("alpha_rbp_lo", "alpha_rbp_hi", along="x", look=thin),
        bars("alpha_ce_lo", "alpha_ce_hi", look=thin),
        points(),
    )
    return drawn(
        EXPONENTS.table(title, both),
        Chart(Scale("alpha_rbp", "α of −ln RBP"), Scale("alpha_ce", "α of cross-entropy"), marks, _HUE, height=340),
        f"Exponents of {len(both)} groups; that of −ln RBP goes from {least:.3f} ({of_least}) to "
        f"{most:.3f} ({of_most}).",
        "A point for each group. Bars: 95 % intervals over documents and models.",
        origin,
    )
