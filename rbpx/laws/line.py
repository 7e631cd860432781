"""Least squares of a straight line in closed form: one set of values or many at once in, level and exponent out."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def line(x_N: ArrayLike, z: ArrayLike) -> NDArray[np.float64]:
    """Least squares of z = level - alpha (x - mean x): (level, alpha), shape [2], or [B, 2] for z of shape [B, N]."""
    about_N, z_N = np.asarray(x_N, dtype=np.float64), np.asarray(z, dtype=np.float64)
    about_N = about_N - about_N.mean()
    return np.stack([z_N.mean(axis=-1), -(z_N @ about_N) / (about_N @ about_N)], axis=-1)
