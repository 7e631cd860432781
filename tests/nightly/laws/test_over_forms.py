"""The prediction over forms, against a loop over its components in plain float64 and on drawn ladders."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq, least_squares
from scipy.stats import t as student_t

from rbpx.laws.forms.candidates import Shape
from rbpx.laws.predict.prediction import average_forms

Floats = NDArray[np.float64]

S = [1e6, 4e6, 2e7, 5e7, 3e8, 1e9]
Y = [4.1, 3.5, 3.02, 2.79, 2.33, 2.2]


def by_the_loop(S: list[float], y: list[float], S_new: float) -> tuple[list[float], dict[str, float]]:
    """The documented mixture, one component after the other, each fitted by scipy."""
    x, ln_y, x_new, n = np.log(S), np.log(y), math.log(S_new), len(S)
    forms: list[tuple[str, float, float, float, float, float]] = [("power", 0.35, 0.0, 0.0, 1.0, 1.0)]
    forms += [("offset", 0.35 / 21, share, 0.0, 1.0, 1.0) for share in np.linspace(0, 0.98, 22)[1:]]
    ratios = ((0.25, 1), (0.35, 2), (0.5, 4), (0.65, 4), (0.8, 4), (1.25, 4), (1.5, 3), (1.8, 2), (2.2, 1))
    forms += [
        ("bend", 0.15 / 3 * of_25 / 25, 0.0, float(at), ratio, 0.5)
        for at, (ratio, of_25) in itertools.product(np.quantile(x, (0.25, 0.5, 0.75)), ratios)
    ]
    slow = ((0.35, 1), (0.5, 2), (0.7, 2), (1.4, 3), (1.8, 3), (2.5, 2), (3.5, 1))
    knee, width = float(np.quantile(x, 0.75)), (x[-1] - x[0]) / 4
    forms += [("bend", 0.15 * of_14 / 14, 0.0, knee, ratio, width) for ratio, of_14 in slow]
    scatters = []  # prior, covariance, what a new model has in common with each, its variance
    for rho, weight in ((0, 0.7), (0.5, 0.2), (0.8, 0.1)):
        apart, to = np.abs(x[:, None] - x) / (math.log(10) / 2), np.abs(x_new - x) / (math.log(10) / 2)
        scatters.append((0.7 * weight, float(rho) ** apart, float(rho) ** to if rho else np.zeros(n), 1.0))
    for times in (4, 16):
        for before in (0.0, 1 / 3):
            far = np.array([0.0] * (n - 2) + [before, 1.0])
            scatters.append((0.2 / 4, np.eye(n) + times**2 * np.outer(far, far), np.zeros(n), 1.0))
    for grows in (10, 100):
        variance, of_new = (grows ** (2 * (at - x[0]) / (x[-1] - x[0])) for at in (x, x_new))
        scatters.append((0.1 / 2, np.diag(variance), np.zeros(n), float(of_new)))
    parts = []
    for (weight, R, to_new, of_new), (name, prior, share, at, ratio, width) in itertools.product(scatters, forms):

        def warped(x: Floats, at: float = at, ratio: float = ratio, width: float = width) -> Floats:
            return x + (ratio - 1) * width * np.log1p(np.exp((x - at) / width))

        E = share * min(y)
        u, u_new = warped(x), float(warped(np.array([x_new]))[0])
        middle = u.mean()
        half = np.linalg.cholesky(np.linalg.inv(R))

        def ln_law(theta: Floats, u: Floats, E: float = E, middle: float = middle) -> Floats:
            return np.log(E + np.exp(theta[0] - theta[1] * (u - middle)))

        def residual(theta: Floats, u: Floats = u, half: Floats = half, ln_law=ln_law) -> Floats:  # type: ignore[no-untyped-def]
            return half.T @ (ln_y - ln_law(theta, u))

        fit = least_squares(residual, [ln_y.mean(), 0.1], xtol=1e-15, ftol=1e-15, gtol=1e-15, x_scale="jac")

        def gradient(at: Floats, ln_law=ln_law, theta: Floats = fit.x) -> Floats:  # type: ignore[no-untyped-def]
            steps = 1e-6 * np.eye(2)
            return np.array([(ln_law(theta + s, at) - ln_law(theta - s, at)) / 2e-6 for s in steps]).T

        J, sse = gradient(u), 2 * fit.cost
        A = J.T @ np.linalg.inv(R) @ J
        carry = np.linalg.inv(R) @ to_new
        g = gradient(np.array([u_new]))[0] - J.T @ carry
        unit = of_new - to_new @ carry + g @ np.linalg.inv(A) @ g
        centre = float(ln_law(fit.x, np.array([u_new]))[0] + carry @ (ln_y - ln_law(fit.x, u)))
        ln_likelihood = -(n - 2) / 2 * math.log(sse) - math.log(np.linalg.det(R)) / 2
        ln_weight = math.log(prior * weight) + ln_likelihood - 0.25 * math.log(np.linalg.det(A))
        parts.append((name, centre, math.sqrt(sse / (n - 2) * unit), ln_weight))
    most = max(part[3] for part in parts)
    weights = np.array([math.exp(part[3] - most) for part in parts])
    weights /= weights.sum()

    def below(at: float) -> float:
        return sum(w * student_t.cdf((at - p[1]) / p[2], n - 2) for w, p in zip(weights, parts, strict=True))

    ends = [math.exp(brentq(lambda at, q=q: below(at) - q, -20, 20, xtol=1e-13)) for q in (0.5, 0.025, 0.975)]
    named = {name: float(sum(w for w, p in zip(weights, parts, strict=True) if p[0] == name)) for name in Shape}
    return ends, named


def test_the_mixture_is_that_of_its_components_fitted_one_by_one() -> None:
    expected, weights = by_the_loop(S, Y, 2e10)
    answers = average_forms(S, Y, [2e10])
    assert answers is not None
    assert [answers[0].y, answers[0].lo, answers[0].hi] == pytest.approx(expected, rel=2e-6)
    assert answers[0].weights == pytest.approx(weights, abs=2e-6)
