"""Draws surfaces: lines of equal loss with the runs.

Source: arXiv 2203.15556, figure 4.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np

from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Mark,
    Origin,
    Rows,
    drawn,
    line,
    points,
    scale_of,
)
from rbpx.display.table import SIZE, table_of
from rbpx.display.vocabulary import UNITS, law_order, short
from rbpx.laws.names import Axis
from rbpx.questions.surface.analysis import SurfaceLaw
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits

_MOST_LAWS: Final = 2  # of a group
_STEPS: Final = 40  # along a curve
_FINE: Final = 400  # points of D among which a contour is found
_LEVELS: Final = 6
_BEYOND: Final = 2.0  # factor by which contours reach beyond the runs
_DOT: Final = {"color": "gray", "size": 9, "opacity": 0.7}
_SOLID: Final = {"strokeDash": [1, 0]}
_ABOVE: Final = {"dx": 4, "dy": -7, "align": "left", "fontWeight": 600}  # of a line


def figures(group: Group, laws: Sequence[SurfaceLaw]) -> Iterator[Figure]:
    """Draws the contours of cross-entropy and of -ln RBP at the smallest k."""
    fitted = [law for law in laws if law.best.fit.surface is not None]
    origin = from_fits([form.row["fit_id"] for law in laws for form in law.forms], group)
    for law in sorted(fitted, key=lambda law: law_order(law.trained.law, law.trained.k))[:_MOST_LAWS]:
        yield _contours(law, origin)


def _contours(law: SurfaceLaw, origin: Origin) -> Figure:
    trained, lines = law.trained, _contour_lines(law)
    S, D, y = trained.runs.S_N.tolist(), trained.runs.D_N.tolist(), (trained.sign * trained.runs.y_N).tolist()
    rows = [{"size": run.size, "S": S, "D": D, "y": y} for run, S, D, y in zip(trained.members, S, D, y, strict=True)]
    own = [[*of] for _, of in groupby(lines, lambda row: row["level"])]
    marks = [line(lines, look=_SOLID), Mark("text", [of[len(of) // 2] for of in own], plain=True, look=_ABOVE)]
    shown, levels = [points(plain=True, look=_DOT)], tuple(str(of[0]["level"]) for of in own)
    name, x = f"contours-{trained.law}{trained.k or ''}", scale_of(Axis.S, "S", trained.members[0].size_by)
    columns = (SIZE, ("S", "S", short), ("D", "D", short), (trained.title, "y", short))
    legend = f"{trained.title}{UNITS.get(trained.law, '')}"
    return drawn(
        table_of(name, *columns).of(f"Lines of equal {trained.title}", rows),
        Chart(x, scale_of(Axis.D), (*shown, *(marks if own else [])), "level", legend, levels, 360, True),
        f"{len(S)} runs on lines of equal {trained.title}, which falls towards large models and many tokens.",
        f"Lines of equal {trained.title} of the form {law.best.fit.form}; dots: the runs.",
        origin,
    )


def _contour_lines(law: SurfaceLaw) -> Rows:
    """Lines of equal y over twice the range of the runs; `level` is y."""
    surface, runs = law.best.fit.surface, law.trained.runs
    if surface is None:
        return []
    S_G = np.geomspace(runs.S_N.min() / _BEYOND, runs.S_N.max() * _BEYOND, _STEPS)
    D_F = np.geomspace(runs.D_N.min() / _BEYOND, runs.D_N.max() * _BEYOND, _FINE)
    fitted = replace(surface, theta_BP=surface.theta_BP[:0])  # contours have no intervals
    ln_y_GF = fitted.ln_y(np.repeat(S_G, _FINE), np.tile(D_F, _STEPS))[0].reshape(_STEPS, _FINE)
    least, most = (float(each) for each in np.quantile(ln_y_GF, [0.04, 0.96]))
    levels = np.unique([float(f"{each:.3g}") for each in np.exp(np.linspace(least, most, _LEVELS))])
    return [
        {
            "level": short(law.trained.sign * float(level)),
            "S": S,
            "D": float(np.exp(np.interp(-np.log(level), -ln_y_F, np.log(D_F)))),  # ln y falls with D
        }
        for level in levels
        for S, ln_y_F in zip(S_G.tolist(), ln_y_GF, strict=True)
        if ln_y_F.min() < np.log(level) < ln_y_F.max()
    ]
