"""Draws surfaces: contours with the runs on them, IsoFLOP curves, and the best size for a budget with its band.

Source: arXiv 2203.15556, figures 2 to 4.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Origin,
    Rows,
    Undrawn,
    drawn,
    line,
    points,
    scale_of,
    spread,
)
from rbpx.display.view import View, magnitude, text
from rbpx.display.vocabulary import headline, short
from rbpx.laws.intervals.estimate import flat
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.power.predictor import outside
from rbpx.laws.surface.surface import optima
from rbpx.questions.budgets import DOTS, RING, isoflop_figure, of_budget, of_quantity, optimum_figure, scale_of_S
from rbpx.questions.surface.analysis import SurfaceLaw, budgets_of, compute
from rbpx.questions.surface.words import why_collinear
from rbpx.runs.origin import from_fits
from rbpx.runs.points.surfaces import flops_as_stated, flops_used, flops_with_head
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.store.store import Record

_MOST_LAWS: Final = 2  # of a group
_STEPS: Final = 40  # along a curve
_FINE: Final = 400  # where a contour is looked for
_LEVELS: Final = 6
_BUDGETS: Final = 13  # along the optimum
_BEYOND: Final = 2.0  # factor by which contours reach beyond the runs
_SMALL: Final = 1.1  # of S: models with more parameters than that in all have a head that counts
_OPTIMUM: Final = "The best size of a budget"
PerToken = Callable[[Floats], Floats]

RUNS: Final = View[Record]("contours", text("size", "size"), [magnitude(name, name) for name in "SDy"])


def figures(group: TrainingGroup, laws: Sequence[SurfaceLaw]) -> Iterator[Figure | Undrawn]:
    """Draw contours, IsoFLOP curves and the optimum of cross-entropy and of -ln RBP at the smallest k."""
    fitted = [law for law in laws if law.best.fit.surface is not None]
    origin = from_fits([form.row["fit_id"] for law in laws for form in law.forms], group)
    for law in sorted(fitted, key=lambda law: headline(law.trained.law, law.trained.k))[:_MOST_LAWS]:
        C, flops_per_token, budgets = _counted(law)
        best = _best(law, flops_per_token)
        drawings = _contours(law, best, origin), _isoflop(law, C, budgets, origin), _optimum(best, C, budgets, origin)
        yield from (of_quantity(each, law.trained) for each in drawings)


def _counted(law: SurfaceLaw) -> tuple[str, PerToken, Sequence[Record]]:
    """What C is in pictures, in words, of a token and for IsoFLOP: as stated, else with the head where that counts."""
    trained, row, members = law.trained, law.best.row, law.trained.members
    stated, with_head = flops_as_stated(trained), flops_with_head(members)
    if stated is not None:
        return f"C as {compute(trained)}", stated, budgets_of(row["isoflop"])
    totals = [(run.total_params, run.non_embedding_params) for run in members]
    if with_head is not None and any(N is not None and N > _SMALL * S for N, S in totals):
        return "C = 6 N D, N all parameters", with_head, budgets_of(row["isoflop_with_head"])
    return "C = 6 S D", flops_used(members), budgets_of(row["isoflop"])


def _best(law: SurfaceLaw, flops_per_token: PerToken) -> list[Record]:
    """The best of budgets evenly spaced along C; nothing where no form has an optimum."""
    surface, runs = None if law.optimal is None else law.optimal.fit.surface, law.trained.runs
    if surface is None:
        return []
    C_N = flops_per_token(runs.S_N) * runs.D_N
    budgets = np.geomspace(C_N.min(), 10 * C_N.max(), _BUDGETS).tolist()
    return [flat(vars(each)) for each in optima(surface, budgets, flops_per_token) if each.S.value is not None]


def _contours(law: SurfaceLaw, best: Sequence[Record], origin: Origin) -> Figure:
    trained, lines = law.trained, _contour_lines(law)
    S, D, y = trained.runs.S_N.tolist(), trained.runs.D_N.tolist(), (trained.sign * trained.runs.y_N).tolist()
    rows = [{"size": run.size, "S": S, "D": D, "y": y} for run, S, D, y in zip(trained.members, S, D, y, strict=True)]
    near = [at for at in best if at["D"] and max(outside(at["S"], S), outside(at["D"], D)) <= _BEYOND]
    inside: Rows = [{"S": at["S"], "D": at["D"]} for at in near]
    marks = [line(lines)] if lines else []
    marks += [line(inside, plain=True, look=DOTS)] if inside else []
    marks += [points(plain=True, name="runs", look={**RING, "size": 50})]
    levels = tuple(dict.fromkeys(str(row["level"]) for row in lines))
    caption = f"Lines of equal y of the form {law.best.fit.form}; circles: the runs; dots: the best for each budget."
    why = why_collinear(trained, law.best.fit.design)
    caption += "" if why is None else f" {why[0].upper()}{why[1:]}: lines far from the runs say nothing."
    return drawn(
        RUNS.table("Contours", rows),
        Chart(scale_of_S(trained), scale_of(Axis.D), tuple(marks), "level", "y", levels, height=360),
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


def _isoflop(law: SurfaceLaw, C: str, budgets: Sequence[Record], origin: Origin) -> Figure | Undrawn:
    title, chosen = "IsoFLOP curves", spread([each for each in budgets if each["n_sizes"] >= 3], MOST_SERIES)
    if not chosen:
        why = f"No budget of compute is reached by three sizes; train three sizes for equal {C}."
        return Undrawn("isoflop", title, why)
    ran = [row for each in chosen for row in of_budget(each["C"], each["sizes"], each["y_of_sizes"])]
    curves = [row for each in chosen for row in of_budget(each["C"], *_parabola(each))]
    minima = [row for each in chosen if each["S"] for row in of_budget(each["C"], [each["S"]], [each["y"]])]
    caption = (
        f"Runs of each budget {C}, interpolated in ln D between two runs of a size, with a parabola in ln S; rings: "
        "minima."
    )
    return isoflop_figure(title, law.trained, ran, curves, minima, caption, origin)


def _parabola(budget: Record) -> tuple[list[float], list[float]]:
    """S and y along the parabola of ln y in ln S."""
    ln_S, ln_y = np.log(budget["sizes"]), np.log(budget["y_of_sizes"])
    at = np.linspace(ln_S.min(), ln_S.max(), _STEPS)
    curve = np.polyval(np.polyfit(ln_S - ln_S.mean(), ln_y, 2), at - ln_S.mean())
    return np.exp(at).tolist(), np.exp(curve).tolist()


def _optimum(best: Sequence[Record], C: str, budgets: Sequence[Record], origin: Origin) -> Figure | Undrawn:
    if not best:
        why = "No surface has an optimum: size and tokens vary together, or a constant is not identified."
        return Undrawn("optimum", _OPTIMUM, why)
    minima = [row for row in budgets if row["S"] is not None]
    caption = f"Line and 95 % band: by the surface, for {C}; points: minima of the IsoFLOP parabolas."
    return optimum_figure(_OPTIMUM, {"surface": best, "IsoFLOP": minima}, caption, origin)
