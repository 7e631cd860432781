"""Draws figures across groups: all laws in one plot, and all exponents in another."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Chart, Figure, Origin, Scale, Undrawn, bars, drawn, line, points, scale_of
from rbpx.display.view import View, decimal, magnitude, text, with_ends
from rbpx.laws.names import Axis
from rbpx.questions.fit.sentences import headline
from rbpx.questions.result import Result
from rbpx.report.overview import title_of_rbp
from rbpx.runs.group import Group, titles_of
from rbpx.runs.origin import from_fits
from rbpx.store.store import Record

__all__ = ["figures_across"]

_HUE: Final = "series"


def figures_across(fits: Sequence[Result]) -> tuple[Figure | Undrawn, ...]:
    """Draws the laws of all groups against size, and each exponent of cross-entropy against that of RBP.

    Args:
        fits: answers of `fit`, one for each group.
    """
    groups = [each.groups[0] for each in fits]
    firsts = [headline(each.rows) for each in fits]
    origin = from_fits([str(law["fit_id"]) for both in firsts for law in both if law is not None], *groups)
    named: list[_Named] = [
        ({_HUE: hue, "group": title}, *both)
        for hue, title, both in zip(_hue(groups), titles_of(groups), firsts, strict=True)
    ]
    of = title_of_rbp(firsts)
    return _laws(named, of, groups[0].axis if groups else Axis.S, origin), _exponents(named, of, origin)


_Named = tuple[Record, Record | None, Record | None]
"""What tells a group apart by colour and its title, its law of RBP, and that of cross-entropy."""


def _hue(groups: Sequence[Group]) -> list[str]:
    """Returns what colour distinguishes: texts, else families, else nothing."""
    firsts = [group.first for group in groups]
    for names in ([first.dataset for first in firsts], [first.family for first in firsts]):
        if len(set(names)) <= MOST_SERIES:
            return names
    return ["all"] * len(groups)


def _laws(named: Sequence[_Named], of: str, axis: Axis, origin: Origin) -> Figure | Undrawn:
    name, title = "laws-across", "The laws of all groups"
    rows = [names | {"S": S, "y": y} for names, law, _ in named if law is not None for S, y in _curve(law)]
    if not rows:
        return Undrawn(name, title, "No group has a law of RBP_k, which needs three points.")
    view = View[Record](
        name, text("colour", _HUE), text("group", "group"), magnitude("{x}", "S"), decimal(of, "y", digits=5)
    )
    one_colour = line(by="group", look={"strokeWidth": 1.2, "opacity": 0.7, "strokeDash": [1, 0]})
    return drawn(
        view.table(title, rows, axis=axis),
        Chart(scale_of(axis, "S"), Scale("y", of, log=True), (one_colour,), _HUE, height=340),
        f"Logarithmic plot of {len({row['group'] for row in rows})} laws of {of} against {axis.value}, one a group.",
        f"A line for each group: its law of {of}, between its smallest and its largest point.",
        origin,
    )


def _curve(law: Record) -> list[tuple[float, float]]:
    """Returns points along a law from its smallest to its largest observation."""
    places = np.geomspace(min(law["params"]["S"]), max(law["params"]["S"]), _STEPS)
    values = (law["params"]["E"] or 0.0) + law["C"] * places ** -law["alpha"]
    return list(zip(places.tolist(), values.tolist(), strict=True))


def _exponents(named: Sequence[_Named], of: str, origin: Origin) -> Figure | Undrawn:
    name, title = "exponents-across", "The exponents of all groups"
    rows = [
        names | {f"alpha_{its}{end}": law[f"alpha{end}"] for its, law in (("rbp", rbp), ("ce", ce)) for end in _ENDS}
        for names, rbp, ce in named
        if rbp is not None and ce is not None
    ]
    if not rows:
        return Undrawn(name, title, "No group has laws of both RBP_k and cross-entropy.")
    (least, of_least), (most, of_most) = (end((row["alpha_rbp"], row["group"]) for row in rows) for end in (min, max))
    thin = {"opacity": 0.3}
    marks = (
        bars("alpha_rbp_lo", "alpha_rbp_hi", along="x", look=thin),
        bars("alpha_ce_lo", "alpha_ce_hi", look=thin),
        points(),
    )
    view = View[Record](
        name,
        text("colour", _HUE),
        text("group", "group"),
        with_ends(f"α of {of}", "alpha_rbp"),
        with_ends("α of cross-entropy", "alpha_ce"),
    )
    return drawn(
        view.table(title, rows),
        Chart(Scale("alpha_rbp", f"α of {of}"), Scale("alpha_ce", "α of cross-entropy"), marks, _HUE, height=340),
        f"Exponents of {len(rows)} groups; that of {of} goes from {least:.3f} ({of_least}) to {most:.3f} ({of_most}).",
        "A point for each group. Bars: 95 % intervals over documents and models.",
        origin,
    )


_STEPS: Final = 12  # points of a curve
_ENDS: Final = ("", "_lo", "_hi")
