"""Estimates how many times more x a baseline needs than a variant for the same loss, with y = E + C x^-alpha for both.

The multiplier at a loss y is x_b(y) / x_v(y), with x compute, size or tokens; above 1 the variant pays. A free E for
each favours the side with the lower one.

Shapes: M points of both, P parameters, B bootstrap replicates of the documents.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.families.series import SeriesLaw, SeriesPoints, fit_series, stack
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.fixed_parameters import (
    f_test_p,
    mixture_estimate,
    posterior_weights,
    value_combinations,
)
from rbpx.laws.power.offset import is_identified
from rbpx.laws.power.uncertainty import Uncertainty
from rbpx.laws.priors import Prior
from rbpx.status import Status, first_of

_FEWEST: Final = 3  # different x of each side
_BASE, _VARIANT = 0, 1


class Offset(StrEnum):
    """The irreducible loss of the two laws: `given` a fixed E or prior, `shared` one, `free` one each, `none` E = 0."""

    given = "given"
    shared = "shared"
    free = "free"
    none = "none"


Numbers = dict[str, Any]
"""Numbers by name; those with intervals are `Estimate`s."""
_NOTHING: Final[Numbers] = {
    "multiplier": NO_ESTIMATE,
    **dict.fromkeys("loss_from loss_to alpha_base alpha_variant E_base E_variant residual_sd".split()),
}


def fit_multiplier(
    x: Sequence[ArrayLike],
    y: Sequence[ArrayLike],
    y_replicates: Sequence[ArrayLike | None] | None = None,
    offset: Offset = Offset.shared,
    n_effective: float | None = None,
    E: Prior | None = None,
) -> tuple[Numbers, list[Numbers]]:
    """Fits both laws, of (baseline, variant), together by least squares of ln y and compares the x they need.

    Overall: `multiplier`, the geometric mean over the supported losses; `loss_from` and `loss_to`, the losses that both
    measured; exponents and offsets; `residual_sd` of ln y; with a fixed E `p` of its test against a shared one;
    `status`: without numbers why, barely_determined without intervals, beyond where no loss is supported, else ok.
    Intervals are over models (Student's t of the scatter about both laws) and documents.

    Then at the law's `loss` of each model of the variant, in order of x: `x_variant` and `x_base` (None where the
    baseline never gets there), their ratio `multiplier`, and `status`: beyond where one side did not measure losses on
    either side of it, unreachable at or below the baseline's E.

    Raises:
        ImpossiblePrior: the fixed E is not below every loss.

    Source:
        The ratio of compute at equal loss is the "effective compute" of arXiv 2403.05812, section 2.
    """
    n_E = {Offset.shared: 1, Offset.free: 2}.get(offset, 0)
    if min(len(np.unique(each)) for each in x) < _FEWEST or sum(map(np.size, x)) <= 4 + n_E:
        return _NOTHING | {"status": Status.too_few_sizes}, []
    if not all(np.all(np.greater(each, 0) & np.isfinite(each)) for each in y):
        return _NOTHING | {"status": Status.not_positive}, []
    points = stack(x, y, y_replicates or (), n_effective)
    if E is not None and offset is Offset.given:
        return _with_given(points, E)
    return _compared(fit_series(points, n_E))


def _with_given(points: SeriesPoints, E: Prior) -> tuple[Numbers, list[Numbers]]:
    shared, dof = fit_series(points, 1), len(points.x_M) - 5
    about, of_shared = _uncertainty(shared), float(shared.theta_P[4])
    told = NO_ESTIMATE if about is None else Estimate(of_shared, *about.interval(of_shared, np.eye(5)[4]))
    chosen = value_combinations({"E": E}, np.exp(points.ln_y_M), {"E": told})
    found = [fit_series(points, E=each.values["E"]) for each in chosen]
    weights, laws = (
        posterior_weights([law.squares for law in found], dof + 1, chosen),
        [_compared(law) for law in found],
    )
    p = f_test_p(shared.squares, fit_series(points, E=E.value).squares, dof)
    best, at = laws[int(np.argmax(weights))]
    if len(laws) == 1 or any(overall["alpha_base"] is None for overall, _ in laws):
        return best | {"p": p}, at

    def over(numbers: Sequence[Numbers]) -> Numbers:
        ln_m = [each["multiplier"].ln() for each in numbers]
        return {"multiplier": mixture_estimate(ln_m, weights).exp()}

    mixed_at = [row | over([rows[n] for _, rows in laws]) for n, row in enumerate(at)]
    return best | {"p": p} | over([overall for overall, _ in laws]), mixed_at


def _uncertainty(law: SeriesLaw) -> Uncertainty | None:
    J_MP, points = law.jacobian_MP, law.points
    if not is_identified(J_MP):
        return None
    L_PM, (M, P) = np.linalg.pinv(J_MP), J_MP.shape
    change_BM = np.zeros((2, M)) if points.change_BM is None else points.change_BM
    text_PP, bias_P = np.cov(change_BM @ L_PM.T, rowvar=False), L_PM @ change_BM.mean(axis=0)
    left_BM = (change_BM - change_BM.mean(axis=0)) @ (np.eye(M) - J_MP @ L_PM).T
    explained = float((left_BM**2).sum(axis=1).mean()) / (M - P)
    scatter, is_known = (law.squares / (M - P)) ** 0.5, points.change_BM is not None
    spread_PP, n = L_PM @ L_PM.T, points.n_effective
    return Uncertainty(text_PP, bias_P, spread_PP, scatter, explained**0.5, M - P, is_known, n_effective=n)


def _compared(law: SeriesLaw) -> tuple[Numbers, list[Numbers]]:
    points, about = law.points, _uncertainty(law)
    alpha, E = ((float(law.constants(_BASE)[at]), float(law.constants(_VARIANT)[at])) for at in (1, 2))
    if min(alpha) <= 0:
        return _NOTHING | {"status": Status.no_trend}, []
    y_base, y_variant = (np.exp(points.ln_y_M[points.family_M == side]) for side in (_BASE, _VARIANT))
    low, high = float(max(y_base.min(), y_variant.min())), float(min(y_base.max(), y_variant.max()))

    def ratio(ln_m: float, by_P: Floats) -> Estimate:
        return Estimate(ln_m, *((None, None) if about is None else about.interval(ln_m, by_P))).exp()

    at, within, of_variant = list[Numbers](), [], points.family_M == _VARIANT
    for loss in np.exp(law.ln_law_M[of_variant])[np.argsort(points.x_M[of_variant])].tolist():
        (ln_v, by_v_P), (ln_b, by_b_P) = (_ln_x(law, side, loss) for side in (_VARIANT, _BASE))
        status = Status.ok if low <= loss <= high else Status.beyond
        status, ln_m = status if math.isfinite(ln_b) else Status.unreachable, (ln_b - ln_v, by_b_P - by_v_P)
        within += [ln_m] if status is Status.ok else []
        numbers: Numbers = {"loss": loss, "x_variant": math.exp(ln_v + points.ln_S_ref), "status": status}
        m = NO_ESTIMATE if status is Status.unreachable else ratio(*ln_m)
        at.append(numbers | {"x_base": exp_or_none(ln_b + points.ln_S_ref), "multiplier": m})
    overall = NO_ESTIMATE
    if within:
        ln_m_K, by_KP = zip(*within, strict=True)
        overall = ratio(float(np.mean(ln_m_K)), np.mean(by_KP, axis=0))
    status = Status.ok if within else Status.beyond
    status = Status.barely_determined if about is None else status
    overlap = (low, high) if low < high else (None, None)
    sd = (law.squares / (len(points.x_M) - len(law.theta_P))) ** 0.5
    numbers = dict(zip(_NOTHING, (overall, *overlap, *alpha, *E, sd), strict=True))
    return numbers | {"status": status}, [each | {"status": first_of([each["status"], status])} for each in at]


def _ln_x(law: SeriesLaw, side: int, loss: float) -> tuple[float, Floats]:
    """Ln x at which the law of a side reaches a loss (infinite at or below its E), and its derivatives."""
    (ln_C, alpha, E), by_P = law.constants(side), np.zeros(len(law.theta_P))
    if loss <= E:
        return math.inf, by_P
    ln_x = float(ln_C - np.log(loss - E)) / alpha
    derivatives = (1 / alpha, -ln_x / alpha, 1 / (alpha * (loss - E)))[: 3 if law.n_E else 2]
    for at, by in zip(law.places(side), derivatives, strict=False):
        by_P[at] = by
    return ln_x, by_P
