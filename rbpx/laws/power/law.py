"""Fits of a power law in model size to one positive quantity: constant, exponent, intervals and status.

The same law serves -ln RBP_k and cross-entropy. Shapes: N is the number of sizes, B of resamples of the documents.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.resampled import Resampled
from rbpx.laws.names import Method
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.numeric.logarithms import exp_or_none
from rbpx.laws.numeric.side_by_side import Searching, alone, at_once, together
from rbpx.laws.power.fitted import LawFit, PowerLawFit
from rbpx.laws.power.found import doubt, estimate
from rbpx.laws.power.intervals import NO_INTERVALS, Ends, intervals, quality
from rbpx.laws.power.regression import NAMES, regress
from rbpx.status import Status

__all__ = ["LawFit", "PowerLawFit", "fit_offsets", "fit_power_law", "power_law", "reproduce"]


def power_law(
    S: ArrayLike,
    y: ArrayLike,
    y_resampled: ArrayLike | Resampled | None = None,
    method: Method = Method.ols,
    backtests: bool = True,
    signed: bool = False,
) -> Searching[PowerLawFit]:
    """Fit y = C * S^(-alpha) by least squares of ln y on ln S, as the paper does, or by another method.

    The fit runs at a reference size, ln y = ln_C_ref - alpha * ln(S / S_ref) with S_ref the geometric mean of the
    sizes, where constant and exponent are uncorrelated. `offset` adds E >= 0, an irreducible part of y; `weighted`
    takes the variances of ln y over the resamples; `robust` uses Huber's loss, for outlying sizes.

    Args:
        S: non-embedding parameters of each model, shape [N], positive, in any order; equal ones are replicates of one
            size, models that were trained more than once.
        y: -ln RBP_k, or cross-entropy in nats, or any positive quantity, or a signed one that is nowhere 0, shape [N].
        y_resampled: the same quantity under B resamples of the documents, the same documents for every size, shape
            [B, N]. Rows with a value that is not finite or has another sign are left out and counted. There is no
            interval if fewer than 20 rows are left. Or |y| as `Resampled`, negative where a sign differs.
        method: how ln y is regressed on ln S.
        backtests: whether to fit once more without the largest size, and to find the interval of R2, as for a law that
            is shown; if not, these are None.
        signed: whether y may be negative at every size; the law is then that of |y|.

    Returns:
        The fit. Its status is too_few_sizes below 3 different sizes (4 for `offset`), not_positive if a y is not
        positive and finite, no_variation if all y are equal (alpha is 0 then, and the rest is unknown), no_variances if
        `weighted` has no resamples to weigh by, not_converged if the regression fails its own check, sign_change if a
        signed y has both signs, or is 0; with numbers, ok, or at_bound where E is 0.

    Raises:
        ValueError: if shapes disagree, or sizes are not positive.

    Source:
        RBP paper (arXiv 2510.20387), eq. 5; table 2 gives slope = -alpha and R2 of the regression `ols`. Signed terms
        of cross-entropy: arXiv 2510.04067.
    """
    S_N, given_N = _checked(S, y)
    method, sign = Method(method), 1
    law = PowerLawFit(n_points=len(S_N), status=Status.ok, S=S_N.tolist(), method=method, y=given_N.tolist(), sign=1)
    if signed:
        signs = np.sign(given_N)
        if len(S_N) >= 3 and np.all(np.isfinite(given_N)) and (np.any(signs != signs[0]) or signs[0] == 0):
            return replace(law, status=Status.sign_change, sign=None)
        sign = -1 if len(signs) and signs[0] < 0 else 1
        law = replace(law, sign=sign)
    y_N, resampled = sign * given_N, _usable(y_resampled, len(S_N), sign)
    found = yield from estimate(S_N, y_N, resampled, method)
    if found is Status.no_variation:  # the same at every size: alpha is 0, R2 and intervals are undefined
        return replace(law, status=found, C=float(y_N[0]), alpha=0.0)
    if isinstance(found, Status):
        return replace(law, status=found)
    regression, spread, sigma_N, ln_S_ref = found.regression, found.spread, found.sigma_N, found.ln_S_ref
    ln_C_ref, alpha = float(regression.theta_P[0]), float(regression.theta_P[1])
    r2, aic, bic = quality(regression, found.ln_y_N, method, sigma_N)
    alpha_ends: Ends = (None, None)
    ends = NO_INTERVALS
    if found.has_interval:
        alpha_ends, ends = yield from intervals(found, r2 if backtests else None, method)
    return replace(
        law,
        C=exp_or_none(ln_C_ref + alpha * ln_S_ref),
        alpha=alpha,
        alpha_stderr=spread.scatter * math.sqrt(float(spread.spread_PP[1, 1])),
        alpha_lo=alpha_ends[0],
        alpha_hi=alpha_ends[1],
        r2=r2,
        aic=aic,
        bic=bic,
        backtest_error=(yield from _backtest_error(S_N, y_N, method, sigma_N)) if backtests else None,
        status=Status.at_bound if regression.at_bound else Status.ok,
        ends=ends,
        found=found,
        n_resamples=None if resampled is None else len(resampled.y_BN),
        n_resamples_left_out=0 if resampled is None else resampled.n_left_out,
        interval=("documents and models" if spread.knows_text else "models") if found.has_interval else None,
        limited_by=spread.limit(np.eye(len(regression.theta_P))[1]) if found.has_interval else None,
    )


fit_power_law = at_once(power_law)


def fit_offsets(points: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike | Resampled | None]]) -> list[PowerLawFit]:
    """The laws with an offset of many (S, y, y_resampled), each as `fit_power_law` without backtests; faster."""
    return together([power_law(*each, Method.offset, backtests=False) for each in points])


def reproduce(params: Mapping[str, Any]) -> dict[str, float | None]:
    """Repeat a fit from the values in its params: C at S = 1, alpha and E, to be compared with those of the fit.

    Args:
        params: the record of a fit that has numbers.
    """
    S_N, y_N = np.asarray(params["S"], float), params["sign"] * np.asarray(params["y"], float)
    sigma_N = None if params["sigma_ln"] is None else np.asarray(params["sigma_ln"], float)
    regression = alone(regress(np.log(S_N) - np.log(S_N).mean(), np.log(y_N), Method(params["method"]), sigma_N))
    theta = dict(zip(NAMES, regression.theta_P.tolist(), strict=False))
    ln_C = theta["ln_C_ref"] + theta["alpha"] * float(np.log(S_N).mean())
    return {"C": exp_or_none(ln_C), "alpha": theta["alpha"], "E": theta.get("E", 0.0)}


def _backtest_error(S_N: Floats, y_N: Floats, method: Method, sigma_N: Floats | None) -> Searching[float | None]:
    rest, largest = np.flatnonzero(S_N < S_N.max()), np.flatnonzero(S_N == S_N.max())
    rest = rest[np.argsort(S_N[rest])]
    if doubt(S_N[rest], y_N[rest], method) is not None or np.all(y_N[rest] == y_N[rest[0]]):
        return None
    ln_S_ref = float(np.log(S_N[rest]).mean())
    sigma_of_rest = None if sigma_N is None else sigma_N[rest]
    regression = yield from regress(np.log(S_N[rest]) - ln_S_ref, np.log(y_N[rest]), method, sigma_of_rest)
    if not regression.converged:
        return None
    x = math.log(S_N.max()) - ln_S_ref
    ln_power = float(regression.theta_P[0] - regression.theta_P[1] * x)
    if ln_power > 700:
        return None
    E = float(regression.theta_P[2]) if method is Method.offset else 0.0
    return (math.exp(ln_power) + E) / float(y_N[largest].mean()) - 1


def _checked(S: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    S_N, y_N = np.asarray(S, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if S_N.ndim != 1 or not np.all((S_N > 0) & np.isfinite(S_N)):
        raise ValueError(f"sizes must be a list of positive numbers, got {S!r}")
    if y_N.shape != S_N.shape:
        raise ValueError(f"S has shape {S_N.shape}, y {y_N.shape}")
    return S_N, y_N


def _usable(resampled: ArrayLike | Resampled | None, n_sizes: int, sign: int) -> Resampled | None:
    if resampled is None or isinstance(resampled, Resampled):
        return resampled
    y_BN = np.asarray(resampled, dtype=np.float64)
    if y_BN.ndim != 2 or y_BN.shape[1] != n_sizes:
        raise ValueError(f"y_resampled has shape {y_BN.shape}, expected [B, {n_sizes}]")
    return Resampled.of(sign * y_BN)
