"""How much more of something a baseline needs for the loss that a variant reaches: y = E + C x^(-alpha) for both.

At a loss y the baseline needs x_b(y) and the variant x_v(y) (compute, size or tokens); the multiplier is x_b / x_v, so
above 1 the variant pays. A free E for each flatters whichever is given the lower one, so the answer with one E for both
stands beside it. Shapes: M points of both, P parameters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.intervals.lack_of_fit import Stacked, stack
from rbpx.laws.numeric import Floats
from rbpx.laws.pins import Pin
from rbpx.laws.power.given import mapped, mixed, p_of_squares, values_of, weights_of
from rbpx.laws.power.uncertainty import Uncertainty
from rbpx.laws.solver import End, Local, Sets, minimise, squares
from rbpx.status import Status, first_of

_FEWEST: Final = 3  # different x of each side
_SHARES: Final = (0.0, 0.3, 0.6, 0.9)  # of the smallest loss, where the search for E starts
_WORST_CONDITION: Final = 1e8
_END: Final = End(step=1e-10, most_steps=1000)
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
        value: x_base / x_variant with its 95 % interval; None where it is not reached.
        status: ok where both measured losses on either side of it, unsupported where one did not, unreachable where the
            loss is at or below the baseline's E.
    """

    loss: float
    x_variant: float
    x_base: float | None
    value: Estimate
    status: Status


@dataclass(frozen=True)
class MultiplierLaw:
    """The laws of both sides under one offset, and the multipliers that follow.

    Attributes:
        offset: what they share.
        alpha: exponents of baseline and variant.
        E: their offsets.
        residual_sd: of ln y about the laws.
        at: a multiplier at the law's loss of each model of the variant, in order of x.
        overall: geometric mean of those that both measured around; None where there are none.
        supported: the smallest and the largest loss that both measured; None where they do not overlap.
        status: why there are no numbers, else ok or, where nothing is supported, unsupported.
        p: of the test of an E that is given against one that both share; None elsewhere.
    """

    offset: Offset
    alpha: tuple[float, float] | None
    E: tuple[float, float] | None
    residual_sd: float | None
    at: tuple[Multiplier, ...]
    overall: Estimate
    supported: tuple[float, float] | None
    status: Status
    p: float | None = None


@dataclass(frozen=True, eq=False)
class _Laws:
    """Fitted laws of both sides; parameters ln_C, alpha of each side, then one E, two or none, where it is held."""

    points: Stacked
    theta_P: Floats
    offset: Offset
    held_E: float = 0.0

    def of(self, side: int) -> tuple[float, float, float]:
        """ln_C at the reference, alpha and E of one side."""
        ln_C, alpha = self.theta_P[2 * side : 2 * side + 2]
        return float(ln_C), float(alpha), self.E(side)

    def E(self, side: int) -> float:
        return float(self.theta_P[self.at_E(side)]) if self.has_E else self.held_E

    @property
    def has_E(self) -> bool:
        """Whether an E is among the parameters."""
        return self.offset in (Offset.shared, Offset.free)

    @property
    def squares(self) -> float:
        """The sum of squares of ln y about both laws."""
        return float(np.sum((self.ln_law_M - self.points.ln_y_M) ** 2))

    def at_E(self, side: Any) -> Any:
        """The place in theta of the E of a side, or of each of many."""
        return 4 + side * (self.offset is Offset.free)

    def x_at(self, side: int, loss: float) -> float:
        """Ln x at which a side's law reaches a loss; infinite at or below its E."""
        ln_C, alpha, E = self.of(side)
        return (ln_C - np.log(loss - E)) / alpha if loss > E else np.inf

    def gradient_P(self, side: int, loss: float) -> Floats:
        """Derivatives of ln x at a loss by the parameters."""
        _, alpha, E = self.of(side)
        out_P = np.zeros(len(self.theta_P))
        out_P[2 * side] = 1 / alpha
        out_P[2 * side + 1] = -self.x_at(side, loss) / alpha
        if self.has_E:
            out_P[self.at_E(side)] = 1 / (alpha * (loss - E))
        return out_P

    @property
    def ln_law_M(self) -> Floats:
        of_M, theta_P = self.points.family_M, self.theta_P
        ln_power_M = theta_P[2 * of_M] - theta_P[2 * of_M + 1] * self.points.x_M
        E_M = theta_P[self.at_E(of_M)] if self.has_E else np.full(len(of_M), self.held_E)
        with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
            return np.asarray(np.logaddexp(ln_power_M, np.log(E_M)))

    @property
    def jacobian_MP(self) -> Floats:
        """Derivatives of ln y, those by E also where it is 0: its bound leaves it uncertain upwards."""
        of_M, x_M, ln_law_M = self.points.family_M, self.points.x_M, self.ln_law_M
        share_M = np.exp(self.theta_P[2 * of_M] - self.theta_P[2 * of_M + 1] * x_M - ln_law_M)
        J_MP, each_M = np.zeros((len(x_M), len(self.theta_P))), np.arange(len(x_M))
        J_MP[each_M, 2 * of_M], J_MP[each_M, 2 * of_M + 1] = share_M, -x_M * share_M
        if self.has_E:
            J_MP[each_M, self.at_E(of_M)] = np.exp(-ln_law_M)
        return J_MP


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
    sizes, values = ([np.asarray(each, np.float64) for each in of] for of in (x, y))
    n_free = {Offset.shared: 5, Offset.free: 6}.get(offset, 4)
    if min(len(np.unique(each)) for each in sizes) < _FEWEST or sum(map(len, sizes)) <= n_free:
        return _without(offset, Status.too_few_sizes)
    if any(np.any(~(each > 0) | ~np.isfinite(each)) for each in values):
        return _without(offset, Status.not_positive)
    points = stack(sizes, values, y_replicates, n_documents)
    if offset is Offset.given and E is not None:
        return _with_given(points, E)
    return _found(_fit(points, offset))


def _with_given(points: Stacked, E: Pin) -> MultiplierLaw:
    """The laws with an E that is given, beside those with one that both share, which test it."""
    shared = _fit(points, Offset.shared)
    about = _uncertainty(shared)
    told = Estimate()
    if about is not None:
        told = Estimate(shared.E(_BASE), *about.interval(shared.E(_BASE), np.eye(len(shared.theta_P))[4]))
    chosen = values_of({"E": E}, np.exp(points.ln_y_M), {"E": told})
    found = [_fit(points, Offset.given, each.values["E"]) for each in chosen]
    weights = weights_of([laws.squares for laws in found], len(points.x_M) - 4, chosen)
    at_value = _fit(points, Offset.given, E.value)
    p = p_of_squares(shared.squares, at_value.squares, len(points.x_M) - 5)
    laws = [_found(each) for each in found]
    best = laws[int(np.argmax(weights))]
    if len(laws) == 1 or any(law.alpha is None for law in laws):
        return replace(best, p=p)

    def over(numbers: Sequence[Estimate]) -> Estimate:
        return mapped(math.exp, mixed([mapped(math.log, each) for each in numbers], weights))

    models = [replace(best.at[n], value=over([law.at[n].value for law in laws])) for n in range(len(best.at))]
    return replace(best, p=p, at=tuple(models), overall=over([law.overall for law in laws]))


def _found(laws: _Laws) -> MultiplierLaw:
    offset = laws.offset
    if min(laws.of(side)[1] for side in (_BASE, _VARIANT)) <= 0:
        return _without(offset, Status.no_trend)
    return _compared(laws, _uncertainty(laws))


def _fit(points: Stacked, offset: Offset, E: float = 0.0) -> _Laws:
    """The best of several starts, searched at once with E between 0 and the smallest loss, or held."""
    smallest = [float(np.exp(points.ln_y_M[points.family_M == side].min())) for side in (_BASE, _VARIANT)]
    limits = {Offset.shared: [min(smallest)], Offset.free: smallest}.get(offset, [])
    starts = [
        [*_lines(points, share, limits, E), *(max(share, 1e-3) * limit for limit in limits)]
        for share in (_SHARES if limits else (0.0,))
    ]

    def objective(theta_PB: Floats, _: Sets) -> Local:
        each = [_Laws(points, theta_P, offset, E) for theta_P in theta_PB.T]
        residual_MB = np.stack([laws.ln_law_M - points.ln_y_M for laws in each], axis=-1)
        return squares(residual_MB, np.stack([laws.jacobian_MP.T for laws in each], axis=-1))

    lower_P, upper_P = [*[-np.inf] * 4, *[0.0] * len(limits)], [*[np.inf] * 4, *(1 - 1e-9) * np.array(limits)]
    found = minimise(objective, np.array(starts).T, lower_P, upper_P, _END)
    return _Laws(points, found.theta_PB[:, found.best], offset, E)


def _lines(points: Stacked, share: float, limits: list[float], held_E: float) -> list[float]:
    """ln_C and alpha of both lines in ln(y - E) for a start of E."""
    start = []
    for side in (_BASE, _VARIANT):
        own = points.family_M == side
        E = share * limits[min(side, len(limits) - 1)] if limits else held_E
        slope, ln_C = np.polyfit(points.x_M[own], np.log(np.exp(points.ln_y_M[own]) - E), 1)
        start += [float(ln_C), float(-slope)]
    return start


def _uncertainty(laws: _Laws) -> Uncertainty | None:
    """Variances of all parameters together; None where the points do not tell these apart."""
    J_MP, points = laws.jacobian_MP, laws.points
    residual_M = points.ln_y_M - laws.ln_law_M
    length_P = np.linalg.norm(J_MP, axis=0)
    if not np.all(length_P > 0) or np.linalg.cond(J_MP / length_P) > _WORST_CONDITION:
        return None
    L_PM = np.linalg.pinv(J_MP)
    dof, P = J_MP.shape[0] - J_MP.shape[1], J_MP.shape[1]
    text_PP, bias_P, explained = np.zeros((P, P)), np.zeros(P), 0.0
    if points.change_BM is not None:
        change_BP = points.change_BM @ L_PM.T
        text_PP, bias_P = np.cov(change_BP, rowvar=False), change_BP.mean(axis=0)
        left_BM = points.change_BM - points.change_BM.mean(axis=0)
        left_BM = left_BM - left_BM @ L_PM.T @ J_MP.T
        explained = float((left_BM**2).sum(axis=1).mean()) / dof
    scatter = float(residual_M @ residual_M / dof) ** 0.5
    return Uncertainty(
        text_PP,
        bias_P,
        L_PM @ L_PM.T,
        scatter,
        explained**0.5,
        dof,
        points.change_BM is not None,
        n_documents=points.n_documents,
    )


def _compared(laws: _Laws, uncertainty: Uncertainty | None) -> MultiplierLaw:
    points = laws.points
    ranges = [points.ln_y_M[points.family_M == side] for side in (_BASE, _VARIANT)]
    low, high = (float(np.exp(pick(edge(y) for y in ranges))) for pick, edge in ((max, np.min), (min, np.max)))
    supported = (low, high) if low < high else None
    losses = np.exp(laws.ln_law_M[points.family_M == _VARIANT])
    order = np.argsort(points.x_M[points.family_M == _VARIANT])
    at = tuple(_at(laws, uncertainty, float(loss), supported) for loss in losses[order])
    within = [each.loss for each in at if each.status is Status.ok]
    overall = Estimate()
    if within:
        values, gradients = zip(*(_ln_ratio(laws, loss) for loss in within), strict=True)
        overall = _exp(float(np.mean(values)), np.mean(gradients, axis=0), uncertainty)
    residual_M = points.ln_y_M - laws.ln_law_M
    dof = len(residual_M) - len(laws.theta_P)
    status = Status.ok if within else Status.unsupported
    status = Status.barely_determined if uncertainty is None else status
    return MultiplierLaw(
        laws.offset,
        (laws.of(_BASE)[1], laws.of(_VARIANT)[1]),
        (laws.E(_BASE), laws.E(_VARIANT)),
        float(residual_M @ residual_M / dof) ** 0.5,
        tuple(replace(each, status=first_of([each.status, status])) for each in at),
        overall,
        supported,
        status,
    )


def _at(laws: _Laws, uncertainty: Uncertainty | None, loss: float, supported: tuple[float, float] | None) -> Multiplier:
    x_variant = float(np.exp(laws.x_at(_VARIANT, loss) + laws.points.ln_S_ref))
    ln_x_base = laws.x_at(_BASE, loss)
    if not np.isfinite(ln_x_base):
        return Multiplier(loss, x_variant, None, Estimate(), Status.unreachable)
    value, gradient_P = _ln_ratio(laws, loss)
    inside = supported is not None and supported[0] <= loss <= supported[1]
    x_base = float(np.exp(ln_x_base + laws.points.ln_S_ref))
    return Multiplier(
        loss, x_variant, x_base, _exp(value, gradient_P, uncertainty), Status.ok if inside else Status.unsupported
    )


def _ln_ratio(laws: _Laws, loss: float) -> tuple[float, Floats]:
    """ln(x_b / x_v) at a loss, and its derivatives."""
    value = laws.x_at(_BASE, loss) - laws.x_at(_VARIANT, loss)
    return float(value), laws.gradient_P(_BASE, loss) - laws.gradient_P(_VARIANT, loss)


def _exp(value: float, gradient_P: Floats, uncertainty: Uncertainty | None) -> Estimate:
    if uncertainty is None:
        return Estimate(float(np.exp(value)))
    with np.errstate(over="ignore"):  # an end beyond all numbers is open
        lo, hi = np.exp(uncertainty.interval(value, gradient_P))
    return Estimate(float(np.exp(value)), float(lo), float(hi) if np.isfinite(hi) else None)


def _without(offset: Offset, status: Status) -> MultiplierLaw:
    return MultiplierLaw(offset, None, None, None, (), Estimate(), None, status)
