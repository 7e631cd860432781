"""A fitted surface y(S, D): values, intervals of functions of its constants, and the optimum of a compute budget.

Shapes: N points, B replicates, R the fit and the replicates, P numbers of theta, G points of a grid.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize.elementwise import find_minimum

from rbpx.laws.intervals.estimate import LEVEL, MIN_REPLICATES, MOST_LEFT_OUT, Estimate, from_stderr
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.equations import SurfaceForm
from rbpx.laws.surface.runs import Coordinates, six_S


@dataclass(frozen=True, eq=False)
class SurfaceParameters:
    """The constants of a surface, and those of each replicate of the runs.

    Attributes:
        theta_BP: NaN where a replicate could not be fitted.
        n_free: fitted constants.
        residual_N: ln y_fit - ln y.
        fixed_P: mask of the fixed numbers of theta.
    """

    form: SurfaceForm
    x: Coordinates
    theta_P: Floats
    theta_BP: Floats
    n_runs: int
    n_free: int
    residual_N: Floats
    fixed_P: NDArray[np.bool_]
    weight_N: Floats | None = None

    @property
    def theta_RP(self) -> Floats:
        """Of the fit and of each replicate."""
        return np.vstack([self.theta_P, self.theta_BP])

    def ln_y(self, S: ArrayLike, D: ArrayLike, U: ArrayLike | None = None) -> Floats:
        """Ln y at other points, of the fit and of each replicate, [R, N]."""
        with np.errstate(invalid="ignore"):  # replicates without a fit
            x = Coordinates.of(np.log(S), np.log(D), U).about(self.x.ln_S_ref, self.x.ln_D_ref)
            return self.form.evaluate(x, self.theta_RP)[0] + math.log(self.form.y_ref)

    def constants(self) -> dict[str, Floats]:
        """Each constant of the fit and of the replicates."""
        return self.form.constants(self.x, self.theta_RP)

    def estimate(self, number_R: Floats, of_run: float = 0.0, p: float = 1 - LEVEL) -> Estimate:
        """A number with its interval over runs, by Student's t with n_runs - n_free degrees of freedom.

        None where more than 5 % of the replicates lack the number. `of_run` is the standard deviation of a new run
        about the surface.
        """
        value, usable_B = float(number_R[0]), number_R[1:][np.isfinite(number_R[1:])]
        if not math.isfinite(value):
            return Estimate()
        dof = self.n_runs - self.n_free
        if len(usable_B) < max(MIN_REPLICATES, (1 - MOST_LEFT_OUT) * (len(number_R) - 1)) or dof < 1:
            return Estimate(value)
        # Under exponential weights the variance of a mean of n numbers is (n - 1) / (n + 1) of the unbiased one.
        with np.errstate(over="ignore"):  # for constants that no replicate determines
            of_replicates = float(usable_B.var(ddof=1)) * (self.n_runs + 1) / (self.n_runs - 1)
        return from_stderr(value, math.sqrt(of_replicates + of_run**2), dof, p)

    def predict(
        self, S: float, D: float, U: float | None = None, new_run: bool = False, p: float = 1 - LEVEL
    ) -> Estimate:
        """Predicts y at another point, with the interval of the surface or of one new run."""
        ln_y_R1 = self.ln_y([S], [D], None if U is None else [U])
        return self.estimate(ln_y_R1[:, 0], self.scatter if new_run else 0.0, p).exp()

    @property
    def scatter(self) -> float:
        """Standard deviation of ln y of one run about the surface; NaN where no degree of freedom is left."""
        dof = self.n_runs - self.n_free
        if dof <= 0:
            return math.nan
        return math.sqrt(float(np.average(self.residual_N**2, weights=self.weight_N)) * self.n_runs / dof)


_REACH: Final = math.log(1e6)  # of ln S, around the sizes of the runs
_PLACES: Final = 301


@dataclass(frozen=True)
class Optimum:
    """The best run of C training FLOPs; None where there is none, or none was found."""

    C: float
    S: Estimate
    D: Estimate
    y: Estimate


def optimum(
    surface: SurfaceParameters,
    C: float,
    flops_per_token: Callable[[Floats], Floats] = six_S,
    U: float | None = None,
    p: float = 1 - LEVEL,
) -> Optimum:
    """The optimum of a budget, with intervals at level 1 - p over runs, by a search along the budget.

    `flops_per_token` is 6 times all parameters where the head counts. Tokens beyond U are repeated. S, D and y are None
    where no minimum lies within a factor of 1e6 of the sizes of the runs.

    Raises:
        ValueError: the budget is not positive and finite.
    """
    if np.ndim(C) or np.iscomplexobj(C) or not 0 < C < math.inf:
        raise ValueError(f"a budget must be one number, positive and finite, got {C}")
    theta_RP, x = surface.theta_RP, surface.x
    ln_S_N = x.s_N + x.ln_S_ref
    ln_S_G = np.linspace(ln_S_N.min() - _REACH, ln_S_N.max() + _REACH, _PLACES)

    def ln_D(ln_S: Floats) -> Floats:
        return np.asarray(math.log(C) - np.log(flops_per_token(np.exp(ln_S))))

    def ln_y(ln_S_RG: Floats, theta_RP: Floats) -> Floats:
        at = Coordinates.of(ln_S_RG, ln_D(ln_S_RG), U).about(x.ln_S_ref, x.ln_D_ref)
        with np.errstate(all="ignore"):
            return surface.form.evaluate(at, theta_RP)[0]

    ln_y_RG = ln_y(ln_S_G, theta_RP)
    ln_y_RG = np.where(np.isfinite(ln_y_RG), ln_y_RG, np.inf)
    at_R, least_R = ln_y_RG.argmin(axis=1), ln_y_RG.min(axis=1)
    # A minimum has to rise on both sides; a y that levels off has none.
    inner = np.flatnonzero((least_R < ln_y_RG[:, 0]) & (least_R < ln_y_RG[:, -1]))
    before, here, after = (ln_S_G[at_R[inner] + step] for step in (-1, 0, 1))
    found = find_minimum(
        lambda ln_S_R, *theta_R: ln_y(ln_S_R[:, None], np.column_stack(theta_R))[:, 0],
        (before, here, after),
        args=tuple(theta_RP[inner].T),
    )
    of_RV = np.full((len(theta_RP), 3), np.nan)
    of_RV[inner] = np.column_stack([found.x, ln_D(found.x), found.f_x + math.log(surface.form.y_ref)])
    S, D, y = (surface.estimate(each_R, p=p).exp() for each_R in of_RV.T)
    return Optimum(C, S, D, y)


def split(surface: SurfaceParameters) -> tuple[Estimate, Estimate]:
    """The exponents a and b of S ~ C^a and D ~ C^b at chinchilla's optimum (arXiv 2203.15556, eq. 4)."""
    of = surface.constants()
    with np.errstate(all="ignore"):
        a_R = of["beta"] / (of["alpha"] + of["beta"])
    return surface.estimate(a_R), surface.estimate(1 - a_R)
