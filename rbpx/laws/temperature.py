"""The minimum of a convex loss that is known at a few nodes with its slope and curvature.

Between two nodes the loss is the polynomial of degree 5 that has its value, slope and curvature at both; with h the
distance of the nodes it is exact to h^6 / 46080 times the sixth derivative.

Shapes: B losses, J nodes, 3 for loss, slope and curvature.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize.elementwise import find_root

from rbpx.laws.numeric import Floats

# Coefficients of t^0 to t^5, a row each, of: value, slope, curvature at t = 0, then at t = 1.
_HERMITE: Final = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.0, 0.0],
        [-10.0, -6.0, -1.5, 10.0, -4.0, 0.5],
        [15.0, 8.0, 1.5, -15.0, 7.0, -1.0],
        [-6.0, -3.0, -0.5, 6.0, -3.0, 0.5],
    ]
)


def minimum(loss_B3J: ArrayLike, beta_J: ArrayLike) -> tuple[Floats, Floats]:
    """Where each loss is least, and its value there; at the first or last node if it falls towards it.

    Args:
        loss_B3J: convex losses with slope and curvature at the nodes; NaN where a loss is not known.
        beta_J: the nodes, rising.

    Returns:
        beta and loss, shape [B] each; NaN where a slope is.
    """
    loss, beta = np.asarray(loss_B3J, dtype=np.float64), np.asarray(beta_J, dtype=np.float64)
    slope_BJ = loss[:, 1]
    cell_B = np.clip((slope_BJ < 0).sum(axis=1) - 1, 0, len(beta) - 2)  # slopes rise
    c_B6, h_B = _polynomial(loss, beta, cell_B)
    of_slope = tuple((c_B6[:, 1:] * np.arange(1, 6)).T)
    inside_B = find_root(lambda t, *c: _value(np.stack(c, axis=-1), t), (0.0, 1.0), args=of_slope).x
    t_B = np.where(slope_BJ[:, 0] >= 0, 0.0, np.where(slope_BJ[:, -1] <= 0, 1.0, inside_B))
    t_B = np.where(np.isnan(slope_BJ).any(axis=1), np.nan, t_B)
    return beta[cell_B] + t_B * h_B, _value(c_B6, t_B)


def loss_at(beta: ArrayLike, loss_3J: ArrayLike, beta_J: ArrayLike) -> Floats:
    """One loss at any points between the first and the last node."""
    at_B, nodes = np.atleast_1d(np.asarray(beta, dtype=np.float64)), np.asarray(beta_J, dtype=np.float64)
    loss = np.broadcast_to(np.asarray(loss_3J, dtype=np.float64), (len(at_B), 3, len(nodes)))
    cell_B = np.clip(np.searchsorted(nodes, at_B, side="right") - 1, 0, len(nodes) - 2)
    c_B6, h_B = _polynomial(loss, nodes, cell_B)
    return _value(c_B6, (at_B - nodes[cell_B]) / h_B)


def _polynomial(loss_B3J: Floats, beta_J: Floats, cell_B: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Coefficients [B, 6] in t = (beta - node) / h of the cell of each loss, and its h."""
    h_B = np.diff(beta_J)[cell_B]
    scale_B3 = np.column_stack([np.ones_like(h_B), h_B, h_B**2])
    row_B = np.arange(len(cell_B))
    ends_B6 = np.concatenate([loss_B3J[row_B, :, cell_B] * scale_B3, loss_B3J[row_B, :, cell_B + 1] * scale_B3], axis=1)
    return ends_B6 @ _HERMITE.T, h_B


def _value(c_BP: Floats, t_B: Floats) -> Floats:
    """A polynomial of each row at its own t."""
    value_B = np.zeros(len(t_B))
    for at in reversed(range(c_BP.shape[1])):
        value_B = value_B * t_B + c_BP[:, at]
    return value_B
