"""A prediction at (S, D) over the forms of a surface, each weighted by how well it fits the runs.

Far outside the runs the form matters, and a few runs do not decide it, so the predictive distributions of the forms
are mixed with weights exp(-BIC / 2). Where size and tokens vary together no form is determined, and the answer is that
of a law in one axis, near the line of the runs alone (`on_line`). Shapes: G forms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.interval import LEVEL, Estimate, student_t
from rbpx.laws.surface.fit import SurfaceFit
from rbpx.laws.surface.names import FORM_NAMES
from rbpx.laws.surface.on_line import predict_on_line
from rbpx.laws.surface.runs import Runs
from rbpx.laws.t_mixture import TMixture

_TAILS: Final = (0.5, (1 - LEVEL) / 2, (1 + LEVEL) / 2)


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
        first = within[fitted[0].form] if fitted else Estimate(None, None, None)
        return OverForms(first, {fitted[0].form: 1.0} if fitted else {}, within)
    bic_G = np.array([fit.bic for fit in usable], np.float64)
    weight_G = np.exp(-(bic_G - bic_G.min()) / 2)
    weight_G /= weight_G.sum()
    ends_G2 = np.log(np.array([within[fit.form].ends for fit in usable], np.float64))
    dofs = [fit.surface.n_runs - fit.surface.n_free for fit in usable if fit.surface is not None]
    scale_G = np.diff(ends_G2, axis=1)[:, 0] / 2 / [student_t(dof) for dof in dofs]
    y, lo, hi = np.exp(TMixture(ends_G2.mean(axis=1), scale_G, weight_G, min(dofs)).quantiles(_TAILS)).tolist()
    weights = dict(zip((fit.form for fit in usable), weight_G.tolist(), strict=True))
    if len(usable) == 1:
        return OverForms(within[usable[0].form], weights, within)
    return OverForms(Estimate(y, lo, hi) if math.isfinite(hi) else Estimate(y, None, None), weights, within)
