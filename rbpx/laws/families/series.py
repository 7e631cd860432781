"""Fits laws of several series, y = E + C_f x^(-alpha), with exponent and E shared or one each.

Shapes: F series, M points of all of them, P parameters: ln C at the reference of each series, exponents, offsets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq

from rbpx.laws.intervals.lack_of_fit import FamilyPoints
from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, Sets, StoppingRule, minimise, squares

_SHARES_OF_OFFSET: Final = (0.0, 0.3, 0.6, 0.9)  # of the smallest y, where the search for an offset starts
_STEEPEST: Final = 4.0  # a larger exponent is a step between two sizes, not a power law
_END: Final = StoppingRule(step=1e-10, most_steps=1000)


@dataclass(frozen=True, eq=False)
class SeriesLaw:
    """A law of several series.

    Attributes:
        theta_P: ln C of each series, exponents, offsets.
        n_alpha: number of exponents: 1, or one for each series.
        n_E: number of offsets: none, 1, or one for each series.
        E: the fixed offset of all series, where none is a parameter.
    """

    points: FamilyPoints
    theta_P: Floats
    n_alpha: int = 1
    n_E: int = 0
    E: float = 0.0
    converged: bool = True

    def places(self, of: Any) -> tuple[Any, Any, Any]:
        """Returns the indices in theta of ln C, alpha and E of one or many series."""
        first = self.points.n_families
        return of, first + of * (self.n_alpha > 1), first + self.n_alpha + of * (self.n_E > 1)

    def constants(self, of: Any) -> tuple[Any, Any, Any]:
        """Returns ln C at the reference, alpha and E of one or many series."""
        ln_C, alpha, E = self.places(of)
        return self.theta_P[ln_C], self.theta_P[alpha], self.theta_P[E] if self.n_E else self.E

    @property
    def ln_law_M(self) -> Floats:
        """The law's ln y at the points."""
        ln_C_M, alpha_M, E_M = self.constants(self.points.family_M)
        with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
            return np.asarray(np.logaddexp(ln_C_M - alpha_M * self.points.x_M, np.log(E_M)))

    @property
    def residual_M(self) -> Floats:
        """Measured minus fitted ln y."""
        return self.points.ln_y_M - self.ln_law_M

    @property
    def squares(self) -> float:
        """Sum of the squared residuals."""
        return float(self.residual_M @ self.residual_M)

    @property
    def jacobian_MP(self) -> Floats:
        """Derivatives of ln y; those by E also at E = 0, whose bound leaves it uncertain upwards."""
        ln_C_M, alpha_M, _ = self.constants(self.points.family_M)
        x_M, ln_law_M = self.points.x_M, self.ln_law_M
        share_M = np.exp(ln_C_M - alpha_M * x_M - ln_law_M)
        J_MP = np.zeros((len(x_M), len(self.theta_P)))
        columns = (share_M, -x_M * share_M, np.exp(-ln_law_M))[: 3 if self.n_E else 2]
        for at, column_M in zip(self.places(self.points.family_M), columns, strict=False):
            J_MP[np.arange(len(x_M)), at] = column_M
        return J_MP

    @property
    def own_MQ(self) -> Floats:
        """The derivatives with an exponent for each series."""
        n = self.points.n_families
        constants_F, alpha, E = np.split(self.theta_P, [n, n + self.n_alpha])
        own_Q = np.concatenate([constants_F, np.broadcast_to(alpha, n), E])
        return replace(self, theta_P=own_Q, n_alpha=n).jacobian_MP


def fit_series(
    points: FamilyPoints,
    n_alpha: int = 1,
    n_E: int = 0,
    E: float = 0.0,
    kept: Mapping[int, float] | None = None,
    start: SeriesLaw | None = None,
) -> SeriesLaw:
    """Fits the law by least squares of ln y with E >= 0, the best of several searches; a line where E is 0.

    E is at most the smallest y, unless parameters are held. `n_alpha`, `n_E` and `E` (below every y) are as in
    `SeriesLaw`; `kept` holds parameters fixed, by index; `start` is a nearby law.
    """
    line = _through(points, n_alpha, n_E, E)
    if not n_E and E == 0:
        return line
    smallest = float(np.exp(points.ln_y_M.min()))
    shares = () if not n_E else _SHARES_OF_OFFSET if start is None else (0.1,)
    starts = [_through(points, n_alpha, n_E, share * smallest) for share in shares] or [line]
    start_PB = np.array([each.theta_P for each in ([] if start is None else [start]) + starts]).T
    lower_P = np.array([-np.inf] * (len(start_PB) - n_E) + [0.0] * n_E)
    upper_P = np.full(len(start_PB), np.inf)
    if kept is None:
        of_each = [points.family_M == f for f in range(n_E)] if n_E > 1 else [np.s_[:]]
        upper_P[len(start_PB) - n_E :] = [np.exp(points.ln_y_M[of].min()) for of in of_each][:n_E]
    for at, value in (kept or {}).items():
        lower_P[at] = upper_P[at] = value

    def objective(theta_PB: Floats, _: Sets) -> LocalQuadratic:
        laws = [replace(line, theta_P=theta_P) for theta_P in theta_PB.T]
        residual_MB = np.stack([-law.residual_M for law in laws], axis=-1)
        return squares(residual_MB, np.stack([law.jacobian_MP.T for law in laws], axis=-1))

    found = minimise(objective, start_PB, lower_P, upper_P, _END)
    return replace(line, theta_P=found.theta_PB[:, found.best], converged=bool(found.converged_B[found.best]))


def _through(points: FamilyPoints, n_alpha: int, n_E: int, E: float) -> SeriesLaw:
    """Fits ln(y - E) in closed form."""
    of_family, x_M1 = points.of_family_MF, points.x_M[:, None]
    J_MP = np.hstack([of_family, -x_M1 * (of_family if n_alpha > 1 else 1)])
    theta_P = np.linalg.lstsq(J_MP, np.log(np.exp(points.ln_y_M) - E))[0]
    return SeriesLaw(points, np.append(theta_P, [E] * n_E), n_alpha, n_E, E)


def profile_ends(best: SeriesLaw, at: int, step: float, limit: float) -> tuple[float | None, float | None]:
    """Finds where the best law with the parameter `at` (the exponent or the one offset) held passes a sum of squares.

    Returns both ends, None where the sum stays below `limit`; E ends at 0. `step` is a first guess of the distance.
    """
    points, law, is_E = best.points, best, at == len(best.theta_P) - 1

    @cache  # each search starts at the last law, so repeating one may end elsewhere
    def over(value: float) -> float:
        nonlocal law
        law = fit_series(points, 1, 1, kept={at: value}, start=law)
        return float(law.squares**0.5 - limit**0.5)

    centre = float(best.theta_P[at])
    lowest, highest = (0.0, float(np.exp(points.ln_y_M.max()))) if is_E else (-_STEEPEST, _STEEPEST)
    down, up = crossing(over, centre, -step, lowest), crossing(over, centre, step, highest)
    return 0.0 if is_E and down is None else down, up


def crossing(over: Callable[[float], float], centre: float, step: float, last: float) -> float | None:
    """Finds where a function that is below 0 at the centre passes 0, in growing steps; None if not before `last`."""
    inside, outside = centre, centre + step
    while (last - outside) * step > 0:
        if over(outside) > 0:
            return float(brentq(over, inside, outside, xtol=1e-4 * abs(step), rtol=1e-8))
        inside, step = outside, 1.6 * step
        outside = inside + step
    if inside == last or over(last) <= 0:
        return None
    return float(brentq(over, inside, last, xtol=1e-4 * abs(step), rtol=1e-8))
