"""The loss that a surface minimises, its minimum in many searches at once, and its likelihood.

Searches take Newton steps where the sum is well curved, and steps of reweighted least squares where it has kinks.

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
from rbpx.laws.surface.equations import SurfaceForm
from rbpx.laws.surface.runs import Coordinates

_MOST_DERIVATIVES: Final = 2**22  # 32 MiB, 100 searches of a surface at 6,000 points
_UNMEASURED: Final = 5e-13  # loss of a point whose y is that of the surface to 1e-6
_FLATTEST: Final = 1e-12  # of the largest curvature, the least scale of a parameter
_LEAST_CURVATURE: Final = 1e-3  # of that of the upper parabola
_RIDGE: Final = 1e-10  # of the scale of each parameter, so that the parabola is never flat

POINT: Final = StoppingRule(step=1e-9, gain=1e-9, idle=1e-12, most_idle=30, most_left=1e-4, most_steps=2000)
# A ten-millionth of the objective of 20 points is a few thousandths of a standard deviation of a constant.
REPLICATE: Final = StoppingRule(step=1e-9, gain=1e-7, idle=1e-7, most_idle=10, most_left=1e-4, most_steps=1000)


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of a surface at points, for many searches at once.

    Attributes:
        delta: where Huber's loss becomes linear, in units of y_ref or of ln y.
        ln_y_BN: ln(y / y_ref), [B, N] or [1, N], as the weights are.
        fixed_P: mask of the fixed numbers of theta.
    """

    form: SurfaceForm
    x: Coordinates
    objective: Objective
    delta: float
    ln_y_BN: Floats
    weight_BN: Floats
    fixed_P: NDArray[np.bool_]

    def minimise(self, start_BP: Floats, end: StoppingRule = POINT) -> Minima:
        """The minimum of each search, from its own start."""
        ln_y_BN, weight_BN = (
            np.broadcast_to(each, (len(start_BP), each.shape[1])) for each in (self.ln_y_BN, self.weight_BN)
        )

        def local(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
            return replace(self, ln_y_BN=ln_y_BN[sets], weight_BN=weight_BN[sets]).at(theta_PB.T)

        lower_PB, upper_PB = (
            np.where(self.fixed_P[:, None], start_BP.T, each_PB)
            for each_PB in (self.form.lower_P[:, None], self.form.upper_PB(ln_y_BN.min(axis=1)))
        )
        at_once = max(1, _MOST_DERIVATIVES // (start_BP.shape[1] * ln_y_BN.shape[1]))
        found = minimise(local, start_BP.T, lower_PB, upper_PB, end, damping=0.1, at_once=at_once)
        exact_B = found.value_B <= _UNMEASURED * weight_BN.sum(axis=1)
        return replace(found, converged_B=found.converged_B | exact_B)

    def at(self, theta_BP: Floats) -> LocalQuadratic:
        """The sum of each search, with the scale of the parabola that touches it from above."""
        ln_fit_BN, J_BPN = self.form.evaluate(self.x, theta_BP)
        value_BN, first_BN, second_BN, above_BN = loss(self.objective, self.delta, ln_fit_BN, self.ln_y_BN)
        pull_BN = self.weight_BN * first_BN
        slope_BP = (J_BPN @ pull_BN[..., None])[..., 0]
        curve_BPP, above_BPP = (
            (J_BPN * (self.weight_BN * each_BN)[:, None]) @ J_BPN.swapaxes(1, 2) for each_BN in (second_BN, above_BN)
        )
        bend_BPP = self.form.curvature(self.x, theta_BP, J_BPN, pull_BN)
        curve_BPP += np.where(np.isfinite(bend_BPP).all(axis=(1, 2), keepdims=True), bend_BPP, 0.0)
        value_B = np.where(np.isfinite(slope_BP).all(axis=1), (self.weight_BN * value_BN).sum(axis=1), np.inf)
        usable_B11, one_PP = np.isfinite(value_B)[:, None, None], np.eye(theta_BP.shape[1])
        curve_BPP, above_BPP = (np.where(usable_B11, each, one_PP) for each in (curve_BPP, above_BPP))
        on_BP = np.einsum("bpp->bp", above_BPP)
        least_BP = _FLATTEST * on_BP.max(axis=1, keepdims=True) + np.finfo(float).tiny
        above_BPP += _RIDGE * np.maximum(on_BP, least_BP)[:, :, None] * one_PP
        # Negative curvatures count by their absolute values.
        root_BPP = np.linalg.cholesky(above_BPP)
        inverse_BPP = np.linalg.inv(root_BPP)
        curvature_BP, axis_BPP = np.linalg.eigh(inverse_BPP @ curve_BPP @ inverse_BPP.swapaxes(1, 2))
        axis_BPP = root_BPP @ axis_BPP
        curve_BPP = (axis_BPP * np.maximum(np.abs(curvature_BP), _LEAST_CURVATURE)[:, None]) @ axis_BPP.swapaxes(1, 2)
        return LocalQuadratic(value_B, slope_BP.T, np.moveaxis(curve_BPP, 0, -1), np.moveaxis(above_BPP, 0, -1))


def loss(
    objective: Objective, delta: float, ln_fit_BN: Floats, ln_y_BN: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The loss of each point, its first two derivatives by ln y_fit, and the curvature of a parabola above it."""
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
    return value_BN, first_BN, second_BN, above_BN


def _huber(r_BN: Floats, delta: float) -> tuple[Floats, Floats, Floats, Floats]:
    far_BN = np.abs(r_BN)
    near_BN = np.minimum(far_BN, delta)
    inside_BN = (far_BN <= delta).astype(np.float64)
    return near_BN * (far_BN - near_BN / 2), np.clip(r_BN, -delta, delta), inside_BN, delta / np.maximum(far_BN, delta)


def ln_likelihood(objective: Objective, delta: float, total: float, n: int) -> float | None:
    """The maximum log-likelihood of n points with density exp(-loss / scale) / Z(scale); None for an exact fit.

    Least squares has a normal density, Huber's a normal one with Laplace tails.
    """
    if total <= 0:
        return None
    mean = math.log(total / n)

    def minus_ln_L(ln_scale: float) -> float:
        return n * (_ln_Z(objective, delta, ln_scale) + math.exp(mean - ln_scale))

    return -float(minimize_scalar(minus_ln_L, bounds=(mean - 5, mean + 5), options={"xatol": 1e-8}).fun)


def _ln_Z(objective: Objective, delta: float, ln_scale: float) -> float:
    scale = math.exp(ln_scale)
    if objective is Objective.least_squares:
        return math.log(math.pi * scale) / 2
    middle = math.sqrt(2 * math.pi * scale) * erf(delta / math.sqrt(2 * scale))
    return math.log(middle + 2 * scale / delta * math.exp(-(delta**2) / (2 * scale)))
