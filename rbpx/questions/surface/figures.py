"""Draws surfaces: contours with the runs, IsoFLOP curves, and the best size for each budget with its band.

Source: arXiv 2203.15556, figures 2 to 4.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

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
    bars,
    drawn,
    line,
    points,
    scale_of,
    spread,
)
from rbpx.display.view import View, magnitude, text, with_ends
from rbpx.display.vocabulary import headline, short
from rbpx.laws.intervals.estimate import flat
from rbpx.laws.names import Axis
from rbpx.laws.power.law import extrapolation_factor
from rbpx.laws.surface.surface import optima
from rbpx.questions.surface.analysis import C_label, SurfaceLaw
from rbpx.runs.origin import from_fits
from rbpx.runs.points.surfaces import flops_as_stated, flops_used
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.store.store import Record

_MOST_LAWS: Final = 2  # of a group
_STEPS: Final = 40  # along a curve
_FINE: Final = 400  # points of D among which a contour is found
_LEVELS: Final = 6
_BUDGETS: Final = 13  # along the optimum
_BEYOND: Final = 2.0  # factor by which contours reach beyond the runs
_RING: Final = {"filled": False, "color": "gray"}
_DOTS: Final = {"strokeDash": [1, 4], "strokeWidth": 3, "color": "gray"}

RUNS: Final = View[Record]("contours", text("size", "size"), [magnitude(name, name) for name in "SDy"])
ISOFLOP: Final = View[Record](
    "isoflop", text("budget", "budget"), text("shown", "shown"), [magnitude(name, name) for name in "Sy"]
)
OPTIMUM: Final = View[Record](
    "optimum",
    text("shown", "shown"),
    magnitude("C", "C"),
    with_ends("best S", "S", None, short),
    with_ends("best D", "D", None, short),
)


def figures(group: TrainingGroup, laws: Sequence[SurfaceLaw]) -> Iterator[Figure | Undrawn]:
    """Draws contours, IsoFLOP curves and the optimum of cross-entropy and of -ln RBP at the smallest k."""
    fitted = [law for law in laws if law.best.fit.surface is not None]
    origin = from_fits([form.row["fit_id"] for law in laws for form in law.forms], group)
    for law in sorted(fitted, key=lambda law: headline(law.trained.law, law.trained.k))[:_MOST_LAWS]:
        trained, best = law.trained, _best(law)
        for each in (_contours(law, best, origin), _isoflop(law, origin), _optimum(law, best, origin)):
            name = f"{each.name}-{trained.law}{trained.k or ''}"
            yield replace(each, name=name, title=f"{each.title}: {trained.title}")


def _best(law: SurfaceLaw) -> list[Record]:
    surface, runs = None if law.optimal is None else law.optimal.fit.surface, law.trained.runs
    if surface is None:
        return []
    flops_per_token = flops_as_stated(law.trained) or flops_used(law.trained.members)
    C_N = flops_per_token(runs.S_N) * runs.D_N
    budgets = np.geomspace(C_N.min(), 10 * C_N.max(), _BUDGETS).tolist()
    return [flat(vars(each)) for each in optima(surface, budgets, flops_per_token) if each.S.value is not None]


def _scales(law: SurfaceLaw) -> tuple[Scale, Scale]:
    trained = law.trained
    return scale_of(Axis.S, "S", trained.members[0].size_by), Scale("y", trained.title, log=trained.sign == 1)


def _contours(law: SurfaceLaw, best: Sequence[Record], origin: Origin) -> Figure:
    trained, lines = law.trained, _contour_lines(law)
    S, D, y = trained.runs.S_N.tolist(), trained.runs.D_N.tolist(), (trained.sign * trained.runs.y_N).tolist()
    rows = [{"size": run.size, "S": S, "D": D, "y": y} for run, S, D, y in zip(trained.members, S, D, y, strict=True)]
    near = [
        at
        for at in best
        if at["D"] and max(extrapolation_factor(at["S"], S), extrapolation_factor(at["D"], D)) <= _BEYOND
    ]
    marks = (
        line(lines),
        line([{"S": at["S"], "D": at["D"]} for at in near], plain=True, look=_DOTS),
        points(plain=True, name="runs", look={**_RING, "size": 50}),
    )
    levels = tuple(dict.fromkeys(str(row["level"]) for row in lines))
    shown = tuple(mark for mark in marks if mark.rows is None or mark.rows)
    return drawn(
        RUNS.table("Contours", rows),
        Chart(_scales(law)[0], scale_of(Axis.D), shown, "level", "y", levels, height=360),
        f"{len(S)} runs on lines of equal y, which falls towards large models and many tokens.",
        f"Lines of equal y of the form {law.best.fit.form}; circles: the runs; dots: the best for each budget.",
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


def _isoflop(law: SurfaceLaw, origin: Origin) -> Figure | Undrawn:
    title, budgets, sign = "IsoFLOP curves", law.best.row["isoflop"]["budgets"], law.trained.sign
    chosen = spread([each for each in budgets if each["n_sizes"] >= 3], MOST_SERIES)
    if not chosen:
        return Undrawn("isoflop", title, "No budget of compute is reached by three sizes; train three for equal C.")

    def rows(shown: str, of: Record, S: Any, y: Any) -> list[Record]:
        named = {"budget": f"C = {short(of['C'])}", "shown": shown}
        return [named | {"S": at, "y": sign * value} for at, value in zip(S, y, strict=True)]

    ran = [row for each in chosen for row in rows("runs", each, each["sizes"], each["y_of_sizes"])]
    curves = [row for each in chosen for row in rows("curve", each, *_parabola(each))]
    minima = [row for each in chosen if each["S"] for row in rows("minimum", each, [each["S"]], [each["y"]])]
    ring = points(rows=minima, plain=True, look={**_RING, "size": 200, "shape": "circle"})
    least = "; ".join(f"{row['budget']}: least y at S = {short(row['S'])}" for row in minima)
    return drawn(
        ISOFLOP.table(title, [*ran, *minima]),
        Chart(*_scales(law), (line(curves), points(rows=ran), *([ring] if minima else [])), "budget", height=340),
        f"{least or 'no minimum lies between sizes'}.",
        f"Runs of each budget, C as {C_label(law.trained)}, interpolated in ln D between two runs of a size, with a "
        "parabola in ln S; rings: minima.",
        origin,
    )


def _parabola(budget: Record) -> tuple[list[float], list[float]]:
    ln_S, ln_y = np.log(budget["sizes"]), np.log(budget["y_of_sizes"])
    at = np.linspace(ln_S.min(), ln_S.max(), _STEPS)
    curve = np.polyval(np.polyfit(ln_S - ln_S.mean(), ln_y, 2), at - ln_S.mean())
    return np.exp(at).tolist(), np.exp(curve).tolist()


def _optimum(law: SurfaceLaw, best: Sequence[Record], origin: Origin) -> Figure | Undrawn:
    title = "The best size of a budget"
    if not best:
        why = "No surface has an optimum: size and tokens vary together, or a constant is not identified."
        return Undrawn("optimum", title, why)
    minima = [row for row in law.best.row["isoflop"]["budgets"] if row["S"] is not None]
    shown = {"surface": best, "IsoFLOP": minima}
    table = OPTIMUM.table(title, [{"shown": what, **row} for what, rows in shown.items() for row in rows])
    of_line, beside = table.records()[: len(best)], table.records()[len(best) :]
    band, crossed = ([row for row in rows if row["S_lo"] and row["S_hi"]] for rows in (of_line, beside))
    marks = [Mark("band", band, "S_lo", "S_hi"), line(of_line), bars("S_lo", "S_hi", rows=crossed), points(rows=beside)]
    ends = (f"{short(row['S'])} at {short(row['C'])} FLOPs" for row in (best[0], best[-1]))
    return drawn(
        table,
        Chart(
            scale_of(Axis.C),
            Scale("S", "best S", log=True, form="~s"),
            tuple(mark for mark in marks if mark.rows),
            "shown",
        ),
        f"The best size goes from {' to '.join(ends)}.",
        f"Line and 95 % band: by the surface, C as {C_label(law.trained)}; points: minima of the IsoFLOP parabolas.",
        origin,
    )
