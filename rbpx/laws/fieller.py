"""Fieller's interval: two numbers with their covariance in, the interval of their ratio out."""

import math

import numpy as np
from numpy.typing import NDArray


def fieller(height: float, slope: float, V: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The part of {u : (height - slope u)^2 <= V00 - 2 V01 u + V11 u^2} that contains u = height / slope, slope > 0."""
    a, b, c = slope**2 - V[1, 1], height * slope - V[0, 1], height**2 - V[0, 0]  # a u^2 - 2 b u + c <= 0
    # b^2 - a c, written so that it is exactly 0 without variance.
    discriminant = slope**2 * V[0, 0] + height**2 * V[1, 1] - 2 * height * slope * V[0, 1] - np.linalg.det(V)
    if discriminant < 0:
        return None, None  # then a < 0, and every u is in
    q = b + math.copysign(math.sqrt(discriminant), b)
    roots = sorted(([q / a] if a else []) + ([c / q] if q else []))
    if a > 0:
        return float(roots[0]), float(roots[-1])
    below, above = ([u for u in roots if side * u <= side * height / slope] for side in (1, -1))
    return (float(max(below)) if below else None), (float(min(above)) if above else None)
