"""Fits a power law some of whose constants are given.

With theta = (ln C_ref, alpha, E), given constants leave theta = origin + free phi, and phi is searched by steps of
Gauss and Newton in ln y.

Shapes: N sizes, P parameters, F free numbers, B series.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, flat
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.pins import Pin
from rbpx.laws.power.regression import AT_BOUND, SHARES_OF_OFFSET, Regression, jacobian, line, ln_law, regression_at

PINNABLE: Final = {Method.ols: ("C", "alpha"), Method.offset: ("C", "alpha", "E")}
"""The constants of each method that can be given."""

NOTHING: Final[Mapping[str, float]] = {}
_STEPS: Final = 200
_CLOSE: Final = 1e-14  # of a number
_AGAINST: Final = 0.05  # a smaller p speaks against a value


@dataclass(frozen=True)
class Pinned:
    """A constant that was given.

    Attributes:
        name: of it.
        pin: what was given.
        p: of the test of the value against the points, the other constants free.
        free: what the points say of it without.
        now: what it is; of a prior with what the points add.
    """

    name: str
    pin: Pin
    p: float | None
    free: Estimate
    now: Estimate

    @property
    def is_refused(self) -> bool:
        """Whether the points speak against the value."""
        return self.p is not None and self.p < _AGAINST

    def record(self) -> dict[str, Any]:
        """In params."""
        of = {"value": self.pin.value, "sd": self.pin.sd, "p": self.p}
        return of | flat({"free": self.free, "now": self.now})


def regress_pinned(
    x_N: Floats, ln_y_N: Floats, method: Method, given: Mapping[str, float], ln_S_ref: float
) -> Regression:
    """Fit ln y by least squares with some constants given.

    Args:
        x_N: ln(S / S_ref), centred.
        ln_y_N: logarithms of the values.
        method: ols or offset.
        given: C, alpha or E; E below every y.
        ln_S_ref: logarithm of S_ref.
    """
    origin_P, free_PF = _span(method, given, ln_S_ref)
    smallest = float(np.exp(ln_y_N.min()))
    shares = SHARES_OF_OFFSET if method is Method.offset and "E" not in given else (0.0,)
    offsets = [given.get("E", max(share, 1e-3) * smallest) for share in shares]
    starts = [(*line(x_N, np.log(np.exp(ln_y_N) - (E if method is Method.offset else 0.0))), E) for E in offsets]
    start_BP = np.array(starts)[:, : len(origin_P)]
    theta_BP = _search(x_N, np.tile(ln_y_N, (len(start_BP), 1)), start_BP, origin_P, free_PF)
    best = int(np.argmin(((ln_y_N - ln_law(x_N, theta_BP)) ** 2).sum(axis=1)))
    if method is Method.offset and "E" not in given and theta_BP[best, 2] <= AT_BOUND * smallest:
        return replace(regress_pinned(x_N, ln_y_N, method, {**given, "E": 0.0}, ln_S_ref), at_bound=True)
    return regression_at(x_N, ln_y_N, theta_BP[best], np.ones(len(x_N)), starts=tuple(starts), free_PF=free_PF)


def refit_pinned(regression: Regression, x_N: Floats, ln_y_BN: Floats) -> Floats:
    """The same on each of B replicates, [B, P]."""
    free_PF, theta_P = regression.free_PF, regression.theta_P
    assert free_PF is not None  # of `regress_pinned`
    return _search(x_N, ln_y_BN, np.tile(theta_P, (len(ln_y_BN), 1)), theta_P, free_PF)


def _span(method: Method, given: Mapping[str, float], ln_S_ref: float) -> tuple[Floats, Floats]:
    """Origin [P] and free directions [P, F] of theta; ln C_ref = ln C - alpha ln S_ref."""
    names = PINNABLE[method]
    origin_P = np.array([given.get(name, 0.0) for name in names])
    free_PF = np.eye(len(names))[:, [at for at, name in enumerate(names) if name not in given]]
    if "C" in given:
        origin_P[0] = np.log(given["C"])
        to_ref_PP = np.eye(len(names))
        to_ref_PP[0, 1] = -ln_S_ref
        origin_P, free_PF = to_ref_PP @ origin_P, to_ref_PP @ free_PF
    return origin_P, free_PF


def _search(x_N: Floats, ln_y_BN: Floats, start_BP: Floats, origin_P: Floats, free_PF: Floats) -> Floats:
    """Steps of Gauss and Newton of each series until none gains; one that does not descend is halved."""
    phi_BF: Floats = np.asarray(np.linalg.lstsq(free_PF, (start_BP - origin_P).T, rcond=None)[0].T)

    def at(phi_BF: Floats) -> tuple[Floats, Floats, Floats]:
        theta_BP = origin_P + phi_BF @ free_PF.T
        with np.errstate(all="ignore"):  # a step too far has no sum of squares, and is not taken
            left_BN = ln_y_BN - ln_law(x_N, theta_BP)
            squares_B = (left_BN**2).sum(axis=1)
        return theta_BP, left_BN, np.where(np.isfinite(squares_B), squares_B, np.inf)

    theta_BP, left_BN, squares_B = at(phi_BF)
    damping_B = np.zeros(len(phi_BF))
    for _ in range(_STEPS if free_PF.size else 0):
        J_BNF = jacobian(x_N, theta_BP) @ free_PF
        unit_BF = np.linalg.norm(J_BNF, axis=1)
        unit_BF = np.where(unit_BF > 0, unit_BF, 1.0)
        J_BNF = J_BNF / unit_BF[:, None]
        A_BFF = J_BNF.swapaxes(1, 2) @ J_BNF + (damping_B[:, None, None] + 1e-15) * np.eye(free_PF.shape[1])
        step_BF = np.linalg.solve(A_BFF, J_BNF.swapaxes(1, 2) @ left_BN[..., None])[..., 0] / unit_BF
        new_theta_BP, new_left_BN, new_squares_B = at(phi_BF + step_BF)
        better_B = new_squares_B <= squares_B
        moves_B = (np.abs(step_BF) > _CLOSE * np.maximum(np.abs(phi_BF), _CLOSE)).any(axis=1)
        gains_B = better_B & (squares_B - new_squares_B > _CLOSE * squares_B)
        phi_BF = np.where(better_B[:, None], phi_BF + step_BF, phi_BF)
        theta_BP = np.where(better_B[:, None], new_theta_BP, theta_BP)
        left_BN = np.where(better_B[:, None], new_left_BN, left_BN)
        squares_B = np.where(better_B, new_squares_B, squares_B)
        damping_B = np.where(better_B, damping_B / 8, np.maximum(8 * damping_B, 1e-3))
        if not np.any(gains_B | (moves_B & ~better_B & (damping_B < 1e6))):
            break
    return theta_BP
