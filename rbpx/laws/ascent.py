"""Newton's method for the maximum of an objective, given its first two derivatives."""

from collections.abc import Callable, Sequence

import numpy as np

from rbpx.laws.arrays import Floats

Objective = Callable[[Floats], tuple[float, Floats, Floats]]


def maximise(
    objective: Objective, theta: Floats, free: Sequence[int], allowed: Callable[[Floats], bool] = lambda theta: True
) -> tuple[Floats, bool]:
    """Climb from `theta` by Newton's method with step halving.

    Args:
        objective: theta of shape [P] in; value, gradient [P] and Hessian [P, P] out.
        theta: where to start.
        free: the parameters that may move.
        allowed: where the objective exists; steps to where it does not are halved.

    Returns:
        The last theta, and whether it is a maximum: the gradient has vanished, and the curvature is downward.
    """
    value, gradient, hessian = objective(theta)
    for _ in range(200):
        curvature = -hessian[np.ix_(free, free)]
        eigenvalues, axes = np.linalg.eigh(curvature)
        # A direction that curves up is climbed as if it curved down as much.
        floor = np.abs(eigenvalues).max() * 1e-14
        if floor == 0:  # flat to rounding, which is no maximum
            return theta, False
        step = axes @ ((axes.T @ gradient[free]) / np.maximum(np.abs(eigenvalues), floor))
        gain = float(step @ gradient[free])
        if gain < 1e-12:
            last = theta.copy()
            last[free] += step  # near its end the method doubles the digits with each step, so this one is worth taking
            return (last if allowed(last) else theta), bool(eigenvalues.min() > 0)
        for _ in range(60):
            candidate = theta.copy()
            candidate[free] += step
            if allowed(candidate):
                new_value, new_gradient, new_hessian = objective(candidate)
                if new_value > value or (gain < 1e-6 and new_value > value - 1e-9 * abs(value)):
                    break
            step = step / 2
        else:
            return theta, _vanished(gain, value)
        theta, value, gradient, hessian = candidate, new_value, new_gradient, new_hessian
    return theta, _vanished(gain, value)


def _vanished(gain: float, value: float) -> bool:
    """Whether what is left to gain is lost in the rounding of the objective, which keeps the last steps from ending."""
    return gain < max(1e-6, 1e-9 * abs(value))
