"""What a surface is fitted by: a sum over points of a loss of ln y_fit - ln y, or of y_fit - y.

Shapes: B sets of points, N points.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.numeric.solvers import roots
from rbpx.laws.surface.names import Objective


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


def loss(objective: Objective, delta: float | Floats, ln_fit_BN: Floats, ln_y_BN: Floats) -> Loss:
    """The loss of each point.

    Args:
        objective: which.
        delta: where Huber's loss turns from a square to a line, in the unit of the residual; positive, one number
            or of a shape that broadcasts.
        ln_fit_BN: ln y_fit.
        ln_y_BN: ln y, of a shape that broadcasts.
    """
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


def ln_likelihood(objective: Objective, delta: float, total: float, n: int) -> float | None:
    """The greatest logarithm of a likelihood whose density falls with the loss: exp(-loss / scale) / Z(scale).

    Least squares has a normal density; Huber's is normal in the middle with Laplace's tails, and nearly Laplace's where
    delta is far below the residuals. The scale is chosen by maximum likelihood.

    Args:
        objective: which.
        delta: as in the fit.
        total: the sum of the losses.
        n: points.

    Returns:
        The logarithm; None where the fit is exact.
    """
    if total <= 0:
        return None
    if objective is Objective.least_squares:
        return -n / 2 * (math.log(2 * math.pi * total / n) + 1)
    mean = math.log(total / n)
    (ln_scale,) = roots(
        lambda ln_scale: _density(delta, ln_scale)[1] - np.exp(mean - ln_scale), [mean - 5], [mean + 5], 1e-10
    )
    ln_Z, _ = _density(delta, ln_scale)
    return -n * float(ln_Z + np.exp(mean - ln_scale))


def _density(delta: float, ln_scale: Floats) -> tuple[Floats, Floats]:
    """Ln Z of Huber's density, and its derivative by ln scale: 1/2 where it is normal, 1 where it is Laplace's."""
    scale = np.exp(ln_scale)
    middle = np.sqrt(2 * math.pi * scale) * erf(delta / np.sqrt(2 * scale))
    tails = 2 * scale / delta * np.exp(-(delta**2) / (2 * scale))
    return np.log(middle + tails), (middle / 2 + tails) / (middle + tails)
