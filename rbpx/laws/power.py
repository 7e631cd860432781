"""Power law in model size: sizes and one positive quantity in, constant, exponent, interval and status out.

The same law serves -ln RBP_k and cross-entropy. Shapes: N is the number of sizes, B of resamples of the documents.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.bootstrap import MIN_RESAMPLES
from rbpx.laws.names import Method
from rbpx.laws.profile import offset_ends
from rbpx.laws.r_squared import r2_interval
from rbpx.laws.regression import EQUATIONS, NAMES, TOLERANCES, Regression, refit, regress
from rbpx.laws.uncertainty import Uncertainty, uncertainty
from rbpx.status import Status

__all__ = [
    "SOURCE",
    "PowerLawFit",
    "exp_or_none",
    "fit_power_law",
    "fit_signed_power_law",
    "reproduce",
]

SOURCE: Final = "RBP paper, arXiv 2510.20387, eq. 5"

Floats = NDArray[np.float64]
Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class PowerLawFit:
    """A fitted power law y = C * S^(-alpha), or y = E + C * S^(-alpha); None where a number is unknown.

    C is at S = 1 and has the unit of y; alpha > 0 when bigger is better. alpha_stderr is that of the scatter of the
    sizes about the law (n - p degrees of freedom). alpha_lo and alpha_hi are a 95 % interval that includes document
    sampling and the scatter of the models. r2, aic and bic are of the regression of ln y (weighted where the method
    is; the criteria of `ols`, `weighted` and `offset` may be compared, `robust` has none). backtest_error is
    (predicted - measured) / measured of the largest size, predicted from the others.

    params holds what reproduces the fit (`reproduce`): method, S, y, sign, S_ref, sigma_ln, and what came of it:
    ln_C_ref, E, residuals_ln, starts, tolerances, gradient; and the uncertainties: interval ("documents and models",
    "models" or None), C_lo, C_hi, E_lo, E_hi, r2_lo, r2_hi, alpha_text_lo, alpha_text_hi, alpha_text_sd,
    alpha_text_bias, alpha_models_sd, limited_by, uncertainty, n_resamples, n_resamples_left_out.
    """

    C: float | None
    alpha: float | None
    alpha_stderr: float | None
    alpha_lo: float | None
    alpha_hi: float | None
    r2: float | None
    aic: float | None
    bic: float | None
    n_points: int
    backtest_error: float | None
    status: Status
    params: dict[str, Any]


def fit_power_law(
    S: ArrayLike,
    y: ArrayLike,
    y_resampled: ArrayLike | None = None,
    method: Method = Method.ols,
    backtests: bool = True,
) -> PowerLawFit:
    """Fit y = C * S^(-alpha) by least squares of ln y on ln S, as the paper does, or by another method.

    The fit runs at a reference size, ln y = ln_C_ref - alpha * ln(S / S_ref) with S_ref the geometric mean of the
    sizes, where constant and exponent are uncorrelated. `offset` adds E >= 0, an irreducible part of y; `weighted`
    takes the variances of ln y over the resamples; `robust` uses Huber's loss, for outlying sizes.

    Args:
        S: non-embedding parameters of each model, shape [N], positive and all different, in any order.
        y: -ln RBP_k, or cross-entropy in nats, or any positive quantity, shape [N].
        y_resampled: the same quantity under B resamples of the documents, the same documents for every size, shape
            [B, N]. Rows with a value that is not positive and finite are left out and counted. There is no interval
            if fewer than 20 rows are left.
        method: how.
        backtests: whether it is fitted once more, without the largest size; backtest_error is None else.

    Returns:
        The fit. Its status is too_few_sizes below 3 sizes (4 for `offset`), not_positive if a y is not positive and
        finite, no_variation if all y are equal (alpha is 0 then, and nothing else is known), no_variances if
        `weighted` has no resamples to weigh by, not_converged if the regression fails its own check; with numbers,
        ok, or at_bound where E is 0.

    Raises:
        ValueError: if shapes disagree, or sizes are not positive and different.

    Source:
        RBP paper (arXiv 2510.20387), eq. 5; table 2 gives slope = -alpha and R2 of the regression `ols`.
    """
    return _fit(*_checked(S, y, y_resampled), Method(method), sign=1, backtests=backtests)


def fit_signed_power_law(
    S: ArrayLike, term: ArrayLike, term_resampled: ArrayLike | None = None, method: Method = Method.ols
) -> PowerLawFit:
    """Fit term = sign * C * S^(-alpha) to a term that may be negative, by regression of ln|term| on ln S.

    Args:
        S: non-embedding parameters, shape [N].
        term: the term at each size, nats, shape [N].
        term_resampled: the term under B resamples of the documents, shape [B, N]; rows in which a value has another
            sign are left out and counted.
        method: how.

    Returns:
        The fit of |term| with params["sign"] = 1 or -1. If the terms have both signs, or one is 0, the status is
        sign_change and there are no numbers.

    Raises:
        ValueError: as in `fit_power_law`.

    Source:
        arXiv 2510.04067 (power law of each term of the error-entropy decomposition).
    """
    S_N, term_N, term_BN = _checked(S, term, term_resampled)
    signs = np.sign(term_N)
    if len(S_N) >= 3 and np.all(np.isfinite(term_N)) and (np.any(signs != signs[0]) or signs[0] == 0):
        return _without_numbers(S_N, term_N, Status.sign_change, Method(method), sign=None)
    sign = -1 if len(signs) and signs[0] < 0 else 1
    fit = _fit(S_N, sign * term_N, None if term_BN is None else sign * term_BN, Method(method), sign=sign)
    return replace(fit, params={**fit.params, "y": _finite_or_none(term_N)})


def reproduce(params: Mapping[str, Any]) -> dict[str, float | None]:
    """Fit again from what a fit carries: C at S = 1, alpha and E, to be held against those of the fit.

    Args:
        params: of a fit that has numbers.
    """
    S_N, y_N = np.asarray(params["S"], float), params["sign"] * np.asarray(params["y"], float)
    sigma_N = None if params["sigma_ln"] is None else np.asarray(params["sigma_ln"], float)
    found = regress(np.log(S_N) - np.log(S_N).mean(), np.log(y_N), Method(params["method"]), sigma_N)
    theta = dict(zip(NAMES, found.theta_P.tolist(), strict=False))
    ln_C = theta["ln_C_ref"] + theta["alpha"] * float(np.log(S_N).mean())
    return {"C": exp_or_none(ln_C), "alpha": theta["alpha"], "E": theta.get("E", 0.0)}


def _fit(
    S_N: Floats, y_N: Floats, y_BN: Floats | None, method: Method, *, sign: int, backtests: bool = True
) -> PowerLawFit:
    doubt = _doubt(S_N, y_N, method)
    if doubt is not None:
        return _without_numbers(S_N, y_N, doubt, method, sign)
    ln_S_ref = float(np.log(S_N).mean())
    if np.all(y_N == y_N[0]):
        return _flat(S_N, float(y_N[0]), ln_S_ref, method, sign)
    x_N, ln_y_N = np.log(S_N) - ln_S_ref, np.log(y_N)
    ln_y_BN, about = _usable(y_BN)
    sigma_N = None
    if method is Method.weighted:
        if ln_y_BN is None:
            return _without_numbers(S_N, y_N, Status.no_variances, method, sign)
        sigma_N = ln_y_BN.std(axis=0, ddof=1)
        if not np.all(np.ptp(ln_y_BN, axis=0) > 0):  # the standard deviation of equal values is rounding, not 0
            return _without_numbers(S_N, y_N, Status.no_variances, method, sign)
    found = regress(x_N, ln_y_N, method, sigma_N)
    if not found.converged:
        return _without_numbers(S_N, y_N, Status.not_converged, method, sign)
    spread = _uncertainty(found, method, x_N, ln_y_N, ln_y_BN)
    ln_C_ref, alpha = float(found.theta_P[0]), float(found.theta_P[1])
    r2, aic, bic = _quality(found, ln_y_N, method, sigma_N)
    params = _params(S_N, y_N, sign, method) | about
    params |= {
        "sigma_ln": None if sigma_N is None else sigma_N.tolist(),
        "S_ref": math.exp(ln_S_ref),
        "ln_C_ref": ln_C_ref,
        "E": float(found.theta_P[2]) if method is Method.offset else None,
        "residuals_ln": found.residual_N.tolist(),
        "huber_scale_ln": found.scale,
        "starts": [list(start) for start in found.starts],
        "tolerances": TOLERANCES,
        "gradient": found.gradient_P.tolist(),
    }
    stderr = spread.scatter * math.sqrt(float(spread.spread_PP[1, 1]))
    knows = y_BN is None or spread.knows_text  # documents were asked for, and too few resamples could be used
    ends: Ends = (None, None)
    more: dict[str, Any] = {"interval": None}
    if knows:
        ends, more = _intervals(found, spread, x_N, ln_y_N, ln_S_ref, r2, method)
    return PowerLawFit(
        C=exp_or_none(ln_C_ref + alpha * ln_S_ref),
        alpha=alpha,
        alpha_stderr=stderr,
        alpha_lo=ends[0],
        alpha_hi=ends[1],
        r2=r2,
        aic=aic,
        bic=bic,
        n_points=len(S_N),
        backtest_error=_backtest_error(S_N, y_N, method, sigma_N) if backtests else None,
        status=Status.at_bound if found.at_bound else Status.ok,
        params=params | more,
    )


def _doubt(S_N: Floats, y_N: Floats, method: Method) -> Status | None:
    if len(S_N) < (4 if method is Method.offset else 3):
        return Status.too_few_sizes
    if not np.all((y_N > 0) & np.isfinite(y_N)):
        return Status.not_positive
    return None


def _usable(y_BN: Floats | None) -> tuple[Floats | None, dict[str, Any]]:
    """Logarithms of the resamples that have some, None if they are too few to say anything."""
    if y_BN is None:
        return None, {}
    usable_B = np.all((y_BN > 0) & np.isfinite(y_BN), axis=1)
    n_usable = int(usable_B.sum())
    about = {"n_resamples": len(y_BN), "n_resamples_left_out": len(y_BN) - n_usable}
    return (np.log(y_BN[usable_B]) if n_usable >= MIN_RESAMPLES else None), about


def _uncertainty(found: Regression, method: Method, x_N: Floats, ln_y_N: Floats, ln_y_BN: Floats | None) -> Uncertainty:
    refits = None
    if ln_y_BN is not None:
        theta_BP = refit(found, method, x_N, ln_y_BN)
        ended_B = np.isfinite(theta_BP).all(axis=1)
        refits = (theta_BP[ended_B], ln_y_BN[ended_B] - ln_y_N)
    return uncertainty(found, refits)


def _intervals(
    found: Regression,
    spread: Uncertainty,
    x_N: Floats,
    ln_y_N: Floats,
    ln_S_ref: float,
    r2: float,
    method: Method,
) -> tuple[Ends, dict[str, Any]]:
    """The interval of alpha, and the others as params."""
    n_more = len(found.theta_P) - 2
    of_alpha_P, of_ln_C_P = np.array([0.0, 1.0, *[0.0] * n_more]), np.array([1.0, ln_S_ref, *[0.0] * n_more])
    alpha, ln_C = float(found.theta_P[1]), float(of_ln_C_P @ found.theta_P)
    text, models = spread.variances(of_alpha_P)
    ends: Ends = spread.interval(alpha, of_alpha_P)
    ln_C_ends: Ends = spread.interval(ln_C, of_ln_C_P)
    E_lo: float | None = None
    E_hi: float | None = None
    if method is Method.offset:
        valley = offset_ends(x_N, ln_y_N, found.theta_P, spread, ln_S_ref)
        ends, ln_C_ends = valley.alpha, valley.ln_C
        E_lo, E_hi = valley.E
    C_lo, C_hi = map(exp_or_none, ln_C_ends)
    linear = method in (Method.ols, Method.weighted)
    r2_lo, r2_hi = r2_interval(r2, len(found.residual_N)) if linear and r2 < 1 else (None, None)
    more: dict[str, Any] = {
        "interval": "documents and models" if spread.knows_text else "models",
        "C_lo": C_lo,
        "C_hi": C_hi,
        "E_lo": None if E_lo is None else max(E_lo, 0.0),
        "E_hi": E_hi,
        "r2_lo": r2_lo,
        "r2_hi": r2_hi,
        "alpha_models_sd": math.sqrt(models),
        "limited_by": spread.limit(of_alpha_P),
        "uncertainty": spread.record(),
    }
    if spread.knows_text:
        text_lo, text_hi = spread.text_interval(alpha, of_alpha_P)
        more |= {"alpha_text_lo": text_lo, "alpha_text_hi": text_hi}
        more |= {"alpha_text_sd": math.sqrt(text), "alpha_text_bias": float(spread.bias_P[1])}
    return ends, more


def _quality(
    found: Regression, ln_y_N: Floats, method: Method, sigma_N: Floats | None
) -> tuple[float, float | None, float | None]:
    """R2, AIC and BIC: n ln(SS / n) + sum ln sigma^2 + penalty, the normal likelihood up to one constant."""
    w_N, n = (np.ones(len(ln_y_N)) if sigma_N is None else 1 / sigma_N**2), len(ln_y_N)
    mean = float(w_N @ ln_y_N / w_N.sum())
    ss_residual, ss_total = float(w_N @ found.residual_N**2), float(w_N @ (ln_y_N - mean) ** 2)
    if method is Method.robust or ss_residual == 0:
        return 1 - ss_residual / ss_total, None, None
    fit = n * math.log(ss_residual / n) - float(np.log(w_N).sum())
    n_parameters = len(found.theta_P)
    return 1 - ss_residual / ss_total, fit + 2 * n_parameters, fit + n_parameters * math.log(n)


def _backtest_error(S_N: Floats, y_N: Floats, method: Method, sigma_N: Floats | None) -> float | None:
    order = np.argsort(S_N)
    rest = order[:-1]
    if _doubt(S_N[rest], y_N[rest], method) is not None or np.all(y_N[rest] == y_N[rest[0]]):
        return None
    ln_S_ref = float(np.log(S_N[rest]).mean())
    found = regress(np.log(S_N[rest]) - ln_S_ref, np.log(y_N[rest]), method, None if sigma_N is None else sigma_N[rest])
    if not found.converged:
        return None
    x = math.log(S_N[order[-1]]) - ln_S_ref
    ln_power = float(found.theta_P[0] - found.theta_P[1] * x)
    if ln_power > 700:
        return None
    E = float(found.theta_P[2]) if method is Method.offset else 0.0
    return (math.exp(ln_power) + E) / float(y_N[order[-1]]) - 1


def _checked(S: ArrayLike, y: ArrayLike, y_resampled: ArrayLike | None) -> tuple[Floats, Floats, Floats | None]:
    S_N, y_N = np.asarray(S, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if S_N.ndim != 1 or not np.all((S_N > 0) & np.isfinite(S_N)):
        raise ValueError(f"sizes must be a list of positive numbers, got {S!r}")
    if len(np.unique(S_N)) != len(S_N):
        raise ValueError(f"sizes must all be different, got {S_N.tolist()}")
    if y_N.shape != S_N.shape:
        raise ValueError(f"S has shape {S_N.shape}, y {y_N.shape}")
    if y_resampled is None:
        return S_N, y_N, None
    y_BN = np.asarray(y_resampled, dtype=np.float64)
    if y_BN.ndim != 2 or y_BN.shape[1] != len(S_N):
        raise ValueError(f"y_resampled has shape {y_BN.shape}, expected [B, {len(S_N)}]")
    return S_N, y_N, y_BN


def _flat(S_N: Floats, y: float, ln_S_ref: float, method: Method, sign: int) -> PowerLawFit:
    """A quantity that is the same at every size has alpha 0, and nothing that an R2 or an interval could be of."""
    empty = _without_numbers(S_N, np.full(len(S_N), y), Status.no_variation, method, sign)
    params = empty.params | {"S_ref": math.exp(ln_S_ref), "ln_C_ref": math.log(y), "E": None}
    return replace(empty, C=y, alpha=0.0, params=params)


def _without_numbers(S_N: Floats, y_N: Floats, status: Status, method: Method, sign: int | None) -> PowerLawFit:
    empty: dict[str, None] = dict.fromkeys(("C", "alpha", "alpha_stderr", "alpha_lo", "alpha_hi", "r2", "aic", "bic"))
    params = _params(S_N, y_N, sign, method) | {"interval": None}
    return PowerLawFit(**empty, n_points=len(S_N), backtest_error=None, status=status, params=params)


def _params(S_N: Floats, y_N: Floats, sign: int | None, method: Method) -> dict[str, Any]:
    return {
        "method": method.value,
        "S": S_N.tolist(),
        "y": _finite_or_none(y_N),
        "sign": sign,
        "equation": EQUATIONS[method],
        "source": SOURCE,
        "uncertainty": None,
    }


def _finite_or_none(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def exp_or_none(exponent: float | None) -> float | None:
    """A constant or a size from its logarithm; None where that is unknown, or beyond what a float holds."""
    return None if exponent is None or not -700 < exponent < 700 else math.exp(exponent)
