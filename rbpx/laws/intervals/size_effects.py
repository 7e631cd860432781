"""Uncertainty of what several families share, where models of one size err alike.

Two trainings of one shape stand above or below a law together: their residuals share an effect of the size (its depth
and width, or the misfit of the law there). So residuals are e = u(size) + v, with variances tau^2 and omega^2, and a
family more does not narrow an interval by what it repeats.

Shapes: M points, P parameters, B resamples of the documents.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, around, half_width, student_t
from rbpx.laws.intervals.stacked import Stacked
from rbpx.laws.numeric.arrays import Floats

_WORST_CONDITION: Final = 1e8


@dataclass(frozen=True)
class SharedError:
    """The error of one linear combination of the values.

    Attributes:
        scatter: its standard error from the scatter of the models, effects of sizes included.
        dof: degrees of freedom of that, by Satterthwaite.
        explained: the part of it that the documents explain, a standard deviation.
        shared: variance over documents that no residual shows.
        unit: variance of the combination if the points scattered independently by 1.
        n_documents: that were resampled; None where they are not counted.
    """

    scatter: float
    dof: float
    explained: float
    shared: float
    unit: float
    n_documents: int | None = None

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval."""
        return half_width(self.shared, self.scatter, self.dof, self.explained, n_documents=self.n_documents)

    @property
    def variance_of_one(self) -> float:
        """Variance that each point would have, were all independent, for the combination to have this scatter."""
        return self.scatter**2 / self.unit

    @property
    def beside_scatter(self) -> float:
        """What documents add to the square of the half width."""
        t = student_t(self.dof)
        return max(self.half_width**2 - (t * self.scatter) ** 2, 0.0) if math.isfinite(t) else 0.0

    def around(self, value: float) -> Estimate:
        """A number with its interval; without ends where no degree of freedom is left."""
        half = self.half_width
        return Estimate(value, *(around(value, half) if math.isfinite(half) else (None, None)))


def shared_error(points: Stacked, jacobian_MP: Floats, residual_M: Floats, at: int) -> SharedError:
    """The error of one parameter of a least-squares fit of all points.

    With K the indicator of points of one size, r = M e the residuals and l the influence of each point, the wanted
    variance omega^2 l'l + tau^2 l'K l is the combination a r'r + b r'K r whose mean it is. Where all families have the
    same sizes this is the mean square of the size means about their law (N - P of one family degrees of freedom), so
    the interval is exact for any correlation between families. Otherwise Satterthwaite's degrees of freedom are those
    at the estimated variances. If no two families share a size, effects of sizes cannot be seen, and residuals count
    as independent.

    Args:
        points: of all families, with their resamples.
        jacobian_MP: derivatives of ln y; of full rank.
        residual_M: ln y, measured minus fitted.
        at: number of the parameter.

    Source:
        F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110; S. R. Searle, G. Casella, C. E. McCulloch, Variance
        Components (1992), section 5.3 (quadratic forms and their means).
    """
    L_PM = np.linalg.pinv(jacobian_MP)
    rest_MM = np.eye(len(residual_M)) - jacobian_MP @ L_PM
    influence_M, same_MM = L_PM[at], points.same_size_MM
    form_MM = _variance_form(rest_MM, same_MM, influence_M)
    tau2, omega2 = _components(rest_MM, same_MM, residual_M)
    variance = float(residual_M @ form_MM @ residual_M)
    if variance < 0:  # an unbiased estimate may be; sizes then have no effect that shows
        form_MM = rest_MM * float(influence_M @ influence_M) / float(np.trace(rest_MM))
        variance, tau2 = float(residual_M @ form_MM @ residual_M), 0.0
    spread_MM = form_MM @ (tau2 * same_MM + omega2 * np.eye(len(residual_M)))
    rounds = float(np.sum(spread_MM * spread_MM.T))
    dof = float(np.trace(spread_MM)) ** 2 / rounds if rounds > 0 else float(np.trace(rest_MM))
    text = explained = 0.0
    if points.change_BM is not None:
        change_BM = points.change_BM - points.change_BM.mean(axis=0)
        text = float((change_BM @ influence_M).var(ddof=1))
        explained = max(float(np.einsum("bm,mn,bn->b", change_BM, form_MM, change_BM).mean()), 0.0)
    shared = max(text - explained, 0.0)
    unit = float(influence_M @ influence_M)
    return SharedError(variance**0.5, dof, explained**0.5, shared, unit, points.n_documents)


def _variance_form(rest_MM: Floats, same_MM: Floats, influence_M: Floats) -> Floats:
    """The matrix A whose quadratic form in the residuals has the wanted variance as its mean."""
    wanted = np.array([influence_M @ influence_M, influence_M @ same_MM @ influence_M])
    both = _means(rest_MM, same_MM)
    if np.linalg.cond(both) > _WORST_CONDITION:  # no two families share a size, or nothing else is left
        return np.asarray(rest_MM * (wanted[1] / np.trace(rest_MM @ same_MM)))
    a, b = np.linalg.solve(both, wanted)
    return np.asarray(rest_MM @ (a * np.eye(len(rest_MM)) + b * same_MM) @ rest_MM)


def _components(rest_MM: Floats, same_MM: Floats, residual_M: Floats) -> tuple[float, float]:
    """tau^2 and omega^2, neither below 0."""
    squares = np.array([residual_M @ residual_M, residual_M @ same_MM @ residual_M])
    both = _means(rest_MM, same_MM)
    if np.linalg.cond(both) > _WORST_CONDITION:
        return 0.0, float(squares[0] / both[0, 0])
    omega2, tau2 = np.linalg.solve(both, squares)
    if tau2 < 0:
        return 0.0, float(squares[0] / both[0, 0])
    return (float(tau2), float(omega2)) if omega2 >= 0 else (float(squares[0] / both[0, 1]), 0.0)


def _means(rest_MM: Floats, same_MM: Floats) -> Floats:
    """Means of r'r and r'K r, per omega^2 and tau^2; symmetric."""
    of_size_MM = rest_MM @ same_MM
    mixed = float(np.trace(of_size_MM))
    return np.array([[float(np.trace(rest_MM)), mixed], [mixed, float(np.sum(of_size_MM * of_size_MM.T))]])
