"""Least-squares lines, roots and safe logarithms that several laws use."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def line(x_N: ArrayLike, z: ArrayLike) -> Floats:
    """The least-squares (level, alpha) of z = level - alpha (x - mean x); [B, 2] for z of shape [B, N]."""
    about_N, z_N = np.asarray(x_N, dtype=np.float64), np.asarray(z, dtype=np.float64)
    about_N = about_N - about_N.mean()
    return np.stack([z_N.mean(axis=-1), -(z_N @ about_N) / (about_N @ about_N)], axis=-1)


def neg_ln(p: ArrayLike) -> Floats:
    """-ln p in nats: infinite at p = 0, NaN at NaN; raises ValueError for a p below 0 or above 1."""
    share = np.asarray(p, dtype=np.float64)
    if np.any((share < 0) | (share > 1)):
        raise ValueError("shares of windows are from 0 to 1, or NaN without a window")
    with np.errstate(divide="ignore"):
        return np.asarray(0.0 - np.log(share))


def bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at `low` ceases to hold before `high`, to the last digit.

    This avoids importing scipy.optimize, which would take a tenth of a question's time.
    """
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def finite_or_none(values: Floats) -> list[float | None]:
    """The values as JSON takes them, with None for NaN and infinity."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def exp_or_none(exponent: float | None) -> float | None:
    """exp(exponent), or None beyond the range of a float."""
    return None if exponent is None or not -700 < exponent < 700 else math.exp(exponent)


def ln_sum_exp(exponent: Floats, axis: int) -> Floats:
    """Ln sum exp(exponent) along an axis, kept with length 1; -inf for a sum of zeros.

    SciPy's version takes fifty times as long for a few hundred numbers; this one is called thousands of times.
    """
    top = exponent.max(axis=axis, keepdims=True)
    top[np.isinf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(exponent - top).sum(axis=axis, keepdims=True)))
