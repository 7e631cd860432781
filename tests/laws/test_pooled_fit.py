"""One exponent for several families: against plain regressions with dummies, two-way tables, and drawn families."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import f as f_distribution
from scipy.stats import linregress
from scipy.stats import t as student_t

from rbpx.laws.families.pooled import fit_pooled
from rbpx.laws.names import Method
from rbpx.laws.power.law import fit_power_law
from rbpx.status import Status

S = np.logspace(7, 9.5, 5)
CONSTANTS = (5.0, 6.0, 7.0, 9.0)


def families(
    rng: np.random.Generator, n: int, S: np.ndarray = S, rho: float = 0.0, scatter: float = 0.01, E: float = 0.0
) -> list[np.ndarray]:
    """Families that fall by alpha = .1, whose residuals at one size correlate by rho."""
    common = rng.normal(size=len(S))
    return [
        (E + C * S**-0.1) * np.exp(scatter * (rho**0.5 * common + (1 - rho) ** 0.5 * rng.normal(size=len(S))))
        for C in CONSTANTS[:n]
    ]


def pooled(values: list[np.ndarray], method: Method = Method.ols, S: np.ndarray = S, **more: Any) -> dict[str, Any]:
    return fit_pooled([S] * len(values), values, method=method, **more)


def numbers(*values: float | None) -> tuple[float, ...]:
    known = tuple(value for value in values if value is not None)
    assert len(known) == len(values)
    return known


# ------------------------------------------------------------------------------------------------ exponent, interval


def test_the_exponent_is_the_slope_of_a_regression_with_a_constant_for_each_family() -> None:
    """Sizes that only some of the families have, by least squares with dummies."""
    rng = np.random.default_rng(1)
    sizes = [S, S[:4], np.array([3e7, 2e8, 5e9])]
    values = [np.exp(2 + f - 0.1 * np.log(s) + 0.01 * rng.normal(size=len(s))) for f, s in enumerate(sizes)]
    family = np.repeat([0, 1, 2], [5, 4, 3])
    J = np.column_stack([*(family == f for f in range(3)), np.log(np.concatenate(sizes))])
    theta = np.linalg.lstsq(J, np.log(np.concatenate(values)), rcond=None)[0]
    found = fit_pooled(sizes, values)
    assert found["alpha"] == pytest.approx(-theta[3], rel=1e-9)
    assert [math.log(C) for C in numbers(*found["C"])] == pytest.approx(theta[:3].tolist(), rel=1e-9)


def test_with_the_same_sizes_the_interval_is_that_of_the_line_through_the_means() -> None:
    values = families(np.random.default_rng(2), 3, rho=0.5)
    line = linregress(np.log(S), np.log(values).mean(axis=0))
    half = student_t.ppf(0.975, len(S) - 2) * line.stderr
    found = pooled(values)
    assert found["alpha_dof"] == pytest.approx(3)
    assert found["alpha_stderr"] == pytest.approx(line.stderr, rel=1e-9)
    ends = numbers(found["alpha_lo"], found["alpha_hi"])
    assert ends == pytest.approx((-line.slope - half, -line.slope + half), rel=1e-9)


def test_a_family_that_stands_there_twice_counts_once() -> None:
    (values,) = families(np.random.default_rng(3), 1)
    once, twice = fit_power_law(S, values), pooled([values, 1.3 * values])
    assert (twice["alpha"], twice["alpha_lo"], twice["alpha_hi"]) == pytest.approx(
        (once.alpha.value, once.alpha.lo, once.alpha.hi)
    )
    assert (twice["mean_correlation"], twice["effective_families"]) == pytest.approx((1, 1))
    assert twice["replicates"] is None  # a copy is no second training
    assert "twice" in twice["verdict"]


def test_families_without_a_common_size_count_as_independent() -> None:
    rng = np.random.default_rng(4)
    sizes = [S, 1.7 * S]
    values = [5 * s**-0.1 * np.exp(0.01 * rng.normal(size=5)) for s in sizes]
    x = np.concatenate([np.log(s) - np.log(s).mean() for s in sizes])
    y = np.concatenate([np.log(v) - np.log(v).mean() for v in values])
    left = y - x * (x @ y) / (x @ x)
    found = fit_pooled(sizes, values)
    assert found["alpha_dof"] == pytest.approx(10 - 3)
    assert found["alpha_stderr"] == pytest.approx(math.sqrt(left @ left / 7 / (x @ x)), rel=1e-9)
    assert (found["mean_correlation"], found["effective_families"], found["replicates"]) == (None, None, None)


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_the_interval_holds_the_truth_however_residuals_go_together(rho: float) -> None:
    """120 draws of four families with four sizes; an interval that counts 16 points as 16 holds it less often."""
    rng, held, naive = np.random.default_rng(5), 0, 0
    for _ in range(120):
        values = families(rng, 4, S[:4], rho)
        found = pooled(values, S=S[:4])
        lo, hi, alpha, sd = numbers(found["alpha_lo"], found["alpha_hi"], found["alpha"], found["residual_sd"])
        held += lo <= 0.1 <= hi
        x = np.log(S[:4]) - np.log(S[:4]).mean()
        naive += abs(alpha - 0.1) <= student_t.ppf(0.975, 11) * sd / math.sqrt(4 * x @ x)
    assert 0.90 <= held / 120 <= 0.99
    assert (naive < 0.8 * 120) == (rho > 0)


def test_noise_of_the_documents_that_all_share_widens_the_interval() -> None:
    """Exact laws, replicates that tilt all of them alike: the interval is that of the tilt."""
    values, rng = [C * S**-0.1 for C in (5.0, 6.0)], np.random.default_rng(7)
    tilt_B = 0.003 * rng.normal(size=(4000, 1))
    drawn = [y * np.exp(tilt_B * np.log(S)) for y in values]
    found = pooled(values, y_replicates=drawn)
    lo, hi = numbers(found["alpha_lo"], found["alpha_hi"])
    assert (hi - lo) / 2 == pytest.approx(1.96 * 0.003, rel=0.05)
    alone = pooled(values, y_replicates=[drawn[0], None])
    assert numbers(alone["alpha_lo"], alone["alpha_hi"]) == pytest.approx((0.1, 0.1))


# -------------------------------------------------------------------------------------------- misfit, equal exponents


def test_lack_of_fit_is_what_sizes_have_in_common_against_what_trainings_differ_by() -> None:
    """The two-way table, by loops: line, constant and exponent of each family, then a mean for each size."""
    values = families(np.random.default_rng(8), 3, rho=0.8)
    ln_y, x = np.log(values), np.log(S) - np.log(S).mean()
    left = [y - y.mean() - x * (x @ y) / (x @ x) for y in ln_y]
    means = np.mean(left, axis=0)
    pure = sum((r[i] - means[i]) ** 2 for r in left for i in range(5))
    common = 3 * sum(means**2)
    F = (common / 3) / (pure / 6)
    test = pooled(values)["replicates"]
    assert test is not None
    assert (test["dof"], test["dof_rest"]) == (3, 6)
    assert (test["F"], test["p"]) == pytest.approx((F, f_distribution.sf(F, 3, 6)), rel=1e-9)
    assert (test["sd_rest"], test["sd_about"]) == pytest.approx((math.sqrt(pure / 6), math.sqrt((common + pure) / 9)))


def test_misfit_is_not_called_scatter_nor_scatter_misfit() -> None:
    wave = np.exp(0.005 * np.array([1, -1, -1.5, 0.5, 1]))
    rng = np.random.default_rng(9)
    reruns = [C * S**-0.1 * wave * np.exp(0.0002 * rng.normal(size=5)) for C in (5.0, 5.1)]
    misfit, scatter = pooled(reruns), pooled(families(rng, 2))
    assert (misfit["status"], misfit["reasons"]) == (Status.bends, ("misfit",))
    assert misfit["verdict"].startswith("misfit, not scatter: trainings of one size differ by 0.000")
    assert numbers(misfit["mean_correlation"])[0] > 0.98
    assert (scatter["status"], scatter["reasons"]) == (Status.ok, ())
    assert scatter["verdict"].startswith("scatter: ")


def test_without_replicates_the_common_curvature_says_it() -> None:
    values = [(0.5 + 5 * s**-0.1) for s in (S, 1.3 * S)]
    found = fit_pooled([S, 1.3 * S], values)
    assert found["reasons"] == ("curvature",)
    assert found["verdict"].endswith("no size was trained twice")
    assert numbers(found["curvature"]["lo"])[0] > 0


def test_equal_exponents_are_tested_within_sizes() -> None:
    """F of the families' slopes against what is left within sizes; a common wave of any height does not matter."""
    values = families(np.random.default_rng(10), 2, rho=0.0)
    difference = linregress(np.log(S), np.log(values[0] / values[1]))
    for wave in (0.0, 0.3):
        common = np.exp(wave * np.array([1, -1, -1.5, 0.5, 1]))
        test = pooled([y * common for y in values])["exponents"]
        assert test is not None
        assert (test["dof"], test["dof_rest"]) == (1, 3)
        assert test["F"] == pytest.approx((difference.slope / difference.stderr) ** 2, rel=1e-8)
        assert test["p"] == pytest.approx(difference.pvalue, rel=1e-8)


def test_different_exponents_are_said() -> None:
    rng = np.random.default_rng(11)
    values = [5 * S**-a * np.exp(0.001 * rng.normal(size=5)) for a in (0.09, 0.11)]
    found = pooled(values)
    assert found["status"] is Status.bends
    assert found["reasons"] == ("exponents differ",)


def test_correlations_are_those_of_residuals_about_own_lines_at_common_sizes() -> None:
    values = families(np.random.default_rng(12), 2, rho=0.5)
    x = np.log(S)
    lines = [linregress(x, np.log(y)) for y in values]
    r, s = (np.log(y) - line.intercept - line.slope * x for y, line in zip(values, lines, strict=True))
    rho = float(np.corrcoef(r, s)[0, 1])
    found = pooled(values)
    assert found["correlation"][0][1] == pytest.approx(rho)
    assert found["effective_families"] == pytest.approx(2 / (1 + max(rho, 0)))
    assert fit_pooled([S, S[:3]], [values[0], values[1][:3]])["mean_correlation"] is None


# ------------------------------------------------------------------------------------------------------- with offset


def test_a_shared_offset_is_found_exactly() -> None:
    values = [0.4 + C * S**-0.15 for C in (5.0, 7.0)]
    found = pooled(values, Method.offset)
    assert numbers(found["alpha"], found["E"], *found["C"]) == pytest.approx((0.15, 0.4, 5.0, 7.0), rel=1e-6)
    assert found["status"] is Status.ok


def test_intervals_of_an_offset_follow_the_profile_by_brute_force() -> None:
    """The sum of squares is the limit at each end, where scipy searches the other parameters."""
    values = families(np.random.default_rng(13), 2, rho=0.0, scatter=0.002, E=0.5)
    found, ln_y, x = pooled(values, Method.offset), np.log(values), np.log(S) - np.log(S).mean()

    def squares(kept: str, value: float) -> float:
        def residual(theta: np.ndarray) -> np.ndarray:
            alpha, E = (value, theta[0]) if kept == "alpha" else (theta[0], value)
            return np.concatenate([np.log(E + np.exp(theta[1 + f] - alpha * x)) - ln_y[f] for f in range(2)])

        start = [found["E"] if kept == "alpha" else found["alpha"]]
        start += [*np.log(np.exp(ln_y.mean(axis=1)) - found["E"])]
        lower = [0.0 if kept == "alpha" else -np.inf, -np.inf, -np.inf]
        return 2 * float(least_squares(residual, start, bounds=(lower, np.inf), xtol=1e-14, ftol=1e-14).cost)

    for kept, ends in (("alpha", (found["alpha_lo"], found["alpha_hi"])), ("E", (found["E_lo"], found["E_hi"]))):
        limits = [squares(kept, end) for end in numbers(*ends)]
        if kept == "E" and ends[0] == 0:
            assert limits[0] <= limits[1]
        else:
            assert limits[0] == pytest.approx(limits[1], rel=1e-3)
        best = sum(r**2 for family in found["residuals"] for r in family)
        assert all(a > best for a in limits)


def test_where_no_offset_is_called_for_it_is_0_and_said() -> None:
    falling = [5 * S**-0.1 * np.exp(-0.001 * (np.log(S) - np.log(S).mean()) ** 2), 6 * S**-0.1]
    found = pooled(falling, Method.offset)
    assert (found["E"], found["E_lo"], found["status"]) == (0.0, 0.0, Status.at_bound)
    assert found["alpha"] == pytest.approx(pooled(falling)["alpha"])


# ------------------------------------------------------------------------------------------------------ no numbers


def test_what_cannot_be_fitted_is_a_status() -> None:
    assert fit_pooled([S[:3]] * 2, [5 * S[:3] ** -0.1] * 2, method=Method.offset)["status"] is Status.too_few_sizes
    assert pooled([np.ones(5), np.ones(5)])["status"] is Status.no_variation


def test_sizes_stay_in_the_order_that_they_were_given_in() -> None:
    values = families(np.random.default_rng(14), 2)
    forwards, backwards = pooled(values), pooled([y[::-1] for y in values], S=S[::-1])
    assert backwards["alpha_lo"] == pytest.approx(forwards["alpha_lo"])
    for one, other in zip(forwards["residuals"], backwards["residuals"], strict=True):
        assert one == pytest.approx(other[::-1])
    assert all(a != b for a, b in pairwise(forwards["residuals"][0]))
