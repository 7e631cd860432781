"""The loss that a surface is fitted by, and a step of each search of a batch: where it leads, what there is to gain.

The loss is one of ln y_fit - ln y, or of y_fit - y, summed over points. Curvatures are measured against the parabola
that touches the objective and lies above it (that of reweighted least squares); those below `damping` in its units are
raised to it. So a step is Newton's where the objective is well curved, and one of reweighted least squares where it has
kinks.

Shapes: B searches, N points, P numbers of theta.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

from rbpx.laws.names import Objective
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.equations import Form
from rbpx.laws.surface.runs import Coordinates


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of each point and its derivatives by ln y_fit.

    Attributes:
        value_BN: the loss.
        first_BN: its first derivative.
        second_BN: its second, which may be negative for residuals of y.
        weight_BN: what its squared residual counts for in the parabola that touches it and lies above it; positive.
    """

    value_BN: Floats
    first_BN: Floats
    second_BN: Floats
    weight_BN: Floats


def loss(objective: Objective, delta: float | Floats, ln_fit_BN: Floats, ln_y_BN: Floats, over: float = 1.0) -> Loss:
    """The loss of each point.

    Args:
        objective: which.
        delta: where Huber's loss turns from a square to a line, in the unit of the residual; positive, one number
            or of a shape that broadcasts.
        ln_fit_BN: ln y_fit.
        ln_y_BN: ln y, of a shape that broadcasts.
        over: by what the loss of points above the fit is divided.
    """
    if over != 1:
        alike, side_BN = loss(objective, delta, ln_fit_BN, ln_y_BN), np.where(ln_y_BN > ln_fit_BN, 1 / over, 1.0)
        of_each = (alike.value_BN, alike.first_BN, alike.second_BN, alike.weight_BN)
        return Loss(*(each * side_BN for each in of_each))
    if objective is Objective.log_huber:
        r_BN = ln_fit_BN - ln_y_BN
        value_BN, first_BN, flat_BN, weight_BN = _huber(r_BN, delta)
        return Loss(value_BN, first_BN, flat_BN, weight_BN)
    fit_BN = np.exp(ln_fit_BN)
    r_BN = fit_BN - np.exp(ln_y_BN)
    if objective is Objective.huber:
        value_BN, first_BN, flat_BN, weight_BN = _huber(r_BN, delta)
    else:
        value_BN, first_BN = r_BN**2, 2 * r_BN
        flat_BN = weight_BN = np.full(r_BN.shape, 2.0)
    return Loss(value_BN, first_BN * fit_BN, flat_BN * fit_BN**2 + first_BN * fit_BN, weight_BN * fit_BN**2)


def _huber(r_BN: Floats, delta: float | Floats) -> tuple[Floats, Floats, Floats, Floats]:
    far_BN = np.abs(r_BN)
    near_BN = np.minimum(far_BN, delta)
    inside_BN = (far_BN <= delta).astype(np.float64)
    return near_BN * (far_BN - near_BN / 2), np.clip(r_BN, -delta, delta), inside_BN, delta / np.maximum(far_BN, delta)


def ln_likelihood(objective: Objective, delta: float, total: float, n: int, over: float = 1.0) -> float | None:
    """The greatest logarithm of a likelihood whose density falls with the loss: exp(-loss / scale) / Z(scale).

    Least squares has a normal density; Huber's is normal in the middle with Laplace's tails, and nearly Laplace's where
    delta is far below the residuals. The scale is chosen by maximum likelihood.

    Args:
        objective: which.
        delta: as in the fit.
        total: the sum of the losses.
        n: points.
        over: as in `loss`; above the law the density has so many times the scale.

    Returns:
        The logarithm; None where the fit is exact.
    """
    if total <= 0:
        return None
    if objective is Objective.least_squares:
        return -n / 2 * (math.log(2 * math.pi * total / n) + 1) - n * math.log((1 + math.sqrt(over)) / 2)
    from scipy.optimize import brentq  # a fifth of a second, which only this needs

    mean = math.log(total / n)
    ln_scale = brentq(lambda at: _density(delta, at, over)[1] - np.exp(mean - at), mean - 5, mean + 5, xtol=1e-10)
    ln_Z, _ = _density(delta, ln_scale, over)
    return -n * float(ln_Z + np.exp(mean - ln_scale))


def _density(delta: float, ln_scale: float, over: float) -> tuple[float, float]:
    """Ln Z of Huber's density, and its derivative by ln scale: 1/2 where it is normal, 1 where it is Laplace's."""
    if over != 1:
        (below, by_below), (above, by_above) = (
            _density(delta, at, 1.0) for at in (ln_scale, ln_scale + math.log(over))
        )
        share = expit(above - below)
        return np.logaddexp(below, above) - math.log(2), (1 - share) * by_below + share * by_above
    scale = np.exp(ln_scale)
    middle = np.sqrt(2 * math.pi * scale) * erf(delta / np.sqrt(2 * scale))
    tails = 2 * scale / delta * np.exp(-(delta**2) / (2 * scale))
    return np.log(middle + tails), (middle / 2 + tails) / (middle + tails)


Mask = NDArray[np.bool_]

_FLATTEST: Final = 0.01  # curvature that is believed in where something is to be gained


def step(
    form: Form,
    x: Coordinates,
    losses: Loss,
    J_BPN: Floats,
    weight_BN: Floats,
    theta_BP: Floats,
    damping_B: Floats,
    fixed_P: Mask,
    bent_BN: Floats,
) -> tuple[Floats, Floats]:
    """Where the step of each search leads, [B, P], and what there is to gain from here by the parabola above, [B].

    Args:
        form: of the surface.
        x: of the points.
        losses: of the points of each search.
        J_BPN: derivatives of ln y.
        weight_BN: how often each point counts.
        theta_BP: where each search is.
        damping_B: the least curvature, in units of the parabola above.
        fixed_P: the numbers that stay as they are.
        bent_BN: by how much ln y differs from its tangent where the last step led, if that step was not taken.
    """
    lower_P, upper_P = form.lower_P, form.upper_P
    pull_BN = weight_BN * losses.first_BN
    g_BP = (J_BPN @ pull_BN[..., None])[..., 0]
    above_BPP = (J_BPN * (weight_BN * losses.weight_BN)[:, None]) @ J_BPN.swapaxes(1, 2)
    curve_BPP = (J_BPN * (weight_BN * losses.second_BN)[:, None]) @ J_BPN.swapaxes(1, 2)
    with np.errstate(all="ignore"):
        bend_BPP = form.bend(x, theta_BP, J_BPN, pull_BN)
    curve_BPP += np.where(np.isfinite(bend_BPP).all(axis=(1, 2), keepdims=True), bend_BPP, 0.0)
    held_BP = fixed_P | ((theta_BP <= lower_P) & (g_BP >= 0)) | ((theta_BP >= upper_P) & (g_BP <= 0))
    held_BPP = held_BP[:, :, None] | held_BP[:, None, :]
    one_PP = np.eye(theta_BP.shape[1])
    # A number that hardly matters anywhere still has a scale of its own, so that the parabola is never flat.
    diagonal_BP = np.einsum("bpp->bp", above_BPP)
    unit_BP = np.sqrt(np.maximum(diagonal_BP, 1e-12 * diagonal_BP.max(axis=1, keepdims=True)))
    unit_BP = np.where(held_BP | ~(unit_BP > 0), 1.0, unit_BP)
    scale_BPP = unit_BP[:, :, None] * unit_BP[:, None, :]
    above_BPP = np.where(held_BPP, one_PP, above_BPP / scale_BPP) + 1e-10 * one_PP
    curve_BPP = np.where(held_BPP, one_PP, curve_BPP / scale_BPP)
    inverse_BPP = np.linalg.inv(np.linalg.cholesky(above_BPP))
    curvature_BP, axis_BPP = np.linalg.eigh(inverse_BPP @ curve_BPP @ inverse_BPP.swapaxes(1, 2))
    g_BP = np.where(held_BP, 0.0, g_BP / unit_BP)
    more_BP = (J_BPN @ (weight_BN * losses.second_BN * bent_BN)[..., None])[..., 0]
    more_BP = np.where(held_BP, 0.0, more_BP / unit_BP)
    axis_BPP = axis_BPP.swapaxes(1, 2) @ inverse_BPP  # in rows
    along_BP = (axis_BPP @ g_BP[..., None])[..., 0]
    size_BP = np.abs(curvature_BP)
    down_BP, up_BP = ((bound_P - theta_BP) * unit_BP for bound_P in (lower_P, upper_P))
    down_BP, up_BP = np.where(held_BP, 0.0, down_BP), np.where(held_BP, 0.0, up_BP)
    inwards = np.where(down_BP < 0, -np.inf, 0.0), np.where(up_BP > 0, np.inf, 0.0)
    furthest_BP = _least(axis_BPP, np.maximum(size_BP, _FLATTEST), along_BP, *inwards)
    gain_B = -(g_BP * furthest_BP).sum(axis=1) / 2
    along_BP = along_BP + (axis_BPP @ more_BP[..., None])[..., 0]
    step_BP = _least(axis_BPP, np.maximum(size_BP, damping_B[:, None]), along_BP, down_BP, up_BP)
    new_BP = np.clip(theta_BP + step_BP / unit_BP, lower_P, upper_P)
    new_BP = np.where(step_BP <= down_BP, lower_P, np.where(step_BP >= up_BP, upper_P, new_BP))
    return np.where(held_BP, theta_BP, new_BP), gain_B


def _least(axis_BPP: Floats, curvature_BP: Floats, along_BP: Floats, down_BP: Floats, up_BP: Floats) -> Floats:
    """The step to the least of each quadratic; where that is out of bounds, to the least on the bounds in its way.

    The first bound on the way stops its number, and the others move on with it where it is: a step that was cut off
    alone would lead uphill along a valley.

    Args:
        axis_BPP: the axes of the quadratic, in rows.
        curvature_BP: along each, positive.
        along_BP: the slope along each.
        down_BP: the furthest step downwards, at most 0.
        up_BP: the furthest upwards, at least 0.
    """
    step_BP = (-(along_BP / curvature_BP)[:, None] @ axis_BPP)[:, 0]
    left_B = np.flatnonzero(((step_BP < down_BP) | (step_BP > up_BP)).any(axis=1))
    if len(left_B) == 0:
        return step_BP
    axis_BPP, down_BP, up_BP, free_BP = (each[left_B] for each in (axis_BPP, down_BP, up_BP, step_BP))
    inverse_BPP = axis_BPP.swapaxes(1, 2) @ (axis_BPP / curvature_BP[left_B, :, None])
    one_PP, now_BP = np.eye(step_BP.shape[1]), free_BP
    stopped_BP, end_BP = np.zeros(free_BP.shape, dtype=bool), np.zeros(free_BP.shape)
    while len(left_B):
        bound_BP = np.clip(now_BP, down_BP, up_BP)
        share_BP = np.where(now_BP == bound_BP, np.inf, bound_BP / np.where(now_BP == 0, 1.0, now_BP))
        first_BP = (share_BP <= share_BP.min(axis=1, keepdims=True)) & (now_BP != bound_BP)
        stopped_BP, end_BP = stopped_BP | first_BP, np.where(first_BP, bound_BP, end_BP)
        force_BP = np.linalg.solve(
            np.where(stopped_BP[:, :, None] & stopped_BP[:, None, :], inverse_BPP, one_PP),
            np.where(stopped_BP, end_BP - free_BP, 0.0)[..., None],
        )
        now_BP = np.where(stopped_BP, end_BP, free_BP + (inverse_BPP @ force_BP)[..., 0])
        step_BP[left_B] = now_BP
        rest_B = ((now_BP < down_BP) | (now_BP > up_BP)).any(axis=1)
        left_B, now_BP, free_BP, inverse_BPP = left_B[rest_B], now_BP[rest_B], free_BP[rest_B], inverse_BPP[rest_B]
        down_BP, up_BP, stopped_BP, end_BP = down_BP[rest_B], up_BP[rest_B], stopped_BP[rest_B], end_BP[rest_B]
    return step_BP
