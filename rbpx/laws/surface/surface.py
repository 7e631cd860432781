"""A surface y(S, D) with constants, and with those of each resample of the runs: its values, and intervals of anything.

Shapes: N points, B resamples, P numbers of theta.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.bootstrap import MIN_RESAMPLES, MOST_LEFT_OUT
from rbpx.laws.intervals.estimate import Estimate, around, half_width
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.surface.equations import Form
from rbpx.laws.surface.runs import Coordinates


@dataclass(frozen=True, eq=False)
class Surface:
    """A surface with given constants, and the same of each resample of the runs.

    Attributes:
        form: its equation.
        x: the coordinates of the points that it was fitted to.
        theta_P: its constants as the search counts them.
        theta_BP: those of the resamples; NaN where one could not be fitted.
        n_runs: that were resampled.
        n_free: constants that were fitted.
        residual_N: ln y_fit - ln y of each point.
    """

    form: Form
    x: Coordinates
    theta_P: Floats
    theta_BP: Floats
    n_runs: int
    n_free: int
    residual_N: Floats

    def ln_y(self, S: ArrayLike, D: ArrayLike, U: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Ln y of the fit [N] and of each resample [B, N] at other points.

        Args:
            S: sizes, [N].
            D: tokens, [N].
            U: unique tokens among them; None where all are.
        """
        theta = np.vstack([self.theta_P, self.theta_BP])
        with np.errstate(invalid="ignore"):  # resamples that were not fitted
            ln_y = self.form.evaluate(self.x.at(S, D, U), theta)[0] + math.log(self.form.y_ref)
        return ln_y[0], ln_y[1:]

    def constants(self) -> dict[str, tuple[float, Floats]]:
        """Each constant of the fit, and of each resample [B]."""
        of_all = self.form.constants(self.x, np.vstack([self.theta_P, self.theta_BP]))
        return {name: (float(each[0]), each[1:]) for name, each in of_all.items()}

    def estimate(self, value: float, resampled_B: Floats, of_run: float = 0.0) -> Estimate:
        """A number with its 95 % interval over runs: Student's t, with as many degrees of freedom as runs leave.

        There is no interval where more than 5 % of the resamples do not have the number, or no freedom is left.

        Args:
            value: of the fit.
            resampled_B: of each resample; those that are not finite do not have it.
            of_run: standard deviation of one run about the surface, for the value of a run that is not among them.
        """
        if not math.isfinite(value):
            return Estimate()
        usable_B = resampled_B[np.isfinite(resampled_B)]
        dof = self.n_runs - self.n_free
        if len(usable_B) < max(MIN_RESAMPLES, (1 - MOST_LEFT_OUT) * len(resampled_B)) or dof < 1:
            return Estimate(value)
        # Exponential weights give a mean of n numbers (n - 1) / (n + 1) of the variance that an unbiased estimate has.
        of_resamples = float(usable_B.var(ddof=1)) * (self.n_runs + 1) / (self.n_runs - 1)
        sd = math.sqrt(of_resamples + of_run**2)
        return Estimate(value, *around(value, half_width(scatter=sd, dof=dof)))

    def of_constants(self, number: Callable[[Mapping[str, Floats]], Floats]) -> Estimate:
        """A function of the constants with its interval.

        Args:
            number: constants by name, each [B], in; the number of each set, [B], out; not finite where it has none.
        """
        of_all = self.form.constants(self.x, np.vstack([self.theta_P, self.theta_BP]))
        with np.errstate(all="ignore"):
            values = number(of_all)
        return self.estimate(float(values[0]), values[1:])

    def predict(self, S: float, D: float, U: float | None = None, new_run: bool = False) -> Estimate:
        """The value at another point, with the interval of the surface there or that of one new run.

        Args:
            S: size.
            D: tokens.
            U: unique tokens among them; None where all are.
            new_run: whether the interval is that of a run to be trained, which scatters about the surface as others do.
        """
        (ln_y,), ln_y_B1 = self.ln_y([S], [D], None if U is None else [U])
        return exponential(self.estimate(float(ln_y), ln_y_B1[:, 0], self.scatter if new_run else 0.0))

    @property
    def scatter(self) -> float:
        """Standard deviation of ln y of one run about the surface; NaN where runs leave no freedom."""
        dof = self.n_runs - self.n_free
        return math.sqrt(float(np.mean(self.residual_N**2)) * self.n_runs / dof) if dof > 0 else math.nan


def exponential(of_logarithm: Estimate) -> Estimate:
    """A number and its ends from those of its logarithm; None beyond the range of a float."""
    ends = (of_logarithm.value, of_logarithm.lo, of_logarithm.hi)
    return Estimate(*(None if each is None or abs(each) > 700 else math.exp(each) for each in ends))
