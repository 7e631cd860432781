"""What was found of a law in size: its numbers, what it was found from, and the record that JSON takes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.intervals.replicates import NestedTest, lack_of_fit_test
from rbpx.laws.intervals.stacked import stack_one
from rbpx.laws.names import Method
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.power.found import FoundLaw
from rbpx.laws.power.intervals import NO_INTERVALS, Intervals
from rbpx.laws.power.regression import EQUATIONS, TOLERANCES
from rbpx.laws.power.uncertainty import Uncertainty, as_plain
from rbpx.status import Status

SOURCE: Final = "RBP paper, arXiv 2510.20387, eq. 5"


@dataclass(frozen=True, kw_only=True)
class LawFit:
    """What every fitted law has, in the columns of `fits` and beside; None where a number is unknown.

    Attributes:
        ends: of the intervals beside that of alpha.
        S: the sizes, or what else it is a law in.
    """

    C: float | None = None
    alpha: float | None = None
    alpha_stderr: float | None = None
    alpha_lo: float | None = None
    alpha_hi: float | None = None
    r2: float | None = None
    aic: float | None = None
    bic: float | None = None
    n_points: int
    backtest_error: float | None = None
    status: Status
    ends: Intervals = NO_INTERVALS
    S: Sequence[float] = ()

    @property
    def exponent(self) -> Estimate:
        """Alpha with its interval."""
        return Estimate(self.alpha, self.alpha_lo, self.alpha_hi)

    @property
    def constant(self) -> Estimate:
        """C at S = 1 with its interval."""
        return Estimate(self.C, *self.ends.C)

    @property
    def determination(self) -> Estimate:
        """R2 with its interval."""
        return Estimate(self.r2, *self.ends.r2)


@dataclass(frozen=True)
class Bend:
    """How the points of a law in k bend.

    Attributes:
        residual_autocorrelation: of neighbours in k; None where residuals do not vary.
        curvature: half of the second derivative of ln y by ln k; None below 4 ranks.
    """

    residual_autocorrelation: float | None
    curvature: Estimate | None


@dataclass(frozen=True, kw_only=True)
class PowerLawFit(LawFit):
    """A fitted power law y = C * S^(-alpha), or y = E + C * S^(-alpha); None where a number is unknown.

    C is at S = 1 and has the unit of y; alpha > 0 when bigger is better. alpha_stderr is that of the scatter of the
    sizes about the law (n - p degrees of freedom). alpha_lo and alpha_hi are a 95 % interval that includes document
    sampling and the scatter of the models. r2, aic and bic are of the regression of ln y (weighted where the method
    is; the criteria of `ols`, `weighted` and `offset` may be compared, `robust` has none). backtest_error is
    (predicted - measured) / measured of the largest size, predicted from the others.

    Where models of one size were trained more than once, the scatter counts once what all models of a size have in
    common.

    Attributes:
        method: how ln y was regressed on ln S.
        y: the quantity at each size, which may be NaN or infinite where there is no law.
        sign: of y; None where it has both.
        found: the law as it was found; None where there is none, or all y are equal.
        n_resamples: of the documents; None where there were none.
        n_resamples_left_out: those with a value that has no logarithm.
        interval: what the intervals include, "documents and models" or "models"; of a law in k "documents" or "nested
            counts"; None where there are none.
        limited_by: what to collect more of, "models" or "text"; None where no documents were resampled.
        bend: of a law in k.
        reasons: every status that holds, in the order of `Status`; None before the law was judged.
    """

    method: Method
    y: Sequence[float]
    sign: int | None
    found: FoundLaw | None = None
    n_resamples: int | None = None
    n_resamples_left_out: int = 0
    interval: str | None = None
    limited_by: str | None = None
    bend: Bend | None = None
    reasons: tuple[Status, ...] | None = None

    @property
    def S_ref(self) -> float:
        """The geometric mean of the sizes."""
        return math.exp(float(np.log(self.S).mean()))

    @property
    def theta_P(self) -> Floats | None:
        """Ln C at S_ref, alpha and, where the form has one, E; None where there is no law."""
        if self.found is None:
            return None if self.alpha is None else np.array([math.log(abs(self.y[0])), 0.0])
        return self.found.regression.theta_P

    @property
    def offset(self) -> Estimate:
        """E with its interval; empty where the law has none."""
        E = None if self.theta_P is None or len(self.theta_P) < 3 else float(self.theta_P[2])
        return Estimate(E, *self.ends.E)

    @property
    def uncertainty(self) -> Uncertainty | None:
        """Of theta; None where there are no intervals."""
        return self.found.spread if self.found is not None and self.found.has_interval else None

    @property
    def residuals_ln(self) -> list[float]:
        """The logarithm of y measured minus law, by size; empty where the law has no numbers."""
        return [] if self.found is None else list(self.found.regression.residual_N.tolist())

    @property
    def replicates(self) -> NestedTest | None:
        """The test of the law against what models of one size differ by; None without replicates."""
        if self.found is None or len(set(self.S)) == len(self.S):
            return None
        points, regression = stack_one(self.found.x_N, self.found.ln_y_N), self.found.regression
        return lack_of_fit_test(points, regression.free_jacobian_NP, regression.residual_N)

    @property
    def alpha_text(self) -> Estimate:
        """Alpha with its interval for the same models on other documents; without one where none were resampled."""
        about, alpha = self.uncertainty, self.alpha
        if about is None or alpha is None or not about.knows_text:
            return Estimate(alpha)
        return Estimate(alpha, *about.text_interval(alpha, np.eye(len(about.bias_P))[1]))

    @property
    def alpha_sds(self) -> tuple[float | None, float | None]:
        """Standard deviation of alpha over documents, and over models."""
        if (about := self.uncertainty) is None:
            return None, None
        text, models = about.variances(np.eye(len(about.bias_P))[1])
        return math.sqrt(text) if about.knows_text else None, math.sqrt(models)

    def record(self) -> dict[str, Any]:
        """Params in the row of `fits`, as JSON takes them: what reproduces the fit (`reproduce`), and what is known."""
        about, theta_P, found = self.uncertainty, self.theta_P, self.found
        record: dict[str, Any] = {
            "method": self.method.value,
            "S": list(self.S),
            "y": finite_or_none(np.array(self.y)),
            "sign": self.sign,
            "equation": EQUATIONS[self.method],
            "source": SOURCE,
            "uncertainty": None if about is None else as_plain(about),
        }
        at = {} if theta_P is None else {"S_ref": self.S_ref, "ln_C_ref": float(theta_P[0]), "E": self.offset.value}
        if found is None:
            record |= {"interval": None} | at
        else:
            if self.n_resamples is not None:
                record |= {"n_resamples": self.n_resamples, "n_resamples_left_out": self.n_resamples_left_out}
            record |= {"sigma_ln": None if found.sigma_N is None else found.sigma_N.tolist()} | at
            record |= {"residuals_ln": self.residuals_ln}
            if len(set(self.S)) < len(self.S):
                record["replicates"] = None if self.replicates is None else vars(self.replicates)
            record |= {"huber_scale_ln": found.regression.scale, "starts": [*map(list, found.regression.starts)]}
            record |= {"tolerances": TOLERANCES, "gradient": found.regression.gradient_P.tolist()}
            record |= {"interval": self.interval}
        if about is not None:
            for name, (lo, hi) in self.ends._asdict().items():
                record |= {f"{name}_lo": lo, f"{name}_hi": hi}
            sd, models_sd = self.alpha_sds
            record |= {"alpha_models_sd": models_sd, "limited_by": self.limited_by}
            if about.knows_text:
                record |= {"alpha_text_lo": self.alpha_text.lo, "alpha_text_hi": self.alpha_text.hi}
                record |= {"alpha_text_sd": sd, "alpha_text_bias": float(about.bias_P[1])}
        if self.bend is not None:
            curvature = self.bend.curvature
            record |= vars(self.bend) | {"curvature": None if curvature is None else vars(curvature)}
        return record if self.reasons is None else record | {"reasons": [reason.value for reason in self.reasons]}


def finite_or_none(values: Floats) -> list[float | None]:
    """Values as JSON takes them."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
