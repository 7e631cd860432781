"""Tests by simulation whether several families share one curve.

The alternative has E_x and E_y in common, and a level and an exponent for each family. The statistic is F with
distances to first order, r = (ln y - ln f(x)) / sqrt(C_yy - 2 m C_xy + m^2 C_xx), m the slope of ln f at the measured
x. Its null distribution is that of refitted draws from the shared curve, with errors of both losses as large as the
points'.

Shapes: B draws, G pairs of E on a grid, N models, F families.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from rbpx.laws.losses.curve import LossCurve, LossPoints
from rbpx.laws.numeric import Floats

_DRAWS: Final = 199
_SHARES: Final = np.linspace(0, 0.96, 9)  # of the smallest x or y: what E may be
_STEPS: Final = 5  # of Gauss-Newton, from the line of the logarithms
_BLOCK: Final = 2**21  # numbers of an array at a time


@dataclass(frozen=True)
class SharedTest:
    """Test of whether families share one curve: F, and the probability p of a larger F if they do."""

    n_families: int
    statistic: float
    p: float


def share_one_curve(points: LossPoints, curve: LossCurve, family: Sequence[str], seed: int) -> SharedTest | None:
    """Returns the test of the best curve through all families; None for one family, or too few models."""
    names, of_N = np.unique(family, return_inverse=True)
    n_N = np.bincount(of_N)
    more = int(np.minimum(n_N, 2).sum()) - 2
    dof = len(of_N) - 4 - more
    if len(names) < 2 or more < 1 or dof < 1:
        return None
    rng = np.random.default_rng(seed)
    size = np.sqrt(curve.squares / (len(of_N) - 4))
    values, axes = np.linalg.eigh(points.C_22)
    root_22 = axes * np.sqrt(np.maximum(values, 0.0))
    error_BN2 = size * rng.standard_normal((_DRAWS, len(of_N), 2)) @ root_22.T
    true_N2 = np.stack([curve.w_N, curve.ln_at(curve.w_N)], axis=1)
    measured_N2 = np.stack([points.ln_x_N, points.ln_y_N], axis=1)
    z_BN2 = np.concatenate([measured_N2[None], true_N2 + error_BN2])
    rows = max(1, _BLOCK // (len(_SHARES) ** 2 * len(of_N)))
    blocks = [_gain(z_BN2[at : at + rows], points.C_22, of_N) for at in range(0, len(z_BN2), rows)]
    statistic_B = np.concatenate(blocks) * (dof / more)
    as_much = int((statistic_B[1:] >= statistic_B[0]).sum())
    return SharedTest(len(names), float(statistic_B[0]), (1 + as_much) / (1 + _DRAWS))


def _gain(z_BN2: Floats, C_22: Floats, of_N: npt.NDArray[np.intp]) -> Floats:
    """Squares saved by the families' own curves, over the squares they leave, [B]."""
    x_BN, y_BN = np.exp(z_BN2[..., 0]), np.exp(z_BN2[..., 1])
    share_G2 = np.array(list(product(_SHARES, _SHARES)))
    E_x_BG1 = share_G2[:, 0, None] * x_BN.min(axis=1)[:, None, None]
    E_y_BG1 = share_G2[:, 1, None] * y_BN.min(axis=1)[:, None, None]
    u_BGN, v_BGN = np.log(x_BN[:, None] - E_x_BG1), np.log(y_BN[:, None] - E_y_BG1)
    of_x_BGN = x_BN[:, None] / (x_BN[:, None] - E_x_BG1)

    def left(at_N: npt.NDArray[np.bool_]) -> Floats:
        u, v, of_x = (each[..., at_N] for each in (u_BGN, v_BGN, of_x_BGN))
        return _left(u, v, of_x, z_BN2[:, None, at_N, 1], E_y_BG1, C_22)

    shared_B = left(np.ones(len(of_N), bool)).min(axis=1)
    own_B = np.sum([left(of_N == family) for family in range(int(of_N.max()) + 1)], axis=0).min(axis=1)
    return np.asarray(np.maximum(shared_B - own_B, 0.0) / np.maximum(own_B, 1e-300))


def _left(u: Floats, v: Floats, of_x: Floats, ln_y: Floats, E_y: Floats, C_22: Floats) -> Floats:
    """Squares left by the best level and exponent, by draw and pair of E, [B, G]."""
    (xx, xy), (_, yy) = C_22.tolist()
    if u.shape[-1] == 1:
        return np.zeros(u.shape[:2])
    u = u - u.mean(axis=-1, keepdims=True)
    kappa = (u * v).sum(axis=-1, keepdims=True) / (u**2).sum(axis=-1, keepdims=True)
    level = v.mean(axis=-1, keepdims=True)
    for step in range(_STEPS + 1):
        power = np.exp(level + kappa * u)
        share = power / (power + E_y)
        m = share * kappa * of_x
        sd = np.sqrt(yy - 2 * m * xy + m**2 * xx)
        r = (ln_y - np.log(power + E_y)) / sd
        if step == _STEPS:
            return np.asarray((r**2).sum(axis=-1))
        a, b = share / sd, share * u / sd
        aa, ab, bb = ((one * two).sum(axis=-1, keepdims=True) for one, two in ((a, a), (a, b), (b, b)))
        ar, br = (a * r).sum(axis=-1, keepdims=True), (b * r).sum(axis=-1, keepdims=True)
        det = np.maximum(aa * bb - ab**2, 1e-300)
        level, kappa = level + (bb * ar - ab * br) / det, kappa + (aa * br - ab * ar) / det
    raise AssertionError("the last step returns")
