"""The loss that a surface is fitted by, its least by many searches at once, and the likelihood that belongs to it.

The loss is one of ln y_fit - ln y, or of y_fit - y, summed over points. A search takes Newton's steps where the sum is
well curved, and those of reweighted least squares where it has kinks, as that of absolute values.

Shapes: B searches, N points, P parameters.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import erf

from rbpx.laws.names import Objective
from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, Minima, Sets, StoppingRule, minimise
from rbpx.laws.surface.equations import Form
from rbpx.laws.surface.runs import Coordinates

_MOST_DERIVATIVES: Final = 2**22  # of all searches at once, 32 MiB: of 100 searches of a surface at 6,000 points
_UNMEASURED: Final = 5e-13  # of the loss of a point: y is the surface's to a millionth, closer than any y is known
_FLATTEST: Final = 1e-12  # of the largest curvature: a parameter that hardly matters has a scale all the same
_LEAST_CURVATURE: Final = 1e-3  # of that of the parabola above
_RIDGE: Final = 1e-10  # of the scale of each parameter, so that the parabola above is never flat

POINT: Final = StoppingRule(step=1e-9, gain=1e-9, idle=1e-12, most_idle=30, most_left=1e-4, most_steps=2000)
# A ten-millionth of the objective of 20 points is a few thousandths of a standard deviation of a constant.
REPLICATE: Final = StoppingRule(step=1e-9, gain=1e-7, idle=1e-7, most_idle=10, most_left=1e-4, most_steps=1000)


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of a surface at points, of many searches at once; y_ref of the form does not matter to it.

    Attributes:
        form: of the surface.
        x: of the points.
        objective: the loss of a point.
        delta: where Huber's loss turns from a square to a line, in units of y_ref or of ln y; positive.
        ln_y_BN: ln(y / y_ref), of shape [B, N] or [1, N].
        weight_BN: how often each point counts, of shape [B, N] or [1, N].
        fixed_P: the parameters that stay as they are.
        over: by what the loss of points above the fit is divided.
    """

    form: Form
    x: Coordinates
    objective: Objective
    delta: float
    ln_y_BN: Floats
    weight_BN: Floats
    fixed_P: NDArray[np.bool_]
    over: float = 1.0

    def minimise(self, start_BP: Floats, end: StoppingRule = POINT) -> Minima:
        """The least of each search, each from a start of its own."""
        ln_y_BN, weight_BN = (
            np.broadcast_to(each, (len(start_BP), each.shape[1])) for each in (self.ln_y_BN, self.weight_BN)
        )

        def local(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
            return replace(self, ln_y_BN=ln_y_BN[sets], weight_BN=weight_BN[sets]).at(theta_PB.T)

        lower_PB, upper_PB = (
            np.where(self.fixed_P[:, None], start_BP.T, each[:, None])
            for each in (self.form.lower_P, self.form.upper_P)
        )
        at_once = max(1, _MOST_DERIVATIVES // (start_BP.shape[1] * ln_y_BN.shape[1]))
        found = minimise(local, start_BP.T, lower_PB, upper_PB, end, damping=0.1, at_once=at_once)
        exact_B = found.value_B <= _UNMEASURED * weight_BN.sum(axis=1)
        return replace(found, converged_B=found.converged_B | exact_B)

    def at(self, theta_BP: Floats) -> LocalQuadratic:
        """The sum over the points of each search, scaled by the parabola that touches it and lies above it."""
        ln_fit_BN, J_BPN = self.form.evaluate(self.x, theta_BP)
        value_BN, first_BN, second_BN, above_BN = loss(self.objective, self.delta, ln_fit_BN, self.ln_y_BN, self.over)
        pull_BN = self.weight_BN * first_BN
        slope_BP = (J_BPN @ pull_BN[..., None])[..., 0]
        curve_BPP, above_BPP = (
            (J_BPN * (self.weight_BN * each_BN)[:, None]) @ J_BPN.swapaxes(1, 2) for each_BN in (second_BN, above_BN)
        )
        bend_BPP = self.form.bend(self.x, theta_BP, J_BPN, pull_BN)
        curve_BPP += np.where(np.isfinite(bend_BPP).all(axis=(1, 2), keepdims=True), bend_BPP, 0.0)
        value_B = np.where(np.isfinite(slope_BP).all(axis=1), (self.weight_BN * value_BN).sum(axis=1), np.inf)
        usable_B11, one_PP = np.isfinite(value_B)[:, None, None], np.eye(theta_BP.shape[1])
        curve_BPP, above_BPP = (np.where(usable_B11, each, one_PP) for each in (curve_BPP, above_BPP))
        on_BP = np.einsum("bpp->bp", above_BPP)
        least_BP = _FLATTEST * on_BP.max(axis=1, keepdims=True) + np.finfo(float).tiny
        above_BPP += _RIDGE * np.maximum(on_BP, least_BP)[:, :, None] * one_PP
        # A direction that curves downwards is followed as if it curved upwards as much.
        root_BPP = np.linalg.cholesky(above_BPP)
        inverse_BPP = np.linalg.inv(root_BPP)
        curvature_BP, axis_BPP = np.linalg.eigh(inverse_BPP @ curve_BPP @ inverse_BPP.swapaxes(1, 2))
        axis_BPP = root_BPP @ axis_BPP
        curve_BPP = (axis_BPP * np.maximum(np.abs(curvature_BP), _LEAST_CURVATURE)[:, None]) @ axis_BPP.swapaxes(1, 2)
        return LocalQuadratic(value_B, slope_BP.T, np.moveaxis(curve_BPP, 0, -1), np.moveaxis(above_BPP, 0, -1))


def loss(
    objective: Objective, delta: float, ln_fit_BN: Floats, ln_y_BN: Floats, over: float = 1.0
) -> tuple[Floats, Floats, Floats, Floats]:
    """The loss of each point, its first and second derivatives by ln y_fit, and the curvature of a parabola above it.

    The parabola is that of reweighted least squares: it touches the loss and lies above it.

    Args:
        objective: which.
        delta: where Huber's loss turns from a square to a line, in the unit of the residual; positive.
        ln_fit_BN: ln y_fit.
        ln_y_BN: ln y, of a shape that broadcasts.
        over: by what the loss of points above the fit is divided.
    """
    side_BN = np.where(ln_y_BN > ln_fit_BN, 1 / over, 1.0)
    if objective is Objective.log_huber:
        value_BN, first_BN, second_BN, above_BN = _huber(ln_fit_BN - ln_y_BN, delta)
    else:
        fit_BN = np.exp(ln_fit_BN)
        r_BN = fit_BN - np.exp(ln_y_BN)
        if objective is Objective.huber:
            value_BN, first_BN, second_BN, above_BN = _huber(r_BN, delta)
        else:
            value_BN, first_BN = r_BN**2, 2 * r_BN
            second_BN = above_BN = np.full(r_BN.shape, 2.0)
        first_BN, above_BN = first_BN * fit_BN, above_BN * fit_BN**2
        second_BN = second_BN * fit_BN**2 + first_BN
    return value_BN * side_BN, first_BN * side_BN, second_BN * side_BN, above_BN * side_BN


def _huber(r_BN: Floats, delta: float) -> tuple[Floats, Floats, Floats, Floats]:
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
    mean = math.log(total / n)

    def minus_ln_L(ln_scale: float) -> float:
        below, above = (_ln_Z(objective, delta, each) for each in (ln_scale, ln_scale + math.log(over)))
        ln_Z = np.logaddexp(below, above)
        return n * float(ln_Z - math.log(2) + math.exp(mean - ln_scale))

    return -float(minimize_scalar(minus_ln_L, bounds=(mean - 5, mean + 5), options={"xatol": 1e-8}).fun)


def _ln_Z(objective: Objective, delta: float, ln_scale: float) -> float:
    """The logarithm of the integral of exp(-loss / scale) over all residuals."""
    scale = math.exp(ln_scale)
    if objective is Objective.least_squares:
        return math.log(math.pi * scale) / 2
    middle = math.sqrt(2 * math.pi * scale) * erf(delta / math.sqrt(2 * scale))
    return math.log(middle + 2 * scale / delta * math.exp(-(delta**2) / (2 * scale)))
