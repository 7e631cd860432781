"""The power law in size, against published slopes, closed forms and simulated documents with a known exponent."""

import math

import numpy as np
import pytest
from scipy.stats import linregress
from scipy.stats import t as student_t

from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.status import Status
from tests.support.pythia import PYTHIA_CE, PYTHIA_RBP_1, PYTHIA_S, neg_ln

# GPT-2 on Wikipedia: the RBP paper's released metrics (arXiv 2510.20387), six decimals, 317,414 tokens a model.
GPT2_S = [85056000, 302311424, 708390400, 1475561600]
GPT2_CE = [3.416736, 3.091347, 2.965533, 2.897115]
GPT2_RBP = {
    1: [0.416065, 0.448043, 0.463275, 0.473136],
    10: [0.695959, 0.731908, 0.746779, 0.757257],
    100: [0.860293, 0.884602, 0.89377, 0.900105],
    10000: [0.996182, 0.995971, 0.995593, 0.995032],
}


def numbers(fit: PowerLaw) -> list[float | None]:
    names = ("C", "alpha", "alpha_stderr", "alpha_lo", "alpha_hi", "r2", "aic", "bic", "backtest_error")
    return [fit.columns()[name] for name in names]


@pytest.mark.parametrize(
    ("S", "y", "r2", "slope"),
    [
        (GPT2_S, GPT2_CE, 0.965, -0.058),
        (GPT2_S, neg_ln(GPT2_RBP[1]), 0.983, -0.056),
        (GPT2_S, neg_ln(GPT2_RBP[10]), 0.982, -0.093),
        (GPT2_S, neg_ln(GPT2_RBP[100]), 0.979, -0.126),
        (GPT2_S, neg_ln(GPT2_RBP[10000]), 0.915, 0.090),
        (PYTHIA_S, PYTHIA_CE, 0.993, -0.087),
        (PYTHIA_S, neg_ln(PYTHIA_RBP_1), 0.992, -0.079),
    ],
    ids=["gpt2 CE", "gpt2 k=1", "gpt2 k=10", "gpt2 k=100", "gpt2 k=10000", "pythia CE", "pythia k=1"],
)
def test_the_published_slopes_and_r2_come_out_to_three_digits(
    S: list[int], y: list[float], r2: float, slope: float
) -> None:
    fit = fit_power_law(S, y)
    assert fit.status is None
    assert (round(fit.r2.value, 3), round(-fit.alpha.value, 3)) == (r2, slope)


def test_every_number_equals_its_closed_form() -> None:
    x, ln_y, n = np.log(PYTHIA_S), np.log(PYTHIA_CE), len(PYTHIA_S)
    plain = linregress(x, ln_y)
    rest = linregress(x[:-1], ln_y[:-1])
    rss = float(np.sum((ln_y - plain.intercept - plain.slope * x) ** 2))
    half = student_t.ppf(0.975, n - 2) * plain.stderr
    predicted = math.exp(rest.intercept + rest.slope * x[-1])
    fit = fit_power_law(PYTHIA_S, PYTHIA_CE)
    expected = [
        math.exp(plain.intercept),
        -plain.slope,
        plain.stderr,
        -plain.slope - half,
        -plain.slope + half,
        plain.rvalue**2,
        n * math.log(rss / n) + 2 * 2,
        n * math.log(rss / n) + 2 * math.log(n),
        predicted / PYTHIA_CE[-1] - 1,
    ]
    assert numbers(fit) == pytest.approx(expected, rel=1e-9)
    assert fit.interval == "models"


def test_backtest_needs_four_sizes() -> None:
    fit = fit_power_law(GPT2_S[:3], GPT2_CE[:3])
    assert fit.status is None
    assert fit.backtest_error is None


def test_a_flat_quantity_is_no_law() -> None:
    fit = fit_power_law(GPT2_S, [0.5] * 4)
    assert fit.status is Status.no_trend
    assert numbers(fit) == [0.5, 0.0, *[None] * 7]
    assert fit.predict(1e12).y == pytest.approx(0.5, rel=1e-12)


def test_a_negative_term_is_fitted_by_its_size_and_remembers_its_sign() -> None:
    S = np.array([1e6, 1e7, 1e8, 1e9])
    term = -2.0 * S**0.1
    replicates = term * np.random.default_rng(0).uniform(0.9, 1.1, size=(100, 4))
    replicates[7, 2] = 0.5
    fit = fit_power_law(S, term, replicates, signed=True)
    assert (fit.C.value, fit.alpha.value) == pytest.approx((2.0, -0.1), rel=1e-11)
    assert fit.sign == -1
    assert fit.y == term.tolist()
    assert fit.n_replicates_left_out == 1


@pytest.mark.parametrize(
    ("y", "signed", "status"),
    [
        ([1.0, 0.9], False, Status.too_few_sizes),
        *(([1.0, 0.9, bad, 0.7], False, Status.not_positive) for bad in (0.0, -1.0, math.nan, math.inf)),
        ([-1.0, -0.9, math.nan, -0.7], True, Status.not_positive),
        ([-0.1, 0.1, 0.2, 0.3], True, Status.sign_change),
        ([0.2, 0.1, 0.0, 0.1], True, Status.sign_change),
        ([0.0, 0.0, 0.0, 0.0], True, Status.sign_change),
    ],
)
def test_values_without_a_law_have_a_status_and_no_numbers(y: list[float], signed: bool, status: Status) -> None:
    fit = fit_power_law(GPT2_S[: len(y)], y, np.ones((50, len(y))), signed=signed)
    assert (fit.status, fit.n_points) == (status, len(y))
    assert numbers(fit) == [None] * 9
    assert fit.record()["y"] == [value if math.isfinite(value) else None for value in y]
