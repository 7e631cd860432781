"""One law for several families, y = E + C_f S^(-alpha): exponent and E shared, constants their own; fit and profiles.

Shapes: F families, M points, P = F + 2 parameters in the order ln_C_ref of each family, alpha, E.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.optimize import brentq

from rbpx.laws.intervals.lack_of_fit import Stacked
from rbpx.laws.numeric import Floats
from rbpx.laws.solver import End, Local, Sets, minimise, squares

Ends = tuple[float | None, float | None]

_SHARES_OF_OFFSET: Final = (0.0, 0.3, 0.6, 0.9)  # of the smallest y, where the search for an offset starts
_AT_BOUND: Final = 1e-7  # of the smallest y: an offset below it is 0
_STEEPEST: Final = 4.0  # exponents beyond it are a step between two sizes, no power law
_END: Final = End(step=1e-9)


@dataclass(frozen=True, eq=False)
class SharedLaw:
    """A fitted law of several families.

    Attributes:
        ln_C_F: logarithm of each family's constant at S_ref.
        alpha: the shared exponent.
        E: the shared offset, 0 for a power law.
        jacobian_MP: derivatives of ln y by ln_C_ref of each family and alpha, and by E where it is free.
        own_MQ: the same with an exponent for each family.
        residual_M: ln y, measured minus fitted.
        converged: the search ended at a minimum.
        at_bound: E was sought and is 0.
    """

    ln_C_F: Floats
    alpha: float
    E: float
    jacobian_MP: Floats
    own_MQ: Floats
    residual_M: Floats
    converged: bool = True
    at_bound: bool = False

    @property
    def squares(self) -> float:
        """Sum of the squared residuals."""
        with np.errstate(over="ignore"):  # a step too far has no finite cost, and is not taken
            return float(self.residual_M @ self.residual_M)


def fit_line(points: Stacked, alpha: float | None = None) -> SharedLaw:
    """The power law, E = 0, in closed form: lines in ln y with one slope and their own constants.

    Args:
        points: of all families.
        alpha: an exponent to keep.
    """
    x_M, y_M = _about_families(points, points.x_M), _about_families(points, points.ln_y_M)
    slope = -float(x_M @ y_M) / float(x_M @ x_M) if alpha is None else alpha
    of_family = points.of_family_MF
    ln_C_F = of_family.T @ (points.ln_y_M + slope * points.x_M) / of_family.sum(axis=0)
    return _law(points, ln_C_F, slope, 0.0, frees_E=False)


def fit_offset(points: Stacked) -> SharedLaw:
    """The law with an offset E >= 0, from several starts."""
    starts = [_from_line(points, share * _smallest(points)) for share in _SHARES_OF_OFFSET]
    best = _searched(points, starts)
    line = fit_line(points)
    if best.E <= _AT_BOUND * _smallest(points) or best.squares >= line.squares:
        return replace(line, at_bound=True)
    return best


def profile_ends(points: Stacked, best: SharedLaw, name: str, step: float, limit: float) -> Ends:
    """Where the best law that keeps one parameter passes a sum of squares, to either side of the fit.

    Args:
        points: of all families.
        best: the fit with an offset, which may be 0.
        name: "alpha" or "E".
        step: a first guess of the distance.
        limit: the sum of squares.

    Returns:
        Both ends; None where the sum of squares stays below the limit. E ends at 0.
    """
    centre, law = float(getattr(best, name)), best
    known = {centre: float(best.squares**0.5 - limit**0.5)}

    def over(value: float) -> float:
        nonlocal law
        if value not in known:  # each search begins at the last law, so a second one may end elsewhere
            law = _searched(points, [law, _from_line(points, 0.1 * _smallest(points))], **{name: value})
            known[value] = float(law.squares**0.5 - limit**0.5)
        return known[value]

    lowest, highest = (0.0, float(np.exp(points.ln_y_M.max()))) if name == "E" else (-_STEEPEST, _STEEPEST)
    down, up = crossing(over, centre, -step, lowest), crossing(over, centre, step, highest)
    if name == "E" and down is None:
        down = 0.0
    return down, up


def crossing(over: Callable[[float], float], centre: float, step: float, last: float) -> float | None:
    """Where a function that is below 0 at the centre passes 0, in growing steps; None where not until `last`."""
    inside, outside = centre, centre + step
    while (last - outside) * step > 0:
        if over(outside) > 0:
            return float(brentq(over, inside, outside, xtol=1e-4 * abs(step), rtol=1e-8))
        inside, step = outside, 1.6 * step
        outside = inside + step
    if inside == last or over(last) <= 0:
        return None
    return float(brentq(over, inside, last, xtol=1e-4 * abs(step), rtol=1e-8))


def _searched(
    points: Stacked, starts: Sequence[SharedLaw], alpha: float | None = None, E: float | None = None
) -> SharedLaw:
    """The best law with E >= 0 from several starts; alpha or E may be kept."""
    n = points.n_families
    kept_P = np.array([*[math.nan] * n, *(math.nan if each is None else each for each in (alpha, E))])
    start_PB = np.array([[*each.ln_C_F, each.alpha, each.E] for each in starts]).T
    lower_P = np.where(np.isnan(kept_P), [*[-np.inf] * (n + 1), 0.0], kept_P)

    def at(theta_P: Floats) -> SharedLaw:
        return _law(points, theta_P[:n], float(theta_P[n]), float(theta_P[n + 1]))

    def objective(theta_PB: Floats, _: Sets) -> Local:
        laws = [at(theta_P) for theta_P in theta_PB.T]
        residual_MB = np.stack([-law.residual_M for law in laws], axis=-1)
        return squares(residual_MB, np.stack([law.jacobian_MP.T for law in laws], axis=-1))

    found = minimise(objective, start_PB, lower_P, np.where(np.isnan(kept_P), np.inf, kept_P), _END)
    return replace(at(found.theta_PB[:, found.best]), converged=bool(found.converged_B[found.best]))


def _law(points: Stacked, ln_C_F: Floats, alpha: float, E: float, frees_E: bool = True) -> SharedLaw:
    ln_power_M = ln_C_F[points.family_M] - alpha * points.x_M
    ln_law_M = np.logaddexp(ln_power_M, np.log(E)) if E > 0 else ln_power_M
    share_M = np.exp(ln_power_M - ln_law_M)[:, None]
    of_family, of_E = points.of_family_MF, [np.exp(-ln_law_M)] if frees_E else []
    constants, slope_M = of_family * share_M, -points.x_M[:, None] * share_M
    shared = np.column_stack([constants, slope_M, *of_E])
    own = np.column_stack([constants, of_family * slope_M, *of_E])
    return SharedLaw(ln_C_F, alpha, E, shared, own, points.ln_y_M - ln_law_M)


def _from_line(points: Stacked, E: float) -> SharedLaw:
    """The closed form of the logarithms of y - E, as a start."""
    line = fit_line(replace(points, ln_y_M=np.log(np.exp(points.ln_y_M) - E)))
    return replace(line, E=E)


def _smallest(points: Stacked) -> float:
    return float(np.exp(points.ln_y_M.min()))


def _about_families(points: Stacked, values_M: Floats) -> Floats:
    of_family = points.of_family_MF
    return np.asarray(values_M - (of_family.T @ values_M / of_family.sum(axis=0))[points.family_M])
