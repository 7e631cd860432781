"""A prediction at (S, D) over the forms of a surface, or, where size and tokens vary together, by a law in one axis.

Far outside the runs the form matters, and a few runs do not decide it, so the predictive distributions of the forms
are mixed with weights exp(-BIC / 2). Where size and tokens vary together no form is determined: along D = c S^m the
surface is a law in S, whatever its constants, so the points say what it is there though they cannot say which part is
due to size. Near that line the answer is the law's, and elsewhere there is none. With one or two sizes there is a law
in D at each of them, and the other way round. Shapes: G forms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import Estimate, student_t
from rbpx.laws.names import FORM_NAMES
from rbpx.laws.numeric import Floats
from rbpx.laws.predict.prediction import TAILS, average_forms
from rbpx.laws.surface.design import Design
from rbpx.laws.surface.fit import SurfaceFit
from rbpx.laws.surface.runs import Runs

_NEAR: Final = math.log(1.25)  # a point is near a line that is exact up to this factor
_SAME: Final = 0.01


@dataclass(frozen=True)
class OnLine:
    """A prediction by a law in one axis.

    Attributes:
        y: what a new run would show, with a 95 % interval over forms; None where the point is
            not near enough, or fewer than 3 points are on the line.
        axis: in which the law is, "S" or "D".
        n_points: of the law; points that coincide along the axis count once.
        away: the factor by which the point is off the line.
    """

    y: Estimate
    axis: str
    n_points: int
    away: float


def predict_on_line(runs: Runs, design: Design, S: float, D: float) -> OnLine:
    """Predict y near the line of a collinear design.

    Args:
        runs: the points.
        design: of them, by `rbpx.laws.surface.design.judge`.
        S: size.
        D: tokens.
    """
    if design.is_line:
        along_N, at = (runs.S_N, S) if design.along == "S" else (runs.D_N, D)
        # Points that scatter about the line say where near is, if they scatter more than a factor of 1.25.
        widest = max(design.away(*each) for each in zip(runs.S_N.tolist(), runs.D_N.tolist(), strict=True))
        return _law(along_N, runs.y_N, at, design.along, design.away(S, D), max(widest, _NEAR))
    axis = "D" if design.n_S < design.n_D else "S"
    along_N, across_N, at, given = (runs.D_N, runs.S_N, D, S) if axis == "D" else (runs.S_N, runs.D_N, S, D)
    away_N = np.abs(np.log(across_N / given))
    nearest_N = away_N <= away_N.min() + _SAME
    return _law(along_N[nearest_N], runs.y_N[nearest_N], at, axis, float(away_N.min()), _SAME)


def _law(along_N: Floats, y_N: Floats, at: float, axis: str, away: float, near: float) -> OnLine:
    values, place_N = np.unique(along_N, return_inverse=True)
    y = np.exp(np.bincount(place_N, np.log(y_N)) / np.bincount(place_N))
    averaged = average_forms(values, y, [at]) if away <= near else None
    answer = Estimate() if averaged is None else Estimate(averaged[0].y, averaged[0].lo, averaged[0].hi)
    return OnLine(answer, axis, len(values), math.exp(away))


@dataclass(frozen=True)
class OverForms:
    """What a new run would show.

    Attributes:
        y: the median with its 95 % interval; None where no form has an interval, or off the line of collinear runs.
        weights: of each form, which sum to 1; empty where the answer is that of a law in one axis.
        within: the prediction of each form alone.
        axis: of that law, "S" or "D"; None elsewhere.
        away: the factor by which the point is off the line of collinear runs; None elsewhere.
    """

    y: Estimate
    weights: dict[str, float]
    within: dict[str, Estimate]
    axis: str | None = None
    away: float | None = None


def forms_to_mix(runs: Runs) -> tuple[str, ...]:
    """The forms that differ on these runs: without repeated tokens data_constrained is chinchilla."""
    return FORM_NAMES if runs.repeats else tuple(name for name in FORM_NAMES if name != "data_constrained")


def predict_over_forms(fits: Sequence[SurfaceFit], S: float, D: float, U: float | None = None) -> OverForms:
    """Predict a new run at a point.

    Args:
        fits: of the forms to the same runs, at least one; without resampled documents, for a run on the same ones.
        S: size.
        D: tokens.
        U: unique tokens among them; None where all are.
    """
    fitted = [fit for fit in fits if fit.surface is not None]
    within = {fit.form: fit.surface.predict(S, D, U, new_run=True) for fit in fitted if fit.surface is not None}
    design = fits[0].design
    if design is not None and design.is_collinear:
        on_line = predict_on_line(fits[0].runs, design, S, D)
        return OverForms(on_line.y, {}, within, on_line.axis, on_line.away)
    usable = [fit for fit in fitted if within[fit.form].ends is not None and fit.bic is not None]
    if not usable:
        first = within[fitted[0].form] if fitted else Estimate()
        return OverForms(first, {fitted[0].form: 1.0} if fitted else {}, within)
    bic_G = np.array([fit.bic for fit in usable], np.float64)
    weight_G = np.exp(-(bic_G - bic_G.min()) / 2)
    weight_G /= weight_G.sum()
    ends_G2 = np.log(np.array([within[fit.form].ends for fit in usable], np.float64))
    dofs = [fit.surface.n_runs - fit.surface.n_free for fit in usable if fit.surface is not None]
    scale_G = np.diff(ends_G2, axis=1)[:, 0] / 2 / [student_t(dof) for dof in dofs]
    y, lo, hi = np.exp(TMixture(ends_G2.mean(axis=1), scale_G, weight_G, min(dofs)).quantiles(TAILS)).tolist()
    weights = dict(zip((fit.form for fit in usable), weight_G.tolist(), strict=True))
    if len(usable) == 1:
        return OverForms(within[usable[0].form], weights, within)
    return OverForms(Estimate(y, lo, hi) if math.isfinite(hi) else Estimate(y), weights, within)
