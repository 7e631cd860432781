"""Finds the minimum of a convex loss from its value, slope and curvature at a few nodes.

Between two nodes the loss is the polynomial of degree 5 with the value, slope and curvature of both; with h the
distance of the nodes its error is at most h^6 / 46080 times the sixth derivative.

Shapes: B losses, J nodes, 3 for loss, slope and curvature.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BPoly, PPoly
from scipy.optimize.elementwise import find_root

from rbpx.laws.numeric import Floats


def minimum(loss_B3J: ArrayLike, beta_J: ArrayLike) -> tuple[Floats, Floats]:
    """Returns beta and loss at each minimum, [B] each; at the first or last node where a loss falls towards it.

    `loss_B3J` has convex losses with slope and curvature at the rising nodes `beta_J`; where a slope is NaN, so is the
    result.
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
    """Returns one or many losses at points between the first and the last node."""
    return np.asarray(_between(loss_B3J, beta_J)(beta))


def _between(loss_B3J: ArrayLike, beta_J: Floats) -> BPoly:
    return BPoly.from_derivatives(beta_J, np.moveaxis(np.asarray(loss_B3J), (-1, -2), (0, 1)))
