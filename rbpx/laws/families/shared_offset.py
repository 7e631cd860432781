"""One law for several families, y = E + C_f S^(-alpha): exponent and E shared, constants their own; fit and profiles.

Shapes: F families, M points, P = F + 2 parameters in the order ln_C_ref of each family, alpha, E.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rbpx.laws.intervals.lack_of_fit import Stacked
from rbpx.laws.numeric import Floats, least_squares
from rbpx.laws.power.regression import TOLERANCES

Ends = tuple[float | None, float | None]

_SHARES_OF_OFFSET: Final = (0.0, 0.3, 0.6, 0.9)  # of the smallest y, where the search for an offset starts
_AT_BOUND: Final = 1e-7  # of the smallest y: an offset below it is 0
_STEEPEST: Final = 4.0  # exponents beyond it are a step between two sizes, no power law
_GRADIENT_TOLERANCE: Final = 1e-6
_MOST_STEPS: Final = 200  # of a search for a profile
_MOST_HALVINGS: Final = 30
_SMALL_GAIN: Final = 1e-12  # of the sum of squares: a step that promises less is not taken


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
        converged: the gradient vanishes.
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
    """The law with an offset E >= 0, by lmfit from the best of several starts; its gradient is checked here."""
    starts = [_from_line(points, share * _smallest(points)) for share in _SHARES_OF_OFFSET]
    best = _search(points, min((_descend(points, start) for start in starts), key=lambda law: law.squares))
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
            law = _kept(points, law, name, value)
            known[value] = float(law.squares**0.5 - limit**0.5)
        return known[value]

    lowest, highest = (0.0, float(np.exp(points.ln_y_M.max()))) if name == "E" else (-_STEEPEST, _STEEPEST)
    down, up = crossing(over, centre, -step, lowest), crossing(over, centre, step, highest)
    if name == "E" and down is None:
        down = 0.0
    return down, up


def crossing(over: Callable[[float], float], centre: float, step: float, last: float) -> float | None:
    """Where a function that is below 0 at the centre passes 0, in growing steps; None where not until `last`."""
    from scipy.optimize import brentq  # a fifth of a second, which only several families need

    inside, outside = centre, centre + step
    while (last - outside) * step > 0:
        if over(outside) > 0:
            return float(brentq(over, inside, outside, xtol=1e-4 * abs(step), rtol=1e-8))
        inside, step = outside, 1.6 * step
        outside = inside + step
    if inside == last or over(last) <= 0:
        return None
    return float(brentq(over, inside, last, xtol=1e-4 * abs(step), rtol=1e-8))


def _kept(points: Stacked, near: SharedLaw, name: str, value: float) -> SharedLaw:
    """The best law with one parameter kept; that of E = 0 is a candidate, since the search stays inside its bound."""
    if name == "E":
        return _descend(points, near, E=value) if value > 0 else fit_line(points)
    start = near if near.E > 0 else _from_line(points, 0.1 * _smallest(points))
    return min(_descend(points, start, alpha=value), fit_line(points, alpha=value), key=lambda law: law.squares)


def _descend(points: Stacked, start: SharedLaw, alpha: float | None = None, E: float | None = None) -> SharedLaw:
    """Gauss and Newton's search with halved steps, for the many laws of a profile, of which each begins at the last."""
    n = points.n_families
    law = _law(points, start.ln_C_F, start.alpha if alpha is None else alpha, start.E if E is None else E)
    varied = [*range(n), *([n] if alpha is None else []), *([n + 1] if E is None and start.E > 0 else [])]
    theta = np.array([*law.ln_C_F, law.alpha, law.E])
    for _ in range(_MOST_STEPS):
        J = law.jacobian_MP[:, varied]
        step = np.linalg.lstsq(J, law.residual_M)[0]
        if float(np.sum((J @ step) ** 2)) <= _SMALL_GAIN * law.squares:
            break
        for halvings in range(_MOST_HALVINGS):
            moved = theta.copy()
            moved[varied] += step / 2**halvings
            closer = _law(points, moved[:n], float(moved[n]), float(moved[n + 1])) if moved[n + 1] >= 0 else law
            if closer.squares < law.squares:
                break
        else:
            break
        theta, law = moved, closer
    return law


def _search(points: Stacked, start: SharedLaw) -> SharedLaw:
    """Search by lmfit, E kept at 0 or above."""
    n = points.n_families

    def at(theta_P: Floats) -> SharedLaw:
        return _law(points, theta_P[:n], float(theta_P[n]), float(theta_P[n + 1]))

    theta_P, ended = least_squares(
        lambda theta_P: -at(theta_P).residual_M,
        lambda theta_P: at(theta_P).jacobian_MP,
        [*start.ln_C_F, start.alpha, max(start.E, 1e-3 * _smallest(points))],
        [*[-np.inf] * (n + 1), 0.0],
        [np.inf] * (n + 2),
        x_scale="jac",
        **TOLERANCES,
    )
    law = at(theta_P)
    gradient_P = law.jacobian_MP.T @ law.residual_M
    reach_P = np.abs(law.jacobian_MP).T @ np.abs(_about_families(points, points.ln_y_M))
    ended = ended and bool(np.all(np.abs(gradient_P) <= _GRADIENT_TOLERANCE * reach_P))
    return replace(law, converged=ended)


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
