"""Fits a power law some of whose constants are given.

With theta = (ln C_ref, alpha, E), given constants leave theta = origin + free phi, and phi is searched for by the batch
solver.

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
from rbpx.laws.solver import End, Local, Sets, minimise, squares

PINNABLE: Final = {Method.ols: ("C", "alpha"), Method.offset: ("C", "alpha", "E")}
"""The constants of each method that can be given."""

NOTHING: Final[Mapping[str, float]] = {}
_CLOSE: Final = 1e-12  # of a number
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
    """The best theta of each series, [B, P]."""
    if not free_PF.size:
        return np.tile(origin_P, (len(ln_y_BN), 1))

    def objective(phi_FB: Floats, sets: Sets) -> Local:
        theta_BP = origin_P + (free_PF @ phi_FB).T
        left_BN, J_BNP = ln_law(x_N, theta_BP) - ln_y_BN[sets], jacobian(x_N, theta_BP)
        return squares(left_BN.T, np.moveaxis(J_BNP @ free_PF, 0, -1).swapaxes(0, 1))

    phi_FB: Floats = np.asarray(np.linalg.lstsq(free_PF, (start_BP - origin_P).T, rcond=None)[0])
    found = minimise(objective, phi_FB, end=End(step=_CLOSE))
    return np.asarray(origin_P + (free_PF @ found.theta_PB).T)
