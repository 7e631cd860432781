"""Mathematics that several laws need: lines, logarithms, and lmfit's search from one start.

Names of arrays end in a letter for each axis (`y_BN`).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def line(x_N: ArrayLike, z: ArrayLike) -> Floats:
    """Least squares of z = level - alpha (x - mean x): (level, alpha), shape [2], or [B, 2] for z of shape [B, N]."""
    about_N, z_N = np.asarray(x_N, dtype=np.float64), np.asarray(z, dtype=np.float64)
    about_N = about_N - about_N.mean()
    return np.stack([z_N.mean(axis=-1), -(z_N @ about_N) / (about_N @ about_N)], axis=-1)


def neg_ln(p: ArrayLike) -> Floats:
    """-ln p, nats: infinite at p = 0, 0 at p = 1, NaN at NaN.

    Raises:
        ValueError: if a p is below 0 or above 1.
    """
    share = np.asarray(p, dtype=np.float64)
    if np.any((share < 0) | (share > 1)):
        raise ValueError("shares of windows are from 0 to 1, or NaN without a window")
    with np.errstate(divide="ignore"):
        return np.asarray(0.0 - np.log(share))


def exp_or_none(exponent: float | None) -> float | None:
    """A constant or a size from its logarithm; None where that is unknown, or outside the range of a float."""
    return None if exponent is None or not -700 < exponent < 700 else math.exp(exponent)


def ln_sum_exp(exponent: Floats, axis: int) -> Floats:
    """Ln sum exp(exponent) along an axis, which is kept with the length 1; -inf for a sum of nothing but zeros.

    SciPy's takes fifty times as long for a few hundred numbers, and is asked thousands of times.
    """
    top = exponent.max(axis=axis, keepdims=True)
    top[np.isinf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(exponent - top).sum(axis=axis, keepdims=True)))


def least_squares(
    residual: Callable[[Floats], Floats],
    jacobian: Callable[[Floats], Floats],
    start: Sequence[float] | Floats,
    lower: Sequence[float] | Floats,
    upper: Sequence[float] | Floats,
    max_nfev: int | None = None,
    **options: Any,
) -> tuple[Floats, bool]:
    """Search by lmfit from one start.

    Args:
        residual: theta of shape [P] in, residuals [N] out.
        jacobian: their derivatives, [N, P].
        start: theta.
        lower: bounds from below.
        upper: bounds from above; a parameter whose bounds are equal is held.
        max_nfev: evaluations at most; None for those of lmfit.
        options: of `scipy.optimize.least_squares`.

    Returns:
        Where the search ended, and whether lmfit calls it a success.
    """
    import lmfit  # a second, which most laws do without

    varies_P = np.asarray(lower) < np.asarray(upper)
    parameters = lmfit.Parameters()
    for at, (value, lo, hi, varies) in enumerate(zip(start, lower, upper, varies_P, strict=True)):
        bounds = {"min": lo, "max": hi} if varies else {}
        parameters.add(f"theta_{at}", value=float(value), vary=bool(varies), **bounds)

    def theta(found: lmfit.Parameters) -> Floats:
        return np.array([each.value for each in found.values()])

    def of_varied(found: lmfit.Parameters) -> Floats:
        J_NP = jacobian(theta(found))
        return J_NP if varies_P.all() else J_NP.T[varies_P].T  # in the same order in memory, so to the same digit

    minimizer = lmfit.Minimizer(lambda at: residual(theta(at)), parameters, calc_covar=False, max_nfev=max_nfev)
    with np.errstate(all="ignore"):  # a step too far is not taken
        found = minimizer.least_squares(jac=of_varied, **options)
    return theta(found.params), bool(found.success)
