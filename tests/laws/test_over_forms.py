"""The prediction over forms, against a loop over its components in plain float64 and on drawn ladders."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq, least_squares

from benchmarks.prediction_coverage import Truth
from rbpx.laws.forms.candidates import LawForm
from rbpx.laws.prediction.prediction import average_forms
from tests.support.predictions import predict_batch
from tests.support.singly import below

Floats = NDArray[np.float64]

S = [1e6, 4e6, 2e7, 5e7, 3e8, 1e9]
Y = [4.1, 3.5, 3.02, 2.79, 2.33, 2.2]


def sought_offsets(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """E over the smallest y, and how much of the prior, even from 0 to 1, lies nearer to it than to the others."""

    def told(E: float) -> tuple[Floats, Floats]:
        """What the line through ln(y - E) leaves of ln y, and of how E moves ln of the law."""
        line, of_y = np.column_stack([np.ones(len(x)), x]), 1 - E / y
        power = np.exp(line @ np.linalg.lstsq(of_y[:, None] * line, of_y * np.log(y - E))[0])
        J = (power / (E + power))[:, None] * line
        return np.log(y / (E + power)), 1 / (E + power) - J @ np.linalg.lstsq(J, 1 / (E + power))[0]

    best = brentq(lambda E: np.dot(*told(E)), 0.3 * y.min(), 0.8 * y.min(), xtol=1e-14)
    left, by_E = told(best)
    sd = math.sqrt(left @ left / (len(x) - 3) / (by_E @ by_E))
    cauchy = stats.cauchy(best / y.min(), sd / y.min())
    below, within = cauchy.cdf(0), cauchy.cdf(1) - cauchy.cdf(0)
    at = sorted([(i + 0.5) / 8 for i in range(8)] + [cauchy.ppf(below + (i + 0.5) / 13 * within) for i in range(13)])
    ends = [0, *((a + b) / 2 for a, b in itertools.pairwise(at)), 1]
    return [(share, hi - lo) for share, lo, hi in zip(at, ends[:-1], ends[1:], strict=True)]


def by_the_loop(S: list[float], y: list[float], S_new: float) -> tuple[list[float], dict[str, float]]:
    """The documented mixture, one component after the other, each fitted by itself."""
    x, ln_y, x_new, n = np.log(S), np.log(y), math.log(S_new), len(S)
    forms: list[tuple[str, float, float, float, float, float]] = [("power", 0.35, 0.0, 0.0, 1.0, 1.0)]
    forms += [("offset", 0.35 * prior, share, 0.0, 1.0, 1.0) for share, prior in sought_offsets(x, np.array(y))]
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

        slope, level = np.polyfit(middle - u, np.log(np.array(y) - E), 1)
        if E == 0:  # a line
            line = half.T @ np.column_stack([np.ones(n), middle - u])
            best = np.linalg.lstsq(line, half.T @ ln_y)[0]
        else:

            def slopes(
                theta: Floats, u: Floats = u, half: Floats = half, E: float = E, middle: float = middle
            ) -> Floats:
                power = np.exp(theta[0] - theta[1] * (u - middle))
                return -half.T @ np.column_stack([power / (E + power), -power / (E + power) * (u - middle)])

            tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "x_scale": "jac"}
            best = least_squares(residual, [level, slope], slopes, **tight).x

        def gradient(at: Floats, ln_law=ln_law, theta: Floats = best) -> Floats:  # type: ignore[no-untyped-def]
            steps = 1e-6 * np.eye(2)
            return np.array([(ln_law(theta + s, at) - ln_law(theta - s, at)) / 2e-6 for s in steps]).T

        J, sse = gradient(u), float(np.sum(residual(best) ** 2))
        A = J.T @ np.linalg.inv(R) @ J
        carry = np.linalg.inv(R) @ to_new
        g = gradient(np.array([u_new]))[0] - J.T @ carry
        unit = of_new - to_new @ carry + g @ np.linalg.inv(A) @ g
        centre = float(ln_law(best, np.array([u_new]))[0] + carry @ (ln_y - ln_law(best, u)))
        ln_likelihood = -(n - 2) / 2 * math.log(sse) - math.log(np.linalg.det(R)) / 2
        ln_weight = math.log(prior * weight) + ln_likelihood - 0.25 * math.log(np.linalg.det(A))
        parts.append((name, centre, math.sqrt(sse / (n - 2) * unit), ln_weight))
    most = max(part[3] for part in parts)
    weights = np.array([math.exp(part[3] - most) for part in parts])
    weights /= weights.sum()

    centres, scales = (np.array(of) for of in zip(*(part[1:3] for part in parts), strict=True))

    def below(at: float) -> float:
        return float(weights @ stats.t.cdf((at - centres) / scales, n - 2))

    ends = [math.exp(brentq(lambda at, q=q: below(at) - q, -20, 20, xtol=1e-13)) for q in (0.5, 0.025, 0.975)]
    named = {name: float(sum(w for w, p in zip(weights, parts, strict=True) if p[0] == name)) for name in LawForm}
    return ends, named


def test_the_mixture_is_that_of_its_components_fitted_one_by_one() -> None:
    expected, weights = by_the_loop(S, Y, 2e10)
    answers = average_forms(S, Y, [2e10])
    assert [answers[0].y, answers[0].lo, answers[0].hi] == pytest.approx(expected, rel=2e-6)
    assert answers[0].weights == pytest.approx(weights, abs=2e-6)


def test_neither_the_order_of_sizes_nor_the_sign_matters() -> None:
    mixed = [3, 0, 5, 1, 4, 2]
    plain, shuffled = average_forms(S, Y, [2e10]), average_forms([S[i] for i in mixed], [Y[i] for i in mixed], [2e10])
    negative = average_forms(S, [-y for y in Y], [2e10])
    assert plain == shuffled
    assert [negative[0].y, negative[0].lo, negative[0].hi] == [-plain[0].y, -plain[0].hi, -plain[0].lo]


def test_points_on_a_power_law_give_it_back() -> None:
    answers = average_forms([1e5, 1e6, 1e7, 1e8], [4, 2, 1, 0.5], [1e9, 3e6])
    assert [answers[0].lo, answers[0].y, answers[0].hi] == pytest.approx([0.25] * 3, rel=1e-12)
    assert answers[0].weights[LawForm.power] == 1
    assert answers[1].y == pytest.approx(4 * 30 ** -math.log10(2), rel=1e-12)


def test_points_on_a_floor_are_predicted_at_the_floor() -> None:
    sizes = np.logspace(5, 8, 7)
    answers = average_forms(sizes, 1 + 3000 * sizes**-0.7 * (1 + 1e-4 * np.array([1, -1, 1, 1, -1, 1, -1])), [1e10])
    assert answers[0].lo < 1 + 3000 * 1e10**-0.7 < answers[0].hi
    assert answers[0].weights[LawForm.offset] > 0.9
    assert answers[0].hi - answers[0].lo < 0.1


def test_there_is_no_prediction_without_three_sizes_of_one_sign() -> None:
    assert average_forms([1e6, 1e7], [2, 1], [1e8]) is None
    assert average_forms([1e6, 1e7, 1e8], [2, 0, 1], [1e9]) is None
    assert average_forms([1e6, 1e7, 1e8], [2, -1, 1], [1e9]) is None
    assert average_forms([1e6, 1e7, 1e8], [2, math.nan, 1], [1e9]) is None


def test_three_sizes_that_fit_some_offset_exactly_have_an_interval_of_the_prior_scatter() -> None:
    (answer,) = average_forms([1e8, 3.16228e8, 1e9], [2.45531, 2.21442, 2.04312], [1e10])  # type: ignore[misc]
    assert answer.lo < 1.857 < answer.hi  # the truth
    assert math.log(answer.hi / answer.lo) > 2 * 4.30 * 0.01 / math.sqrt(2)  # t of two degrees of freedom


@pytest.mark.parametrize("sign", [1, -1])
def test_an_interval_that_no_float_can_hold_is_not_known(sign: int) -> None:
    (answer,) = average_forms([1e3, 1e4, 1e5], [sign * y for y in (0.05, 0.001, 20.0)], [1e100])  # type: ignore[misc]
    assert (answer.lo, answer.hi) == (None, None)
    assert math.isfinite(answer.y)


def test_a_size_that_was_measured_and_its_near_neighbours_can_be_predicted() -> None:
    close = [1e6, 1.01e6, 1.02e6, 1e8, 1e9]
    answers = average_forms(close, [4, 4.02, 3.99, 2, 1.5], [1.01e6, 1.015e6, 1e3])
    for answer in answers:
        assert 0 < answer.lo < answer.y < answer.hi < math.inf


def test_the_probability_below_agrees_with_the_ends_of_the_interval() -> None:
    x, ln_y = Truth(0.12, 5, 0.3, 0.01).draw(5, np.random.default_rng(1))
    sizes, y, new = np.exp(x[:-1]), np.exp(ln_y[:, :-1]), math.exp(x[-1])
    quantiles = predict_batch(sizes, y, new)
    for place, tail in enumerate((0.5, 0.025, 0.975)):
        assert below(sizes, y, new, quantiles[:, place]) == pytest.approx([tail] * 5, abs=1e-8)


def test_a_form_that_only_one_size_tells_of_has_no_weight() -> None:
    """Here a steep fall to a floor fits the three sizes, of which only the first is above the floor."""
    S, y = [3162278.0, 10e6, 31622777.0], [0.05923974146949807, 0.04031901090234391, 0.042149256208497715]
    (answer,) = average_forms(S, y, [1e9]) or ()
    assert 0 < answer.lo < answer.y < answer.hi < np.inf
    assert sum(answer.weights.values()) == pytest.approx(1.0)
    assert answer.within.keys() <= {LawForm.power, LawForm.offset}
