"""Power law in model size: sizes and one positive quantity in, constant, exponent, interval and status out.

The same law serves -ln RBP_k and cross-entropy. Shapes: N is the number of sizes, B of resamples of the documents.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import lmfit
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, t

from rbpx.status import Status

__all__ = ["EQUATION", "SOURCE", "PowerLawFit", "fit_power_law", "fit_signed_power_law", "resampled_alpha"]

EQUATION: Final = "y = C * S^(-alpha), ordinary least squares of ln y on ln S"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eq. 5"

LEVEL: Final = 0.95
MIN_RESAMPLES: Final = 20

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PowerLawFit:
    """A fitted power law y = C * S^(-alpha); None where a number is unknown, every number None unless status is ok.

    C is at S = 1 and has the unit of y; alpha > 0 when bigger is better. alpha_stderr is the ordinary least-squares
    standard error (n - 2 degrees of freedom). alpha_lo and alpha_hi are the 95 % interval, of the kind that
    params["interval"] names ("documents", "t" or None). r2, aic and bic are of the regression of ln y.
    backtest_error is (predicted - measured) / measured of the largest size, predicted from the others.
    params holds what reproduces the fit: S, y, sign, S_ref, ln_C_ref, residuals_ln (measured - fitted), and for
    "documents" n_resamples, n_resamples_left_out, alpha_document_sd and alpha_document_bias.
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
    params: dict[str, object]


def fit_power_law(S: ArrayLike, y: ArrayLike, y_resampled: ArrayLike | None = None) -> PowerLawFit:
    """Fit y = C * S^(-alpha) by ordinary least squares of ln y on ln S, as the paper does.

    The fit runs at a reference size, ln y = ln_C_ref - alpha * ln(S / S_ref) with S_ref the geometric mean of the
    sizes, where constant and exponent are uncorrelated.

    The interval of alpha. With `y_resampled` it holds the uncertainty that comes from the choice of documents. It is
    the bootstrap normal interval about the estimate less its bootstrap bias,
    alpha - (mean(alpha*) - alpha) +- 1.96 sd(alpha*). A plug-in quantity such as an entropy is biased once in the
    data and by about as much again in each resample. So the percentile interval is off by twice the bias, an interval
    about the estimate by once, and this one, like the basic interval, by second order only; unlike the basic interval
    it does not rest on 2.5 % quantiles, which are noisy at a few hundred resamples. With a large bias the interval
    may leave the estimate near or outside its edge: params["alpha_document_bias"] says by how much. Without
    `y_resampled` the interval is Student's t with n - 2 degrees of freedom and holds the scatter of the sizes about
    the law; the two answer different questions.

    Args:
        S: non-embedding parameters of each model, shape [N], positive and all different, in any order.
        y: -ln RBP_k, or cross-entropy in nats, or any positive quantity, shape [N].
        y_resampled: the same quantity under B resamples of the documents, the same documents for every size, shape
            [B, N]. Rows with a value that is not positive and finite are left out and counted. The interval is None
            if fewer than 20 rows are left.

    Returns:
        The fit. Its status is too_few_sizes below 3 sizes, not_positive if a y is not positive and finite,
        no_variation if all y are equal, not_converged if the regression fails its own check.

    Raises:
        ValueError: if shapes disagree, or sizes are not positive and different.

    Source:
        RBP paper (arXiv 2510.20387), eq. 5; table 2 gives slope = -alpha and R2 of this regression.
    """
    return _fit(*_checked(S, y, y_resampled), sign=1)


def fit_signed_power_law(S: ArrayLike, term: ArrayLike, term_resampled: ArrayLike | None = None) -> PowerLawFit:
    """Fit term = sign * C * S^(-alpha) to a term that may be negative, by regression of ln|term| on ln S.

    Args:
        S: non-embedding parameters, shape [N].
        term: the term at each size, nats, shape [N].
        term_resampled: the term under B resamples of the documents, shape [B, N]; rows in which a value has another
            sign are left out and counted.

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
        return _without_numbers(S_N, term_N, Status.sign_change, sign=None)
    sign = -1 if len(signs) and signs[0] < 0 else 1
    fit = _fit(S_N, sign * term_N, None if term_BN is None else sign * term_BN, sign=sign)
    return replace(fit, params={**fit.params, "y": _finite_or_none(term_N)})


def resampled_alpha(S: ArrayLike, y_resampled: ArrayLike) -> Floats:
    """Exponent of each resample, by one product with the weights of the regression.

    alpha_b = -sum_i w_i ln y_bi, w_i = (x_i - mean x) / sum_j (x_j - mean x)^2, x = ln S.

    Args:
        S: sizes, shape [N].
        y_resampled: positive values, shape [..., N].

    Returns:
        alpha, shape [...].

    Raises:
        ValueError: if a value is not positive and finite, or the sizes are not positive and different.
    """
    S_N = _checked_sizes(S)
    y_BN = np.asarray(y_resampled, dtype=np.float64)
    if y_BN.shape[-1:] != S_N.shape or not np.all((y_BN > 0) & np.isfinite(y_BN)):
        raise ValueError("y_resampled must be positive and finite with one column a size")
    x_N = np.log(S_N) - np.log(S_N).mean()
    return np.asarray(-np.log(y_BN) @ (x_N / (x_N @ x_N)), dtype=np.float64)


def _fit(S_N: Floats, y_N: Floats, y_BN: Floats | None, *, sign: int) -> PowerLawFit:
    n = len(S_N)
    if n < 3:
        return _without_numbers(S_N, y_N, Status.too_few_sizes, sign)
    if not np.all((y_N > 0) & np.isfinite(y_N)):
        return _without_numbers(S_N, y_N, Status.not_positive, sign)
    ln_y_N = np.log(y_N)
    if np.all(ln_y_N == ln_y_N[0]):
        return _without_numbers(S_N, y_N, Status.no_variation, sign)
    ln_S_ref = float(np.log(S_N).mean())
    x_N = np.log(S_N) - ln_S_ref
    result = _regress(x_N, ln_y_N)
    ln_C_ref, alpha = float(result.params["ln_C_ref"].value), float(result.params["alpha"].value)
    residual_N = ln_y_N - (ln_C_ref - alpha * x_N)
    scale = float(np.abs(ln_y_N - ln_y_N.mean()).max())
    # lmfit reports success too easily: the residuals of a least-squares line sum to zero, alone and against x.
    if not result.success or max(abs(residual_N.mean()), abs(residual_N @ x_N) / np.abs(x_N).sum()) > 1e-6 * scale:
        return _without_numbers(S_N, y_N, Status.not_converged, sign)
    ss_residual, ss_total = float(residual_N @ residual_N), float(np.sum((ln_y_N - ln_y_N.mean()) ** 2))
    stderr = math.sqrt(ss_residual / (n - 2) / float(x_N @ x_N))
    params = _params(S_N, y_N, sign)
    params |= {"S_ref": math.exp(ln_S_ref), "ln_C_ref": ln_C_ref, "residuals_ln": residual_N.tolist()}
    lo: float | None
    hi: float | None
    if y_BN is None:
        half = float(t.ppf((1 + LEVEL) / 2, n - 2)) * stderr
        lo, hi, params["interval"] = alpha - half, alpha + half, "t"
    else:
        lo, hi, about = _document_interval(S_N, alpha, y_BN)
        params |= about
    return PowerLawFit(
        C=_exp_or_none(ln_C_ref + alpha * ln_S_ref),
        alpha=alpha,
        alpha_stderr=stderr,
        alpha_lo=lo,
        alpha_hi=hi,
        r2=1.0 - ss_residual / ss_total,
        aic=float(result.aic),
        bic=float(result.bic),
        n_points=n,
        backtest_error=_backtest_error(S_N, y_N),
        status=Status.ok,
        params=params,
    )


def _regress(x_N: Floats, ln_y_N: Floats) -> Any:
    def law(x: Floats, ln_C_ref: float, alpha: float) -> Floats:
        return ln_C_ref - alpha * x

    slope = float(x_N @ ln_y_N) / float(x_N @ x_N)
    # The law is linear in both parameters, so a difference quotient over a wide step has no error but rounding.
    exact = {"epsfcn": 1.0, "ftol": 1e-15, "xtol": 1e-15, "gtol": 0.0}
    return lmfit.Model(law).fit(ln_y_N, x=x_N, ln_C_ref=float(ln_y_N.mean()), alpha=-slope, fit_kws=exact)


def _document_interval(S_N: Floats, alpha: float, y_BN: Floats) -> tuple[float | None, float | None, dict[str, object]]:
    usable_B = np.all((y_BN > 0) & np.isfinite(y_BN), axis=1)
    n_usable = int(usable_B.sum())
    about: dict[str, object] = {"n_resamples": len(y_BN), "n_resamples_left_out": len(y_BN) - n_usable}
    if n_usable < MIN_RESAMPLES:
        return None, None, about | {"interval": None, "alpha_document_sd": None, "alpha_document_bias": None}
    alpha_B = resampled_alpha(S_N, y_BN[usable_B])
    sd, bias = float(alpha_B.std(ddof=1)), float(alpha_B.mean()) - alpha
    half = float(norm.ppf((1 + LEVEL) / 2)) * sd
    about |= {"interval": "documents", "alpha_document_sd": sd, "alpha_document_bias": bias}
    return alpha - bias - half, alpha - bias + half, about


def _backtest_error(S_N: Floats, y_N: Floats) -> float | None:
    if len(S_N) < 4:
        return None
    order = np.argsort(S_N)
    x_N, ln_y_N = np.log(S_N)[order], np.log(y_N)[order]
    x_ref = x_N[:-1].mean()
    x_rest = x_N[:-1] - x_ref
    slope = float(x_rest @ ln_y_N[:-1]) / float(x_rest @ x_rest)
    ln_ratio = float(ln_y_N[:-1].mean() + slope * (x_N[-1] - x_ref) - ln_y_N[-1])
    return math.expm1(ln_ratio) if ln_ratio < 700 else None


def _checked(S: ArrayLike, y: ArrayLike, y_resampled: ArrayLike | None) -> tuple[Floats, Floats, Floats | None]:
    S_N, y_N = _checked_sizes(S), np.asarray(y, dtype=np.float64)
    if y_N.shape != S_N.shape:
        raise ValueError(f"S has shape {S_N.shape}, y {y_N.shape}")
    if y_resampled is None:
        return S_N, y_N, None
    y_BN = np.asarray(y_resampled, dtype=np.float64)
    if y_BN.ndim != 2 or y_BN.shape[1] != len(S_N):
        raise ValueError(f"y_resampled has shape {y_BN.shape}, expected [B, {len(S_N)}]")
    return S_N, y_N, y_BN


def _checked_sizes(S: ArrayLike) -> Floats:
    S_N = np.asarray(S, dtype=np.float64)
    if S_N.ndim != 1 or not np.all((S_N > 0) & np.isfinite(S_N)):
        raise ValueError(f"sizes must be a list of positive numbers, got {S!r}")
    if len(np.unique(S_N)) != len(S_N):
        raise ValueError(f"sizes must all be different, got {S_N.tolist()}")
    return S_N


def _without_numbers(S_N: Floats, y_N: Floats, status: Status, sign: int | None) -> PowerLawFit:
    empty: dict[str, None] = dict.fromkeys(("C", "alpha", "alpha_stderr", "alpha_lo", "alpha_hi", "r2", "aic", "bic"))
    params = _params(S_N, y_N, sign) | {"interval": None}
    return PowerLawFit(**empty, n_points=len(S_N), backtest_error=None, status=status, params=params)


def _params(S_N: Floats, y_N: Floats, sign: int | None) -> dict[str, object]:
    return {"S": S_N.tolist(), "y": _finite_or_none(y_N), "sign": sign, "equation": EQUATION, "source": SOURCE}


def _finite_or_none(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _exp_or_none(exponent: float) -> float | None:
    return math.exp(exponent) if -700 < exponent < 700 else None
