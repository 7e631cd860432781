"""Drawn models with two losses that are power laws in size, and a task whose accuracy is a sigmoid in the first."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

E_X, E_Y, A, B, a, b = 1.7, 1.4, 300.0, 200.0, 0.3, 0.27
K, KAPPA = B * A ** -(b / a), b / a  # of y = E_Y + K (x - E_X)^KAPPA


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


def success(x: Floats) -> Floats:
    """Accuracy of a task of four choices, a sigmoid in ln x."""
    return np.asarray(0.25 + 0.75 / (1 + (x / 2.6) ** 9))
