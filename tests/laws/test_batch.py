"""The batch solver of replicates and profiles, against lmfit on the same points."""

from typing import Any

import lmfit
import numpy as np
import pytest

from rbpx.laws.names import Method
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.power.offset import HUBER, NAMES, regress
from rbpx.laws.power.uncertainty import offset_ends, uncertainty

S = np.logspace(6, 9, 7)
TOLERANCES = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
X = np.log(S) - np.log(S).mean()
LN_Y = np.log(1.5 + 40 * S**-0.2) + np.random.default_rng(0).normal(0, 0.004, 7)
REPLICATES = LN_Y + np.random.default_rng(1).normal(0, 0.004, (25, 7))


def minimizer(ln_y_N: Any, start_P: Any, **fixed: float) -> lmfit.Minimizer:
    parameters = lmfit.Parameters()
    for name, value in zip(NAMES, start_P, strict=False):
        low = 0.0 if name == "E" else -np.inf
        parameters.add(name, value=fixed.get(name, value), min=low, vary=name not in fixed)

    def residual(at: lmfit.Parameters) -> Any:
        theta = at.valuesdict()
        return np.log(theta.get("E", 0.0) + np.exp(theta["ln_C_ref"] - theta["alpha"] * X)) - ln_y_N

    return lmfit.Minimizer(residual, parameters)


def by_lmfit(ln_y_N: Any, start_P: Any, scale: float | None = None, **fixed: float) -> Any:
    loss = {} if scale is None else {"loss": "huber", "f_scale": HUBER * scale}
    return minimizer(ln_y_N, start_P, **fixed).least_squares(x_scale="jac", **TOLERANCES, **loss)


@pytest.mark.parametrize("method", [Method.ols, Method.weighted, Method.offset, Method.robust])
def test_the_refits_of_resamples_are_those_of_lmfit(method: Method) -> None:
    sigma_N = np.linspace(0.5, 2, 7) if method is Method.weighted else None
    fit = regress(X, LN_Y, method, None if sigma_N is None else sigma_N**-2)
    replicates_BP = fit.refit(X, REPLICATES)
    for theta_P, ln_y_N in zip(replicates_BP, REPLICATES, strict=True):
        if sigma_N is None:
            expected = by_lmfit(ln_y_N, fit.theta_P, fit.scale).params.valuesdict()
        else:
            expected = lmfit.models.LinearModel().fit(ln_y_N, x=X, weights=1 / sigma_N).best_values
            expected = {"ln_C_ref": expected["intercept"], "alpha": -expected["slope"]}
        for value, name in zip(theta_P, NAMES, strict=False):
            assert value == pytest.approx(expected[name], rel=2e-6, abs=1e-9), name


def test_the_interval_of_the_exponent_of_an_offset_is_lmfits_conf_interval() -> None:
    regression = regress(X, LN_Y, Method.offset)
    about = uncertainty(regression, X)
    ends = offset_ends(X, LN_Y, regression.theta_P, about, np.eye(3)[[1, 0, 2]])[0].tolist()
    search = minimizer(LN_Y, regression.theta_P)
    table = lmfit.conf_interval(search, search.leastsq(), p_names=["alpha"], sigmas=[0.95])["alpha"]
    assert ends == pytest.approx((table[0][1], table[-1][1]), rel=1e-5)


@pytest.mark.parametrize(
    ("method", "given"),
    [
        (Method.ols, {}),
        (Method.robust, {}),
        (Method.offset, {}),
        (Method.offset, {"E": 1.5}),
        (Method.offset, {"C": 40.0}),
        (Method.ols, {"C": 20.0}),
    ],
    ids=str,
)
def test_the_report_is_lmfits_with_the_standard_error_of_the_law(method: Method, given: dict[str, float]) -> None:
    law = fit_power_law(S, np.exp(LN_Y), method=method, given=given)
    (line,) = [line for line in law.report().splitlines() if line.strip().startswith("alpha:")]
    assert float(line.split()[1]) == pytest.approx(law.alpha.value, rel=1e-6)
    assert float(line.split()[3]) == pytest.approx(law.alpha.stderr, rel=1e-3)


def test_a_fixed_exponent_does_not_vary_in_the_report() -> None:
    report = fit_power_law(S, np.exp(LN_Y), method=Method.offset, given={"alpha": 0.2}).report()
    assert "alpha:     0.2 (fixed)" in report


def test_a_law_without_numbers_has_no_report() -> None:
    with pytest.raises(ValueError, match="too_few_sizes"):
        fit_power_law(S[:2], np.exp(LN_Y[:2])).report()
