"""How much more of something a baseline needs for the loss that a variant reaches: y = E + C x^(-alpha) for both.

At a loss y the baseline needs x_b(y) and the variant x_v(y) (compute, size or tokens); the multiplier is x_b / x_v, so
above 1 the variant pays. A free E for each flatters whichever is given the lower one, so the answer with one E for both
stands beside it. Shapes: M points of both, P parameters, B replicates of the documents.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.families.series import SeriesLaw, fit_series
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate
from rbpx.laws.intervals.lack_of_fit import Stacked, stack
from rbpx.laws.numeric import Floats
from rbpx.laws.pins import Pin
from rbpx.laws.power.given import mapped, mixed, p_of_squares, values_of, weights_of
from rbpx.laws.power.regression import is_identified
from rbpx.laws.power.uncertainty import Uncertainty
from rbpx.status import Status, first_of

_FEWEST: Final = 3  # different x of each side
_BASE, _VARIANT = 0, 1


class Offset(StrEnum):
    """What the two laws share: `given` one E that is given, `shared` one, `free` an E each, `none` E = 0."""

    given = "given"
    shared = "shared"
    free = "free"
    none = "none"


@dataclass(frozen=True)
class Multiplier:
    """The multiplier at one loss.

    Attributes:
        loss: y.
        x_variant: what the variant's law needs for it.
        x_base: what the baseline's law needs; None where it never gets there.
        multiplier: x_base / x_variant with its 95 % interval; None where it is not reached.
        status: ok where both measured losses on either side of it, unsupported where one did not, unreachable where the
            loss is at or below the baseline's E.
    """

    loss: float
    x_variant: float
    x_base: float | None
    multiplier: Estimate
    status: Status


@dataclass(frozen=True)
class MultiplierLaw:
    """The laws of both sides under one offset, and the multipliers that follow.

    Attributes:
        offset: what they share.
        status: why there are no numbers, else ok or, where nothing is supported, unsupported.
        multiplier: geometric mean of those that both measured around; None where there are none.
        loss_from: the smallest loss that both measured; None where their losses do not overlap.
        loss_to: the largest.
        alpha_base: the exponent of the baseline.
        alpha_variant: of the variant.
        E_base: the offset of the baseline.
        E_variant: of the variant.
        residual_sd: of ln y about the laws.
        at: a multiplier at the law's loss of each model of the variant, in order of x.
        p: of the test of an E that is given against one that both share; None elsewhere.
    """

    offset: Offset
    status: Status
    multiplier: Estimate = NO_ESTIMATE
    loss_from: float | None = None
    loss_to: float | None = None
    alpha_base: float | None = None
    alpha_variant: float | None = None
    E_base: float | None = None
    E_variant: float | None = None
    residual_sd: float | None = None
    at: tuple[Multiplier, ...] = ()
    p: float | None = None


def fit_multiplier(
    x: Sequence[ArrayLike],
    y: Sequence[ArrayLike],
    y_replicates: Sequence[ArrayLike | None] | None = None,
    offset: Offset = Offset.shared,
    n_documents: int | None = None,
    E: Pin | None = None,
) -> MultiplierLaw:
    """Fit both laws together by least squares of ln y and compare what they need for the same loss.

    Args:
        x: compute, size or tokens of (baseline, variant), positive, each of shape [N].
        y: their losses, positive.
        y_replicates: the same under B replicates of the documents, drawn alike for both, shape [B, N] each.
        offset: what the two share.
        n_documents: that were resampled; None where they are not counted.
        E: what is given for both, with offset `given`.

    Returns:
        The laws and multipliers. Intervals are over models (Student's t of the scatter about both laws) and documents.
        Its status is too_few_sizes, not_positive, no_trend where a law does not fall, barely_determined where the
        points do not tell the parameters apart (no intervals then), unsupported where the losses do not overlap.

    Raises:
        NotGiven: the E that is given is not below every loss.

    Source:
        The ratio of compute at equal loss is the "effective compute" of arXiv 2403.05812, section 2.
    """
    n_E = {Offset.shared: 1, Offset.free: 2}.get(offset, 0)
    if min(len(np.unique(each)) for each in x) < _FEWEST or sum(map(np.size, x)) <= 4 + n_E:
        return MultiplierLaw(offset, Status.too_few_sizes)
    if not all(np.all(np.greater(each, 0) & np.isfinite(each)) for each in y):
        return MultiplierLaw(offset, Status.not_positive)
    points = stack(x, y, y_replicates, n_documents)
    if E is not None and offset is Offset.given:
        return _with_given(points, E)
    return _compared(fit_series(points, 2, n_E), offset)


def _with_given(points: Stacked, E: Pin) -> MultiplierLaw:
    """The laws with an E that is given, beside those with one that both share, which test it."""
    shared, dof = fit_series(points, 2, 1), len(points.x_M) - 5
    about, of_shared = _uncertainty(shared), float(shared.theta_P[4])
    told = NO_ESTIMATE if about is None else Estimate(of_shared, *about.interval(of_shared, np.eye(5)[4]))
    chosen = values_of({"E": E}, np.exp(points.ln_y_M), {"E": told})
    found = [fit_series(points, 2, E=each.values["E"]) for each in chosen]
    weights = weights_of([law.squares for law in found], dof + 1, chosen)
    laws = [_compared(law, Offset.given) for law in found]
    best = laws[int(np.argmax(weights))]
    best = replace(best, p=p_of_squares(shared.squares, fit_series(points, 2, E=E.value).squares, dof))
    if len(laws) == 1 or any(law.alpha_base is None for law in laws):
        return best

    def over(numbers: Sequence[Estimate]) -> Estimate:
        return mapped(math.exp, mixed([mapped(math.log, each) for each in numbers], weights))

    at = [replace(of, multiplier=over([law.at[n].multiplier for law in laws])) for n, of in enumerate(best.at)]
    return replace(best, at=tuple(at), multiplier=over([law.multiplier for law in laws]))


def _uncertainty(law: SeriesLaw) -> Uncertainty | None:
    """Variances of all parameters together; None where the points do not tell these apart."""
    J_MP, points = law.jacobian_MP, law.points
    if not is_identified(J_MP):
        return None
    L_PM, (M, P) = np.linalg.pinv(J_MP), J_MP.shape
    change_BM = np.zeros((2, M)) if points.change_BM is None else points.change_BM
    text_PP, bias_P = np.cov(change_BM @ L_PM.T, rowvar=False), L_PM @ change_BM.mean(axis=0)
    left_BM = (change_BM - change_BM.mean(axis=0)) @ (np.eye(M) - J_MP @ L_PM).T
    explained = float((left_BM**2).sum(axis=1).mean()) / (M - P)
    scatter, is_known = (law.squares / (M - P)) ** 0.5, points.change_BM is not None
    spread_PP, n = L_PM @ L_PM.T, points.n_documents
    return Uncertainty(text_PP, bias_P, spread_PP, scatter, explained**0.5, M - P, is_known, n_documents=n)


def _compared(law: SeriesLaw, offset: Offset) -> MultiplierLaw:
    """What the laws of both need for the losses of the variant's models."""
    points, about = law.points, _uncertainty(law)
    alpha, E = ((float(law.constants(_BASE)[at]), float(law.constants(_VARIANT)[at])) for at in (1, 2))
    if min(alpha) <= 0:
        return MultiplierLaw(offset, Status.no_trend)
    y_base, y_variant = (np.exp(points.ln_y_M[points.family_M == side]) for side in (_BASE, _VARIANT))
    low, high = float(max(y_base.min(), y_variant.min())), float(min(y_base.max(), y_variant.max()))

    def ratio(value: float, gradient_P: Floats) -> Estimate:
        ends = (None, None) if about is None else about.interval(value, gradient_P)
        with np.errstate(over="ignore"):  # an end beyond all numbers is open
            return Estimate(value, *ends).through(lambda ln: float(y) if np.isfinite(y := np.exp(ln)) else None)

    at, within = [], []
    of_variant = points.family_M == _VARIANT
    for loss in np.exp(law.ln_law_M[of_variant])[np.argsort(points.x_M[of_variant])].tolist():
        (ln_x_variant, by_variant_P), (ln_x_base, by_base_P) = (_ln_x(law, side, loss) for side in (_VARIANT, _BASE))
        x_variant, x_base = (float(np.exp(ln_x + points.ln_S_ref)) for ln_x in (ln_x_variant, ln_x_base))
        if math.isinf(ln_x_base):
            at.append(Multiplier(loss, x_variant, None, NO_ESTIMATE, Status.unreachable))
            continue
        ln_m = ln_x_base - ln_x_variant, by_base_P - by_variant_P
        within += [ln_m] if low <= loss <= high else []
        status = Status.ok if low <= loss <= high else Status.unsupported
        at.append(Multiplier(loss, x_variant, x_base, ratio(*ln_m), status))
    overall = NO_ESTIMATE
    if within:
        overall = ratio(float(np.mean([value for value, _ in within])), np.mean([by_P for _, by_P in within], axis=0))
    status = Status.ok if within else Status.unsupported
    status = Status.barely_determined if about is None else status
    return MultiplierLaw(
        offset,
        status,
        overall,
        *((low, high) if low < high else (None, None)),
        *alpha,
        *E,
        (law.squares / (len(points.x_M) - len(law.theta_P))) ** 0.5,
        tuple(replace(each, status=first_of([each.status, status])) for each in at),
    )


def _ln_x(law: SeriesLaw, side: int, loss: float) -> tuple[float, Floats]:
    """Ln x at which the law of a side reaches a loss, infinite at or below its E; and its derivatives."""
    (ln_C, alpha, E), by_P = law.constants(side), np.zeros(len(law.theta_P))
    if loss <= E:
        return math.inf, by_P
    ln_x = float(ln_C - np.log(loss - E)) / alpha
    derivatives = (1 / alpha, -ln_x / alpha, 1 / (alpha * (loss - E)))[: 3 if law.n_E else 2]
    for at, by in zip(law.places(side), derivatives, strict=False):
        by_P[at] = by
    return ln_x, by_P
