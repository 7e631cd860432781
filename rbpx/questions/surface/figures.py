"""Draws surfaces: contours with the runs on them, IsoFLOP curves, and the best size for a budget with its band.

Source: arXiv 2203.15556, figures 2 to 4.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Mark,
    Origin,
    Rows,
    Scale,
    Undrawn,
    drawn,
    line,
    points,
    scale_of,
    spread,
)
from rbpx.display.view import View, magnitude, text, with_ends
from rbpx.display.vocabulary import headline, short
from rbpx.laws.names import Axis
from rbpx.laws.predict.prediction import outside
from rbpx.laws.surface.isoflop import Budget
from rbpx.laws.surface.surface import Optimum, optima
from rbpx.questions.question import one_by_one
from rbpx.questions.surface.analysis import SurfaceLaw, Surfaces
from rbpx.questions.surface.words import together
from rbpx.runs.group import Run
from rbpx.runs.origin import from_fits

_MOST_LAWS: Final = 2  # of a group
_STEPS: Final = 40  # along a curve
_FINE: Final = 400  # where a contour is looked for
_LEVELS: Final = 6
_BUDGETS: Final = 13  # along the optimum
_BEYOND: Final = 2.0  # factor by which contours reach beyond the runs
_RING: Final = {"filled": False, "color": "gray"}
_DOTS: Final = {"strokeDash": [1, 4], "strokeWidth": 3, "color": "gray"}

RUNS: Final = View[tuple[Run, float, float, float]](
    "contours",
    text("size", "size", lambda row: row[0].size),
    magnitude("S", "S", lambda row: row[1]),
    magnitude("D", "D", lambda row: row[2]),
    magnitude("y", "y", lambda row: row[3]),
)
ISOFLOP: Final = View[tuple[str, float, float]](
    "isoflop",
    text("budget", "budget", lambda row: row[0]),
    magnitude("S", "S", lambda row: row[1]),
    magnitude("y", "y", lambda row: row[2]),
)
BEST: Final = View[tuple[str, Optimum | Budget]](
    "optimum",
    text("by", "way", lambda row: row[0]),
    magnitude("C", "C", lambda row: row[1].C),
    with_ends("best S", "S", lambda row: row[1].S, short),
    magnitude("best D", "D", lambda row: row[1].D.value),
)


@one_by_one
def figures(of: Surfaces, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Draw contours, IsoFLOP curves and the optimum of cross-entropy and of -ln RBP at the smallest k."""
    fitted = [law for law in of.laws if law.best.fit.surface is not None]
    for law in sorted(fitted, key=lambda law: headline(law.trained.law, law.trained.k))[:_MOST_LAWS]:
        origin, name = from_fits(fit_ids, of.group), f"{law.trained.law}{law.trained.k or ''}"
        for each in (_contours(law, origin), _isoflop(law, origin), _optimum(law, origin)):
            yield replace(each, name=f"{each.name}-{name}", title=f"{each.title}: {law.trained.title}")


def _scale_of_S(law: SurfaceLaw) -> Scale:
    return scale_of(Axis.S, "S", law.trained.members[0].size_by)


def _contours(law: SurfaceLaw, origin: Origin) -> Figure:
    runs, lines = law.trained.runs, _contour_lines(law)
    S, D, y = runs.S_N.tolist(), runs.D_N.tolist(), (law.trained.sign * runs.y_N).tolist()
    best = [(each.S.value or math.inf, each.D.value or math.inf) for each in _best(law)]
    inside = [{"S": at, "D": to} for at, to in best if max(outside(at, S), outside(to, D)) <= _BEYOND]
    marks = [line(lines)] if lines else []
    marks += [line(inside, plain=True, look=_DOTS)] if inside else []
    marks += [points(plain=True, name="runs", look={**_RING, "size": 50})]
    levels = tuple(dict.fromkeys(str(row["level"]) for row in lines))
    caption = f"Lines of equal y of the form {law.best.fit.form}; circles: the runs; dots: the best for each budget."
    why = together(law.trained, law.best.fit.design)
    caption += "" if why is None else f" {why[0].upper()}{why[1:]}: lines far from the runs say nothing."
    return drawn(
        RUNS.table("Contours", zip(law.trained.members, S, D, y, strict=True)),
        Chart(_scale_of_S(law), scale_of(Axis.D), tuple(marks), "level", "y", levels, height=360),
        f"{len(S)} runs on lines of equal y, which falls towards large models and many tokens.",
        caption,
        origin,
    )


def _contour_lines(law: SurfaceLaw) -> Rows:
    """Lines of equal y over the rectangle of the runs and a factor of 2 beyond; `level` is y, in order along S."""
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


def _isoflop(law: SurfaceLaw, origin: Origin) -> Figure | Undrawn:
    budgets = [each for each in law.pictured_budgets if len(each.sizes) >= 3]
    if not budgets:
        why = f"No budget of compute is reached by three sizes; train three sizes for equal {_flops(law)}."
        return Undrawn("isoflop", "IsoFLOP curves", why)
    chosen, sign = {f"C = {short(each.C)}": each for each in spread(budgets, MOST_SERIES)}, law.trained.sign
    rows = [
        (name, S, sign * y) for name, each in chosen.items() for S, y in zip(each.sizes, each.y_of_sizes, strict=True)
    ]
    best = [(name, each.S.value, each.y) for name, each in chosen.items()]
    minima = [{"budget": name, "S": S, "y": sign * y} for name, S, y in best if S is not None and y is not None]
    curves: Rows = [
        {"budget": name, "S": S, "y": sign * y} for name, each in chosen.items() for S, y in _parabola(each)
    ]
    ring = [points(rows=minima, plain=True, look={**_RING, "size": 200, "shape": "circle"})] if minima else []
    least = "; ".join(f"{best['budget']}: least y at S = {best['S']:.3g}" for best in minima)
    return drawn(
        ISOFLOP.table("IsoFLOP curves", rows),
        Chart(
            _scale_of_S(law),
            Scale("y", law.trained.title, log=sign == 1),
            (line(curves), points(), *ring),
            "budget",
            height=320,
        ),
        f"{least or 'no minimum lies between sizes'}.",
        f"Runs of each budget {_flops(law)}, interpolated in ln D between two runs of a size, with a parabola in ln S; "
        "rings: minima.",
        origin,
    )


def _parabola(budget: Budget) -> list[tuple[float, float]]:
    """S and y along the parabola of ln y in ln S."""
    ln_S, ln_y = np.log(budget.sizes), np.log(budget.y_of_sizes)
    at = np.linspace(ln_S.min(), ln_S.max(), _STEPS)
    curve = np.polyval(np.polyfit(ln_S - ln_S.mean(), ln_y, 2), at - ln_S.mean())
    return list(zip(np.exp(at).tolist(), np.exp(curve).tolist(), strict=True))


def _optimum(law: SurfaceLaw, origin: Origin) -> Figure | Undrawn:
    title, best = "The best size of a budget", _best(law)
    if not best:
        why = "No surface has an optimum: size and tokens vary together, or a constant is not identified."
        return Undrawn("optimum", title, why)
    minima = [each for each in law.pictured_budgets if each.S.value is not None]
    table = BEST.table(title, [*(("surface", each) for each in best), *(("IsoFLOP", each) for each in minima)])
    by_surface, by_isoflop = table.records()[: len(best)], table.records()[len(best) :]
    band = [row for row in by_surface if row["S_lo"] is not None and row["S_hi"] is not None]
    marks = [Mark("band", band, "S_lo", "S_hi")] if band else []
    marks += [line(by_surface), *([points(rows=by_isoflop)] if minima else [])]
    return drawn(
        table,
        Chart(scale_of(Axis.C), Scale("S", "best S", log=True, form="~s"), tuple(marks), "way", "by"),
        f"the best size goes from {short(best[0].S.value)} to {short(best[-1].S.value)}.",
        f"Line and 95 % band: by the surface, for {_flops(law)}; points: minima of the IsoFLOP parabolas.",
        origin,
    )


def _best(law: SurfaceLaw) -> list[Optimum]:
    """The best of budgets evenly spaced along C; nothing where no form has an optimum."""
    surface, runs = None if law.optimal is None else law.optimal.fit.surface, law.trained.runs
    if surface is None:
        return []
    C_N = law.flops_per_token(runs.S_N) * runs.D_N
    budgets = np.geomspace(C_N.min(), 10 * C_N.max(), _BUDGETS).tolist()
    return [each for each in optima(surface, budgets, law.flops_per_token) if each.S.value is not None]


def _flops(law: SurfaceLaw) -> str:
    """What C is, in words for a figure."""
    if law.trained.n_stated:
        return f"C as {law.compute}"
    return "C = 6 N D, N all parameters" if law.head_counts else "C = 6 S D"
