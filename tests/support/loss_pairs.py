"""Drawn models with two losses that are power laws in size, and a task whose accuracy is a sigmoid in the first."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.losses.curve import LossPoints
from rbpx.laws.losses.noise import Noise

Floats = NDArray[np.float64]

E_X, E_Y, A, B, a, b = 1.7, 1.4, 300.0, 200.0, 0.3, 0.27
TRUE: Final = {"K": B * A ** -(b / a), "kappa": b / a, "E_x": E_X, "E_y": E_Y}


def losses(S: Floats) -> tuple[Floats, Floats]:
    """Both losses of models of some sizes."""
    return E_X + A * S**-a, E_Y + B * S**-b


def covariance(sd_x: float, sd_y: float, rho: float) -> Floats:
    """That of the errors of ln x and ln y."""
    return np.array([[sd_x**2, rho * sd_x * sd_y], [rho * sd_x * sd_y, sd_y**2]])


def drawn(S: Floats, C_22: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Both losses with errors of that covariance, in ln."""
    x, y = losses(S)
    error = rng.multivariate_normal([0.0, 0.0], C_22, len(S))
    return x * np.exp(error[:, 0]), y * np.exp(error[:, 1])


def points(x: Floats, y: Floats, noise: Noise) -> LossPoints:
    """Points with the covariance of their errors."""
    return LossPoints(np.log(x), np.log(y), noise.C_22)


def two_families(C_22: Floats, off: float, rng: np.random.Generator) -> tuple[LossPoints, list[str]]:
    """Six models of each of two families, the second of which lies off the curve by a share of y."""
    pairs = [drawn(np.geomspace(1e6, 1e9, 6), C_22, rng) for _ in "fg"]
    x, y = (np.concatenate(each) for each in zip(*pairs, strict=True))
    y[6:] *= 1 + off
    return LossPoints(np.log(x), np.log(y), C_22), [*"ffffff", *"gggggg"]


def success(x: Floats) -> Floats:
    """Accuracy of a task of four choices, a sigmoid in ln x."""
    return np.asarray(0.25 + 0.75 / (1 + (x / 2.6) ** 9))
