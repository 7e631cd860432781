"""The batch solver against SciPy, one set at a time: least squares, bounds, kinks, and what has no minimum."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, Sets, StoppingRule, minimise, squares

X = np.linspace(0, 2, 9)
START = np.array([1.0, 1.0, 0.1])


def curves(theta_PB: Floats) -> tuple[Floats, Floats]:
    """A exp(-b x) + c with its derivatives, [N, B] and [P, N, B]."""
    A_B, b_B, c_B = theta_PB
    fall_NB = np.exp(-X[:, None] * b_B)
    return A_B * fall_NB + c_B, np.stack([fall_NB, -X[:, None] * A_B * fall_NB, np.ones_like(fall_NB)])


def drawn(n: int) -> Floats:
    """Values [N, B] about curves, some of which end below 0."""
    rng = np.random.default_rng(0)
    theta_PB = np.stack([rng.uniform(0.5, 3, n), rng.uniform(0.5, 2, n), rng.uniform(-0.1, 1, n)])
    return curves(theta_PB)[0] + 0.02 * rng.standard_normal((len(X), n))


def alone(y_N: Floats, lower: tuple[float, ...]) -> Any:
    """The same of one set by SciPy."""

    def residual(theta_P: Floats) -> Floats:
        return curves(theta_P[:, None])[0][:, 0] - y_N

    return least_squares(residual, START, bounds=(lower, np.inf), xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=5000)


@pytest.mark.parametrize("lower", [(-np.inf, -np.inf, -np.inf), (0.0, 0.1, 0.0)])
def test_least_squares_of_many_sets_are_those_of_scipy_one_by_one(lower: tuple[float, ...]) -> None:
    y_NB = drawn(60)

    def objective(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
        fit_NB, J_PNB = curves(theta_PB)
        return squares(fit_NB - y_NB[:, sets], J_PNB)

    found = minimise(objective, np.tile(START[:, None], 60), lower, np.inf, StoppingRule(step=1e-9), at_once=25)
    assert found.converged_B.all()
    for at in range(60):
        one = alone(y_NB[:, at], lower)
        assert found.value_B[at] <= one.cost * (1 + 1e-9)
        assert found.theta_PB[:, at] == pytest.approx(one.x, rel=1e-4, abs=1e-5)


def test_a_valley_of_rosenbrock_is_followed_to_its_end_and_to_a_bound() -> None:
    """Second derivatives that are not positive definite on the way, and a bound across the valley."""

    def objective(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
        x, y = theta_PB
        value_B = (1 - x) ** 2 + 100 * (y - x**2) ** 2
        slope_PB = np.stack([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)])
        curve_PPB = np.array([[2 - 400 * (y - 3 * x**2), -400 * x], [-400 * x, 200 + 0 * x]])
        scale_PPB = np.array([[2 + 800 * x**2, 0 * x], [0 * x, 200 + 0 * x]])
        return LocalQuadratic(value_B, slope_PB, curve_PPB, scale_PPB)

    start_PB = np.array([[-1.2, 3.0], [1.0, -2.0]])
    free = minimise(objective, start_PB)
    assert free.theta_PB == pytest.approx(np.ones((2, 2)), abs=1e-9)
    bounded = minimise(objective, start_PB, -np.inf, [0.5, np.inf])
    assert bounded.converged_B.all()
    assert bounded.theta_PB == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.25]]), abs=1e-9)


def test_what_falls_for_ever_has_not_converged() -> None:
    """Newton's steps down exp(-x) are of length 1."""

    def objective(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
        value_B = np.exp(-theta_PB[0])
        return LocalQuadratic(value_B, -value_B[None], value_B[None, None], value_B[None, None])

    found = minimise(objective, np.zeros((1, 1)), end=StoppingRule(most_steps=50))
    assert not found.converged_B[0]
