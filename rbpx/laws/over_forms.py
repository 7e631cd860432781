"""Prediction of a quantity at another size over the forms that its law may have, weighted by evidence.

No ladder of a few sizes says which form a law has, and far outside the sizes the form is what matters. So each form is
fitted, each with independent and with correlated scatter of the models, and the predictions are averaged with weights
by how well the forms fit (Bayesian model averaging):

    power    y = C S^-alpha
    offset   y = E + C S^-alpha, E on a grid from 0 to the smallest y
    bend     y = C S^-alpha with another exponent above one of three sizes (from 5 sizes on)

For a given E, a given bend and a given correlation two parameters are left, and a new model has Student's t as
predictive distribution of ln y, with n - 2 degrees of freedom. The weight of each is
prior SSE^(-(n-2)/2) |R|^(-1/2) |J' R^-1 J|^(-1/4), with R the correlation of the scatter and J the derivatives of ln y.
The last exponent would be 1/2 if every exponent alpha were as likely beforehand, and 0 if every slope of ln y were; 1/4
and the priors below were chosen by coverage and width (docs/explanation/uncertainty.md).

Shapes: B series, N sizes, G components (a form with its E or bend, and a correlation).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from rbpx.laws.interval import LEVEL

__all__ = ["COMBINED", "Averaged", "Shape", "Within", "average_forms", "below_batch", "predict_batch"]

Floats = NDArray[np.float64]

COMBINED: Final = "combined"  # the method of an answer over all forms
MIN_SIZES: Final = 3
_MIN_SIZES_TO_BEND: Final = 5
_OFFSETS: Final = np.linspace(0, 0.98, 22)[1:]  # of the smallest y
_RATIOS: Final = (0.25, 0.35, 0.5, 0.65, 0.8, 1.25, 1.5, 1.8, 2.2)  # exponent above a bend over the one below it
_BENDS: Final = (0.25, 0.5, 0.75)  # quantiles of ln S
_ROUNDING: Final = 0.5  # of ln S, the width of a bend
_HALF_DECADE: Final = 0.5 * math.log(10)
_CORRELATIONS: Final = {0.0: 0.4, 0.5: 0.3, 0.8: 0.3}  # of two models half a decade apart: prior weight
_STEPS: Final = 4  # of Gauss-Newton: each form has two parameters, and starts at its own weighted line
_NEGLIGIBLE: Final = 1e-10  # of the greatest weight
_HALVINGS: Final = 36  # of the bracket of a quantile
_EXACT: Final = 1e-13  # relative to |ln y|: residuals below it are rounding, so the form is exact


class Shape(StrEnum):
    """The forms that are averaged."""

    power = "power"
    offset = "offset"
    bend = "bend"


_PRIOR: Final = {Shape.power: 0.35, Shape.offset: 0.45, Shape.bend: 0.2}


@dataclass(frozen=True)
class Within:
    """Median and 95 % interval if a single form counted."""

    y: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Averaged:
    """What a new model of size S would show, on the same documents, over all forms.

    Attributes:
        S: the size.
        y: the median.
        lo: lower end of the 95 % interval.
        hi: upper end.
        weights: of each form; they sum to 1.
        correlated: weight of scatter that is correlated between neighbouring sizes.
        within: the answer of each form alone, of those that were fitted.
    """

    S: float
    y: float
    lo: float
    hi: float
    weights: dict[Shape, float]
    correlated: float
    within: dict[Shape, Within]


@dataclass(frozen=True, eq=False)
class _Grid:
    """The components, without the data: what depends on the sizes and on the new size alone."""

    shape_G: tuple[Shape, ...]
    offset_G: Floats  # E over the smallest y
    prior_G: Floats
    u_GN: Floats  # ln S, bent and centred
    u_new_G: Floats
    whiten_GNN: Floats  # L of R^-1 = L L'
    ln_det_G: Floats  # ln |R|
    carry_GN: Floats  # how residuals are carried over to the new size by the correlation
    rest_G: Floats  # the variance of a new model that the correlation leaves
    rho_G: Floats


def average_forms(S: ArrayLike, y: ArrayLike, targets: Sequence[float]) -> list[Averaged] | None:
    """Predict y at each target over the forms of a law.

    Args:
        S: sizes, shape [N], positive and all different.
        y: the quantity at each, shape [N]; where all are negative, |y| has the law.
        targets: sizes to predict.

    Returns:
        A prediction for each target; None below 3 sizes, or where a y is 0, not finite or of another sign. It does not
        include document sampling: a new model is measured on the same documents.
    """
    S_N, y_N = np.asarray(S, dtype=np.float64), np.asarray(y, dtype=np.float64)
    sign = -1.0 if len(y_N) and y_N[0] < 0 else 1.0
    if len(S_N) < MIN_SIZES or not np.all((sign * y_N > 0) & np.isfinite(y_N)):
        return None
    order = np.argsort(S_N)
    ln_S, ln_y_N = tuple(np.log(S_N[order]).tolist()), np.log(sign * y_N[order])
    return [_average(_grid(ln_S, math.log(S_new)), ln_y_N, S_new, sign) for S_new in targets]


@lru_cache(maxsize=128)
def _grid(ln_S: tuple[float, ...], ln_S_new: float) -> _Grid:
    x_M = np.array([*ln_S, ln_S_new])
    n = len(ln_S)
    forms: list[tuple[Shape, float, float, Floats]] = [(Shape.power, 0.0, _PRIOR[Shape.power], x_M)]
    forms += [(Shape.offset, share, _PRIOR[Shape.offset] / len(_OFFSETS), x_M) for share in _OFFSETS.tolist()]
    if n >= _MIN_SIZES_TO_BEND:
        each = _PRIOR[Shape.bend] / len(_BENDS) / len(_RATIOS)
        for at in np.quantile(x_M[:n], _BENDS):
            above_M = _ROUNDING * np.logaddexp(0.0, (x_M - at) / _ROUNDING)
            forms += [(Shape.bend, 0.0, each, x_M + (ratio - 1) * above_M) for ratio in _RATIOS]
    parts = [(*form, rho, weight) for rho, weight in _CORRELATIONS.items() for form in forms]
    noise = {rho: _noise(x_M, rho) for rho in _CORRELATIONS}
    u_GM = np.array([part[3] for part in parts])
    u_GM = u_GM - u_GM[:, :n].mean(axis=1, keepdims=True)
    whiten, ln_det, carry, rest = (np.array([noise[part[4]][i] for part in parts]) for i in range(4))
    return _Grid(
        tuple(part[0] for part in parts),
        np.array([part[1] for part in parts]),
        np.array([part[2] * part[5] for part in parts]),
        u_GM[:, :n],
        u_GM[:, n],
        whiten,
        ln_det,
        carry,
        rest,
        np.array([part[4] for part in parts]),
    )


def _noise(x_M: Floats, rho: float) -> tuple[Floats, float, Floats, float]:
    """Whitening and ln |R| of scatter with correlation rho^(half decades apart); what it says of the new size."""
    n = len(x_M) - 1
    apart_MM = np.abs(x_M[:, None] - x_M) / _HALF_DECADE
    R_MM = np.where(apart_MM == 0, 1.0, rho**apart_MM) if rho else np.eye(n + 1)
    # A new model of a size that was measured shares no more with that one than a neighbour half a decade away.
    R_MM[n, :n] = R_MM[:n, n] = np.minimum(R_MM[n, :n], rho)
    inverse_NN = np.linalg.inv(R_MM[:n, :n])
    carry_N = R_MM[n, :n] @ inverse_NN
    rest = float(1 - carry_N @ R_MM[:n, n])
    return np.linalg.cholesky(inverse_NN), float(np.linalg.slogdet(R_MM[:n, :n])[1]), carry_N, rest


def predict_batch(S: ArrayLike, y_BN: ArrayLike, S_new: float) -> Floats:
    """As `average_forms` for B series at the same sizes: median, lower and upper end, shape [B, 3].

    Args:
        S: sizes in increasing order, shape [N].
        y_BN: the quantity of each series, positive, shape [B, N].
        S_new: the size to predict.
    """
    ln_S = tuple(np.log(np.asarray(S, dtype=np.float64)).tolist())
    mixture = _mix(_grid(ln_S, math.log(S_new)), np.log(np.asarray(y_BN, dtype=np.float64)))
    return _quantiles(mixture.centre_BG, mixture.scale_BG, mixture.weight_BG, len(ln_S) - 2)


def below_batch(S: ArrayLike, y_BN: ArrayLike, S_new: float, y_new_B: ArrayLike) -> Floats:
    """The probability that a new model shows less than y_new; between .025 and .975 y_new is in the interval.

    Args:
        S: as in `predict_batch`.
        y_BN: as there.
        S_new: as there.
        y_new_B: values at the new size, positive, shape [B].
    """
    ln_S = tuple(np.log(np.asarray(S, dtype=np.float64)).tolist())
    mixture = _mix(_grid(ln_S, math.log(S_new)), np.log(np.asarray(y_BN, dtype=np.float64)))
    away_BG = np.log(np.asarray(y_new_B, dtype=np.float64))[:, None] - mixture.centre_BG
    return np.asarray((mixture.weight_BG * _below(away_BG, mixture.scale_BG, len(ln_S) - 2)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Student's t of each component in ln y: its centre and scale, and its weight."""

    centre_BG: Floats
    scale_BG: Floats
    weight_BG: Floats


def _average(grid: _Grid, ln_y_N: Floats, S_new: float, sign: float) -> Averaged:
    mixture, dof = _mix(grid, ln_y_N[None]), len(ln_y_N) - 2
    weight_G = mixture.weight_BG[0]
    of_shape = {shape: np.array([each is shape for each in grid.shape_G]) for shape in Shape}
    weights = {shape: float(weight_G[mask].sum()) for shape, mask in of_shape.items()}

    def answer(mask_G: NDArray[np.bool_]) -> Within:
        centre_BG, scale_BG, weight_BG = mixture.centre_BG, mixture.scale_BG, mixture.weight_BG
        y, *ends = (sign * _quantiles(centre_BG[:, mask_G], scale_BG[:, mask_G], weight_BG[:, mask_G], dof)[0]).tolist()
        return Within(y, *sorted(ends))

    within = {shape: answer(mask) for shape, mask in of_shape.items() if weights[shape] > 0}
    correlated = float(weight_G[grid.rho_G > 0].sum())
    return Averaged(S_new, **vars(answer(weight_G >= 0)), weights=weights, correlated=correlated, within=within)


def _mix(grid: _Grid, ln_y_BN: Floats) -> _Mixture:
    n = ln_y_BN.shape[1]
    centre_BG, unit_BG, sse_BG, ln_det_BG = _predictives(grid, ln_y_BN)
    rounding_B1 = n * (_EXACT * np.maximum(1.0, np.abs(ln_y_BN).max(axis=1, keepdims=True))) ** 2
    exact_BG = sse_BG <= rounding_B1
    with np.errstate(divide="ignore"):
        ln_weight_BG = np.log(grid.prior_G) - (n - 2) / 2 * np.log(sse_BG) - grid.ln_det_G / 2 - ln_det_BG / 4
    # Forms that pass through all points leave nothing to weigh: the first of them, the simplest, answers.
    simplest_BG = np.where(np.arange(exact_BG.shape[1]) == np.argmax(exact_BG, axis=1)[:, None], 0.0, -np.inf)
    ln_weight_BG = np.where(exact_BG.any(axis=1, keepdims=True), simplest_BG, ln_weight_BG)
    weight_BG = np.exp(ln_weight_BG - ln_weight_BG.max(axis=1, keepdims=True))
    scale_BG = np.where(exact_BG, 0.0, np.sqrt(sse_BG / (n - 2) * unit_BG))
    return _Mixture(centre_BG, scale_BG, weight_BG / weight_BG.sum(axis=1, keepdims=True))


def _predictives(grid: _Grid, ln_y_BN: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Of each component: ln y of the new model, its variance over sigma^2, the sum of squares, ln |J' R^-1 J|."""
    ln_y_B1N = ln_y_BN[:, None]
    y_B1N = np.exp(ln_y_B1N)
    E_BG = grid.offset_G * y_B1N.min(axis=2)
    share_BGN = 1 - E_BG[:, :, None] / y_B1N
    theta_BG2 = _solve(grid, share_BGN, share_BGN * np.log(y_B1N - E_BG[:, :, None]))[0]
    theta_BG2, law_BGN, share_BGN, sse_BG = _improve(grid, E_BG, ln_y_B1N, theta_BG2)
    A_BG22 = _solve(grid, share_BGN, law_BGN)[1]
    ln_power_BG = theta_BG2[:, :, 0] - theta_BG2[:, :, 1] * grid.u_new_G
    ln_law_BG = _ln_sum(ln_power_BG, E_BG)
    share_BG = np.exp(ln_power_BG - ln_law_BG)
    of_first_BG = share_BG - (share_BGN * grid.carry_GN).sum(2)
    of_slope_BG = -share_BG * grid.u_new_G + (share_BGN * grid.u_GN * grid.carry_GN).sum(2)
    gradient_BG2 = np.stack([of_first_BG, of_slope_BG], axis=2)
    spread_BG = (gradient_BG2 * np.linalg.solve(A_BG22, gradient_BG2[..., None])[..., 0]).sum(2)
    centre_BG = ln_law_BG + ((ln_y_B1N - law_BGN) * grid.carry_GN).sum(2)
    return centre_BG, grid.rest_G + spread_BG, sse_BG, np.linalg.slogdet(A_BG22)[1]


def _improve(grid: _Grid, E_BG: Floats, ln_y_B1N: Floats, theta_BG2: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Gauss-Newton in ln y from the weighted line through ln(y - E), where a step that gains nothing is not taken."""

    def at(theta_BG2: Floats) -> tuple[Floats, Floats, Floats]:
        ln_power_BGN = theta_BG2[..., :1] - theta_BG2[..., 1:] * grid.u_GN
        law_BGN = _ln_sum(ln_power_BGN, E_BG[..., None])
        white_BGN = np.einsum("bgn,gnm->bgm", ln_y_B1N - law_BGN, grid.whiten_GNN)
        return law_BGN, np.exp(ln_power_BGN - law_BGN), (white_BGN**2).sum(2)

    law_BGN, share_BGN, sse_BG = at(theta_BG2)
    for _ in range(_STEPS):
        new_theta_BG2 = theta_BG2 + _solve(grid, share_BGN, ln_y_B1N - law_BGN)[0]
        new_law_BGN, new_share_BGN, new_sse_BG = at(new_theta_BG2)
        better_BG = new_sse_BG < sse_BG
        theta_BG2 = np.where(better_BG[..., None], new_theta_BG2, theta_BG2)
        law_BGN = np.where(better_BG[..., None], new_law_BGN, law_BGN)
        share_BGN = np.where(better_BG[..., None], new_share_BGN, share_BGN)
        sse_BG = np.where(better_BG, new_sse_BG, sse_BG)
    return theta_BG2, law_BGN, share_BGN, sse_BG


def _solve(grid: _Grid, share_BGN: Floats, target_BGN: Floats) -> tuple[Floats, Floats]:
    """Least squares of the target on (share, -share u), whitened: the two coefficients, and J' R^-1 J."""
    J_BG2N = np.stack([share_BGN, -share_BGN * grid.u_GN], axis=2) @ grid.whiten_GNN
    white_BGN = np.einsum("bgn,gnm->bgm", target_BGN, grid.whiten_GNN)
    A_BG22 = J_BG2N @ J_BG2N.swapaxes(2, 3)
    return np.linalg.solve(A_BG22, J_BG2N @ white_BGN[..., None])[..., 0], A_BG22


def _ln_sum(ln_power: Floats, E: Floats) -> Floats:
    """ln(E + exp(ln_power)), E >= 0."""
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
        return np.asarray(np.logaddexp(ln_power, np.log(E)))


def _quantiles(centre_BG: Floats, scale_BG: Floats, weight_BG: Floats, dof: int) -> Floats:
    """Median and both ends of the interval of y under a mixture of Student's t in ln y, by bisection; shape [B, 3]."""
    counts_G = np.any(weight_BG > _NEGLIGIBLE * weight_BG.max(axis=1, keepdims=True), axis=0)
    centre_BG, scale_BG, weight_BG = centre_BG[:, counts_G], scale_BG[:, counts_G], weight_BG[:, counts_G]
    weight_BG = weight_BG / weight_BG.sum(axis=1, keepdims=True)
    tail_3 = np.array([0.5, (1 - LEVEL) / 2, (1 + LEVEL) / 2])
    reach_3 = stdtrit(dof, tail_3)
    # Each end lies between the least and the greatest quantile of the components that count.
    quantile_BG3 = np.where(weight_BG[..., None] > 0, centre_BG[..., None] + scale_BG[..., None] * reach_3, np.nan)
    lo_B3, hi_B3 = np.nanmin(quantile_BG3, axis=1), np.nanmax(quantile_BG3, axis=1)
    for _ in range(_HALVINGS):
        middle_B3 = (lo_B3 + hi_B3) / 2
        below_BG3 = _below(middle_B3[:, None] - centre_BG[..., None], scale_BG[..., None], dof)
        is_below_B3 = (weight_BG[..., None] * below_BG3).sum(axis=1) < tail_3
        lo_B3, hi_B3 = np.where(is_below_B3, middle_B3, lo_B3), np.where(is_below_B3, hi_B3, middle_B3)
    with np.errstate(over="ignore"):  # an end beyond any float is infinite
        return np.asarray(np.exp((lo_B3 + hi_B3) / 2))


def _below(away: Floats, scale: Floats, dof: int) -> Floats:
    """Student's t distribution function at a distance from the centre; an exact form has no scale: all or nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(stdtr(dof, np.where(away == 0, 0.0, away / scale)))
