"""The batch solver of replicates and profiles, against lmfit on the same points."""

from typing import Any

import lmfit
import numpy as np
import pytest

from rbpx.laws.names import Method
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.power.offset import HUBER, NAMES, regress

S = np.logspace(6, 9, 7)
TOLERANCES = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
X = np.log(S) - np.log(S).mean()
LN_Y = np.log(1.5 + 40 * S**-0.2) + np.random.default_rng(0).normal(0, 0.004, 7)
REPLICATES = LN_Y + np.random.default_rng(1).normal(0, 0.004, (25, 7))


def by_lmfit(ln_y_N: Any, start_P: Any, scale: float | None) -> Any:
    parameters = lmfit.Parameters()
    for name, value in zip(NAMES, start_P, strict=False):
        parameters.add(name, value=value, min=0.0 if name == "E" else -np.inf)

    def residual(at: lmfit.Parameters) -> Any:
        theta = at.valuesdict()
        return np.log(theta.get("E", 0.0) + np.exp(theta["ln_C_ref"] - theta["alpha"] * X)) - ln_y_N

    loss = {} if scale is None else {"loss": "huber", "f_scale": HUBER * scale}
    found = lmfit.Minimizer(residual, parameters).least_squares(x_scale="jac", **TOLERANCES, **loss)
    return found.params.valuesdict()


@pytest.mark.parametrize("method", [Method.offset, Method.robust])
def test_the_refits_of_resamples_are_those_of_lmfit(method: Method) -> None:
    fit = regress(X, LN_Y, method)
    for theta_P, ln_y_N in zip(fit.refit(X, REPLICATES), REPLICATES, strict=True):
        expected = by_lmfit(ln_y_N, fit.theta_P, fit.scale)
        for value, name in zip(theta_P, NAMES, strict=False):
            assert value == pytest.approx(expected[name], rel=2e-6, abs=1e-9), name


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
