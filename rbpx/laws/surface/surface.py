"""A fitted surface y(S, D): values, intervals of functions of its constants, and the optimum of a compute budget.

Shapes: N points, B replicates or sets of constants, P numbers of theta, G points of a grid.
"""

import math
from collections.abc import Callable, Mapping, Sequence
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
        theta_BP: of the replicates; NaN where one could not be fitted.
        n_runs: resampled runs.
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

    def ln_y(self, S: ArrayLike, D: ArrayLike, U: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Returns ln y of the fit, [N], and of each replicate, [B, N], at other points; U None means no repetition."""
        theta = np.vstack([self.theta_P, self.theta_BP])
        with np.errstate(invalid="ignore"):  # replicates without a fit
            x = Coordinates.of(np.log(S), np.log(D), U).about(self.x.ln_S_ref, self.x.ln_D_ref)
            ln_y = self.form.evaluate(x, theta)[0] + math.log(self.form.y_ref)
        return ln_y[0], ln_y[1:]

    def constants(self) -> dict[str, tuple[float, Floats]]:
        """Returns each constant of the fit, and of the replicates, [B]."""
        of_all = self.form.constants(self.x, np.vstack([self.theta_P, self.theta_BP]))
        return {name: (float(each[0]), each[1:]) for name, each in of_all.items()}

    def estimate(self, value: float, replicate_B: Floats, of_run: float = 0.0, p: float = 1 - LEVEL) -> Estimate:
        """Returns a number with its interval over runs, by Student's t with n_runs - n_free degrees of freedom.

        None where more than 5 % of the replicates lack the number, or no degree of freedom is left. `of_run` is the
        standard deviation of a new run about the surface.
        """
        if not math.isfinite(value):
            return Estimate()
        usable_B = replicate_B[np.isfinite(replicate_B)]
        dof = self.n_runs - self.n_free
        if len(usable_B) < max(MIN_REPLICATES, (1 - MOST_LEFT_OUT) * len(replicate_B)) or dof < 1:
            return Estimate(value)
        # Under exponential weights the variance of a mean of n numbers is (n - 1) / (n + 1) of the unbiased one.
        with np.errstate(over="ignore"):  # for constants that no replicate determines
            of_replicates = float(usable_B.var(ddof=1)) * (self.n_runs + 1) / (self.n_runs - 1)
        return from_stderr(value, math.sqrt(of_replicates + of_run**2), dof, p)

    def of_constants(self, number: Callable[[Mapping[str, Floats]], Floats]) -> Estimate:
        """Returns a function of the constants, by name [B] in, [B] out, with its interval."""
        of_all = self.form.constants(self.x, np.vstack([self.theta_P, self.theta_BP]))
        with np.errstate(all="ignore"):
            values = number(of_all)
        return self.estimate(float(values[0]), values[1:])

    def predict(
        self, S: float, D: float, U: float | None = None, new_run: bool = False, p: float = 1 - LEVEL
    ) -> Estimate:
        """Predicts y at another point, with the interval of the surface or, with `new_run`, of one new run."""
        (ln_y,), ln_y_B1 = self.ln_y([S], [D], None if U is None else [U])
        return self.estimate(float(ln_y), ln_y_B1[:, 0], self.scatter if new_run else 0.0, p).exp()

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
    """The best run of C training FLOPs; None where there is no optimum, or none was found."""

    C: float
    S: Estimate
    D: Estimate
    y: Estimate


def optima(
    surface: SurfaceParameters,
    budgets: Sequence[float],
    flops_per_token: Callable[[Floats], Floats] = six_S,
    U: float | None = None,
) -> list[Optimum]:
    """Returns the optimum of each budget, with 95 % intervals over runs, by a search along the budget.

    `flops_per_token` is 6 times all parameters where the head counts. Tokens beyond U are repeated. S, D and y are None
    where A, B, alpha or beta is at its bound, or no minimum lies within a factor of 1e6 of the sizes of the runs;
    without ends where that holds for more than 5 % of the replicates.

    Raises:
        ValueError: a budget is not positive and finite.
    """
    if not all(0 < C < math.inf for C in budgets):
        raise ValueError(f"a budget must be positive and finite, got {list(budgets)}")
    return [_optimum(surface, C, flops_per_token, U) for C in budgets]


def _optimum(
    surface: SurfaceParameters, C: float, flops_per_token: Callable[[Floats], Floats], U: float | None
) -> Optimum:
    theta_BP, x = np.vstack([surface.theta_P, surface.theta_BP]), surface.x
    ln_S_N = x.s_N + x.ln_S_ref
    ln_S_G = np.linspace(ln_S_N.min() - _REACH, ln_S_N.max() + _REACH, _PLACES)

    def ln_D(ln_S: Floats) -> Floats:
        return np.asarray(math.log(C) - np.log(flops_per_token(np.exp(ln_S))))

    def ln_y(ln_S_BG: Floats, theta_BP: Floats) -> Floats:
        at = Coordinates.of(ln_S_BG, ln_D(ln_S_BG), U).about(x.ln_S_ref, x.ln_D_ref)
        with np.errstate(all="ignore"):
            return surface.form.evaluate(at, theta_BP)[0]

    ln_y_BG = ln_y(ln_S_G, theta_BP)
    ln_y_BG = np.where(np.isfinite(ln_y_BG), ln_y_BG, np.inf)
    at_B, least_B = ln_y_BG.argmin(axis=1), ln_y_BG.min(axis=1)
    # A minimum has to rise on both sides; a y that levels off has none.
    inner = np.flatnonzero((least_B < ln_y_BG[:, 0]) & (least_B < ln_y_BG[:, -1]))
    before, here, after = (ln_S_G[at_B[inner] + step] for step in (-1, 0, 1))
    found = find_minimum(
        lambda ln_S_B, *theta_B: ln_y(ln_S_B[:, None], np.column_stack(theta_B))[:, 0],
        (before, here, after),
        args=tuple(theta_BP[inner].T),
    )
    of_BV = np.full((len(theta_BP), 3), np.nan)
    of_BV[inner] = np.column_stack([found.x, ln_D(found.x), found.f_x + math.log(surface.form.y_ref)])
    S, D, y = (surface.estimate(float(each[0]), each[1:]).exp() for each in of_BV.T)
    return Optimum(C, S, D, y)


def split(surface: SurfaceParameters) -> tuple[Estimate, Estimate]:
    """Returns the exponents a and b of S ~ C^a and D ~ C^b at chinchilla's optimum (arXiv 2203.15556, eq. 4).

    a = beta / (alpha + beta).
    """
    a = surface.of_constants(lambda of: of["beta"] / (of["alpha"] + of["beta"]))
    b = surface.of_constants(lambda of: of["alpha"] / (of["alpha"] + of["beta"]))
    return a, b
