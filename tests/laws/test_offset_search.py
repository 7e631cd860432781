"""The search for the offsets of many sets of points at once, against scipy on each of them."""

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize_scalar

from rbpx.laws.families.series import fit_series, stack
from rbpx.laws.in_k import fit_k_law
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Method
from rbpx.laws.power.fixed_parameters import fit_law_with_priors
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.power.offset import search_offsets
from rbpx.laws.priors import Prior
from rbpx.laws.surface.decision import irreducible
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs

RNG = np.random.default_rng(0)
X = np.linspace(-3.4, 3.4, 7)


def residuals(ln_y_BN: np.ndarray, theta_BP: np.ndarray) -> np.ndarray:
    """Ln y less that of the law E + C exp(-alpha x)."""
    with np.errstate(over="ignore"):  # at exponents far from any optimum
        return np.asarray(ln_y_BN - np.log(np.exp(theta_BP[:, :1] - theta_BP[:, 1:2] * X) + theta_BP[:, 2:]))


def laws(n_sets: int, scatter: float) -> np.ndarray:
    """Laws of all kinds: nearly all of y is offset in some, hardly any in others."""
    ln_C, ln_E, alpha = (RNG.uniform(*ends, (n_sets, 1)) for ends in ((-1, 1), (-5, 1), (0.05, 0.6)))
    return np.asarray(np.log(np.exp(ln_C - alpha * X) + np.exp(ln_E)) + scatter * RNG.normal(size=(n_sets, len(X))))


def starts(ln_y_BN: np.ndarray) -> np.ndarray:
    """The line through ln(y - E), E a third of the smallest y."""
    E_B = np.exp(ln_y_BN.min(axis=1)) / 3
    rest_BN = np.log(np.exp(ln_y_BN) - E_B[:, None])
    return np.column_stack([rest_BN.mean(axis=1), -(rest_BN @ X) / (X @ X), E_B])


def squares(ln_y_BN: np.ndarray, theta_BP: np.ndarray) -> np.ndarray:
    return np.asarray((residuals(ln_y_BN, theta_BP) ** 2).sum(axis=1))


@pytest.mark.parametrize("scatter", [0.0, 0.003, 0.03])
def test_no_law_has_fewer_squares_than_the_one_that_is_found(scatter: float) -> None:
    ln_y_BN = laws(40, scatter)
    theta_BP = search_offsets(X, ln_y_BN, starts(ln_y_BN))
    assert (theta_BP[:, 2] >= 0).all()
    for ln_y_N, theta_P, of_set in zip(ln_y_BN, theta_BP, squares(ln_y_BN, theta_BP), strict=True):

        def residual(at: np.ndarray, ln_y_N: np.ndarray = ln_y_N) -> np.ndarray:
            return residuals(ln_y_N, at[None])[0]

        bounds, tight = ([-np.inf, -np.inf, 0.0], [np.inf] * 3), {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
        best = least_squares(residual, theta_P + 0.01, bounds=bounds, x_scale="jac", **tight)
        assert of_set <= 2 * best.cost * (1 + 1e-9) + 1e-24


def test_exact_laws_come_back_and_every_search_ends() -> None:
    truth_BP = np.column_stack([RNG.uniform(-1, 1, 500), RNG.uniform(0.1, 0.6, 500), np.exp(RNG.uniform(-4, 1, 500))])
    ln_y_BN = -residuals(np.zeros((500, 7)), truth_BP)
    np.testing.assert_allclose(search_offsets(X, ln_y_BN, starts(ln_y_BN)), truth_BP, rtol=1e-7)


def test_sets_are_the_same_among_many_as_alone() -> None:
    ln_y_BN = laws(20_000, 0.01)
    theta_BP = search_offsets(X, ln_y_BN, starts(ln_y_BN))
    assert np.isfinite(theta_BP).all(axis=1).mean() > 0.999
    some = RNG.choice(20_000, 30, replace=False)
    for ln_y_N, theta_P in zip(ln_y_BN[some], theta_BP[some], strict=True):
        np.testing.assert_allclose(search_offsets(X, ln_y_N[None], starts(ln_y_N[None]))[0], theta_P, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5, 2.0])
def test_a_held_exponent_has_the_best_ratio_of_offset_to_power_law(alpha: float) -> None:
    ln_y_BN = laws(20, 0.01)
    start_BP = starts(ln_y_BN)
    start_BP[:, 1] = alpha
    theta_BP = search_offsets(X, ln_y_BN, start_BP, holds_alpha=True)
    assert (theta_BP[:, 1] == alpha).all()
    for ln_y_N, of_set in zip(ln_y_BN, squares(ln_y_BN, theta_BP), strict=True):

        def of_share(share: float, ln_y_N: np.ndarray = ln_y_N) -> float:
            return float(np.var(ln_y_N - np.log((1 - share) * np.exp(-alpha * X) + share))) * len(X)

        best = minimize_scalar(of_share, bounds=(0, 1), options={"xatol": 1e-12})
        assert of_set <= min(best.fun, of_share(0.0), of_share(1.0)) * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [-0.01, -0.5, -4.0])
def test_an_exponent_of_the_wrong_sign_leaves_a_constant(alpha: float) -> None:
    ln_y_N = np.log(1.5 + np.exp(-0.4 * X))
    theta_P = search_offsets(X, ln_y_N[None], np.array([[0.0, alpha, np.inf]]), holds_alpha=True)[0]
    assert np.isfinite(theta_P).all()
    assert squares(ln_y_N, theta_P[None])[0] == pytest.approx(np.var(ln_y_N) * 7, rel=1e-9)
    assert theta_P[2] == pytest.approx(np.exp(ln_y_N.mean()), rel=1e-9)


def test_every_search_along_a_nearly_constant_law_ends() -> None:
    """Where nearly all of y is its offset, what rounding leaves of the squares is that of the law's own logarithm."""
    about_BN = 0.01 * RNG.normal(size=(1000, 1)) + 0.0025 * RNG.normal(size=(1000, 7))
    ln_y_BN = np.log(5.5 + 0.25 * np.exp(-0.19 * X)) + about_BN
    assert np.isfinite(search_offsets(X, ln_y_BN, starts(ln_y_BN))).all()


@pytest.mark.parametrize("holds_alpha", [False, True])
def test_a_set_without_a_law_and_starts_far_out_are_no_warning_and_disturb_no_other(holds_alpha: bool) -> None:
    """Warnings are errors here."""
    ln_y_BN = laws(5, 0.01)
    start_BP = starts(ln_y_BN)
    whole_BP = search_offsets(X, ln_y_BN, start_BP, holds_alpha)
    start_BP[0], start_BP[1], ln_y_BN[2, 2] = (-2000.0, 1e4, 1.0), (2000.0, -1e4, 0.0), np.nan
    theta_BP = search_offsets(X, ln_y_BN, start_BP, holds_alpha)
    assert np.isnan(theta_BP[2]).all()
    np.testing.assert_allclose(theta_BP[3:], whole_BP[3:], rtol=1e-9)


def _levelling(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and values of which nearly all is offset, so that scatter brings some below it."""
    S, rng = np.geomspace(1e7, 1e9, 7), np.random.default_rng(seed)
    return S, (2.4 + 0.2 * (S / S[0]) ** -0.3) * np.exp(rng.normal(0, 0.02, len(S)))


def test_an_offset_and_its_ends_lie_above_no_measured_value() -> None:
    beyond, bounds = 0, ([-np.inf, -np.inf, 0.0], np.inf)
    for seed in range(8):
        S, y = _levelling(seed)
        x, k = np.log(S / S[3]), [1, 3, 10, 30, 100, 300, 1000]
        start = [np.log(0.2), 0.3, 0.9 * y.min()]
        free = least_squares(
            lambda at, x=x, y=y: np.log(np.exp(at[0] - at[1] * x) + at[2]) - np.log(y), start, bounds=bounds
        )
        beyond += free.x[2] > y.min()
        found = [(fit_power_law(S, y, method=Method.offset).E, y), (fit_k_law(k, y / 3, None, Method.offset).E, y / 3)]
        found.append((fit_law_with_priors(S, y, None, Method.offset, {"E": Prior(2.35, 0.1)}).E, y))
        found.append((Estimate(float(fit_series(stack([S], [y]), n_E=1).theta_P[-1])), y))
        for E, measured in found:
            assert all(at is None or at <= measured.min() for at in (E.value, E.lo, E.hi))
            assert E.ends is None or E.ends[0] <= (E.value or 0.0) <= E.ends[1]
    assert beyond >= 2  # where nothing bounds it


def test_an_offset_at_the_least_value_is_the_best_of_those_below_it() -> None:
    S, y = next(
        (S, y) for S, y in map(_levelling, range(20)) if fit_power_law(S, y, method="offset").E.value == y.min()
    )
    law, x = fit_power_law(S, y, method=Method.offset), np.log(S) - np.log(S).mean()
    bounds, start = ([-np.inf, -np.inf, 0.0], [np.inf, np.inf, y.min()]), [np.log(0.2), 0.3, 0.9 * y.min()]
    best = least_squares(lambda at: np.log(np.exp(at[0] - at[1] * x) + at[2]) - np.log(y), start, bounds=bounds)
    assert np.square(law.residuals_ln).sum() <= 2 * best.cost * (1 + 1e-6)


def test_the_irreducible_loss_of_a_surface_and_its_ends_lie_above_no_measured_loss() -> None:
    refuted = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        S, D = (each.ravel() for each in np.meshgrid(np.geomspace(1e7, 1e9, 4), np.geomspace(1e9, 1e11, 4)))
        y = (2.4 + 20 / S**0.3 + 50 / D**0.3) * np.exp(rng.normal(0, 0.03, len(S)))
        runs = Runs.of(S, D, y)
        fits = [fit_surface(runs, form, n_replicates=40) for form in ("chinchilla", "kaplan")]
        free = fits[0].surface.constants()["E"][1:]
        refuted += np.quantile(free, 0.975) >= y.min()
        for E in (fits[0].constants["E"], irreducible(fits)):
            assert all(at is None or at <= y.min() for at in (E.value, E.lo, E.hi))
    assert refuted
