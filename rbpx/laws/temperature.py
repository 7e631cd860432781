"""The minimum of a convex loss that is known at a few nodes with its slope and curvature.

Between two nodes the loss is the polynomial of degree 5 that has its value, slope and curvature at both; with h the
distance of the nodes it is exact to h^6 / 46080 times the sixth derivative.

Shapes: B losses, J nodes, 3 for loss, slope and curvature.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BPoly, PPoly
from scipy.optimize.elementwise import find_root

from rbpx.laws.numeric import Floats


def minimum(loss_B3J: ArrayLike, beta_J: ArrayLike) -> tuple[Floats, Floats]:
    """Where each loss is least, and its value there; at the first or last node if it falls towards it.

    Args:
        loss_B3J: convex losses with slope and curvature at the nodes; NaN where a loss is not known.
        beta_J: the nodes, rising.

    Returns:
        beta and loss, shape [B] each; NaN where a slope is.
    """
    beta, slope_BJ = np.asarray(beta_J, dtype=np.float64), np.asarray(loss_B3J)[:, 1]
    cell_B = np.clip((slope_BJ < 0).sum(axis=1) - 1, 0, len(beta) - 2)  # slopes rise
    c_6B = PPoly.from_bernstein_basis(_between(loss_B3J, beta)).c[:, cell_B, np.arange(len(cell_B))]
    slope_5B, h_B = c_6B[:-1] * np.arange(5, 0, -1)[:, None], np.diff(beta)[cell_B]
    inside_B = find_root(lambda t_B, *c: np.polyval(c, t_B), (np.zeros_like(h_B), h_B), args=tuple(slope_5B)).x
    t_B = np.where(slope_BJ[:, 0] >= 0, 0.0, np.where(slope_BJ[:, -1] <= 0, h_B, inside_B))
    t_B = np.where(np.isnan(slope_BJ).any(axis=1), np.nan, t_B)
    return beta[cell_B] + t_B, np.asarray(np.polyval(c_6B, t_B), np.float64)


def loss_at(beta: float | Floats, loss_B3J: ArrayLike, beta_J: Floats) -> Floats:
    """Losses, one or many, at any points between the first and the last node."""
    return np.asarray(_between(loss_B3J, beta_J)(beta))


def _between(loss_B3J: ArrayLike, beta_J: Floats) -> BPoly:
    return BPoly.from_derivatives(beta_J, np.moveaxis(np.asarray(loss_B3J), (-1, -2), (0, 1)))
