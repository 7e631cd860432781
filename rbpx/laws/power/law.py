"""Fits a power law in model size to one quantity: constant, exponent, intervals, status, and the record of all of it.

The same law serves -ln RBP_k and cross-entropy.

Shapes: N sizes, B replicates of the documents, P parameters.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Replicates, by_name
from rbpx.laws.intervals.lack_of_fit import NestedTest, lack_of_fit_test, stack_family
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.intervals import centred, numbers, quality, regression_of, spread_of
from rbpx.laws.power.parameters import NOTHING, FixedParameter
from rbpx.laws.power.predictor import Prediction, outside
from rbpx.laws.power.regression import EQUATIONS, NAMES, Regression, ln_law
from rbpx.laws.power.uncertainty import Uncertainty, as_plain
from rbpx.laws.power.unequal import Unequal, uncertainty_over
from rbpx.status import Status

__all__ = ["LawFit", "PowerLaw", "fit_power_law", "reproduce"]

SOURCE: Final = "RBP paper, arXiv 2510.20387, eq. 5"


@dataclass(frozen=True, kw_only=True)
class LawFit:
    """What every fitted law y = C S^-alpha has.

    Attributes:
        C: y at S = 1.
        alpha: exponent.
        r2: of the regression.
        aic: Akaike's criterion.
        bic: Schwarz's.
        n_points: that it was fitted to.
        backtest_error: (predicted - measured) / measured of the largest size, predicted from the others.
        status: why there are no numbers, or what a judge has said; None of a law that nobody judged.
        S: the sizes, or what else it is a law in.
    """

    C: Estimate = NO_ESTIMATE
    alpha: Estimate = NO_ESTIMATE
    r2: Estimate = NO_ESTIMATE
    aic: float | None = None
    bic: float | None = None
    n_points: int
    backtest_error: float | None = None
    status: Status | None = None
    S: Sequence[float] = ()

    def columns(self) -> dict[str, Any]:
        """Its numbers by the columns of `fits`."""
        names = ("aic", "bic", "n_points", "backtest_error", "status")
        numbers = {"C": self.C.value, "alpha_stderr": self.alpha.stderr, "r2": self.r2.value} | by_name(
            alpha=self.alpha
        )
        return numbers | {name: getattr(self, name) for name in names}


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
class PowerLaw(LawFit):
    """A fitted power law y = C * S^(-alpha), or y = E + C * S^(-alpha); None where a number is unknown.

    C is at S = 1 and has the unit of y; alpha > 0 when bigger is better. Intervals of 95 % include document sampling
    and the scatter of the models; the standard error of alpha is that of the scatter of the sizes about the law (n - p
    degrees of freedom). r2, aic and bic are of the regression of ln y (weighted where the method is; the criteria of
    `ols`, `weighted` and `offset` may be compared, `robust` has none).

    Where models of one size were trained more than once, the scatter counts once what all models of a size have in
    common.

    Attributes:
        method: how ln y was regressed on ln S.
        y: the quantity at each size, which may be NaN or infinite where there is no law.
        sign: of y; None where it has both.
        E: the offset; empty where the law has none.
        regression: of ln y; None where there is no law, or all y are equal.
        uncertainty: of theta; None where there are no intervals.
        unequal: how runs count; None where they count alike.
        n_replicates: of the documents; None where there were none.
        n_replicates_left_out: those with a value that has no logarithm.
        interval: what the intervals include, "documents and models" or "models"; of a law in k "documents" or "nested
            counts"; None where there are none.
        limited_by: what to collect more of, "models" or "text"; None where no documents were resampled.
        bend: of a law in k.
        pinned: the constants that were given.
        given: the values that they have in `regression`; of priors the likeliest.
        reasons: every status that holds, in the order of `Status`; None before the law was judged.
    """

    method: Method
    y: Sequence[float]
    sign: int | None
    E: Estimate = NO_ESTIMATE
    regression: Regression | None = field(default=None, repr=False)
    uncertainty: Uncertainty | None = field(default=None, repr=False)
    unequal: Unequal | None = field(default=None, repr=False)
    n_replicates: int | None = None
    n_replicates_left_out: int = 0
    interval: str | None = None
    limited_by: str | None = None
    bend: Bend | None = None
    pinned: tuple[FixedParameter, ...] = ()
    given: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[Status, ...] | None = None

    @property
    def S_ref(self) -> float:
        """The geometric mean of the sizes."""
        return math.exp(float(np.log(self.S).mean()))

    @property
    def theta_P(self) -> Floats | None:
        """Ln C at S_ref, alpha and, where the form has one, E; None where there is no law."""
        if self.regression is None:
            return None if self.alpha.value is None else np.array([math.log(abs(self.y[0])), 0.0])
        return self.regression.theta_P

    def report(self) -> str:
        """Lmfit's report of the fit of ln y at the points: parameters, standard errors of the scatter, correlations.

        Raises:
            ValueError: the law has no numbers, or constants that were given.
        """
        import lmfit  # a second, which laws do without

        if self.regression is None or self.given:
            raise ValueError(f"there is no search to report: status {self.status}, given {dict(self.given)}")
        start_P, root_N = self.regression.theta_P[: 2 if self.regression.at_bound else 3], self.regression.weight_N**0.5
        x_N, ln_y_N = centred(np.asarray(self.S))[0], np.log(np.abs(self.y))

        def residual_N(at: lmfit.Parameters) -> Floats:
            return (ln_law(x_N, np.array([*at.valuesdict().values()])) - ln_y_N) * root_N

        start = lmfit.create_params(**dict(zip(NAMES, start_P.tolist(), strict=False)))
        return str(lmfit.fit_report(lmfit.minimize(residual_N, start)))

    @property
    def residuals_ln(self) -> list[float]:
        """The logarithm of y measured minus law, by size; empty where the law has no numbers."""
        return [] if self.regression is None else self.regression.residual_N.tolist()

    @property
    def pure_error(self) -> NestedTest | None:
        """The test of the law against what models of one size differ by; None without replicates."""
        if self.regression is None or len(set(self.S)) == len(self.S):
            return None
        points = stack_family(np.log(self.S), np.log(np.abs(self.y)))
        return lack_of_fit_test(points, self.regression.free_jacobian_NP, self.regression.residual_N)

    @property
    def alpha_text(self) -> Estimate:
        """Alpha with its interval for the same models on other documents; without one where none were resampled."""
        about, alpha = self.uncertainty, self.alpha.value
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

    def predict(self, S: float) -> Prediction:
        """The value of the law at another size, with an interval for a single model of that size.

        Raises:
            ValueError: the law has no numbers, or S is not positive and finite.
        """
        if self.theta_P is None or not 0 < S < math.inf:
            raise ValueError(f"nothing to predict at S = {S}: status {self.status}")
        x, sign = math.log(S / self.S_ref), self.sign or 1
        ln_C_ref, alpha, *offset = self.theta_P.tolist()
        power = math.exp(ln_C_ref - alpha * x)
        y, lo, hi = power + sum(offset), None, None
        if self.uncertainty is not None:
            gradient_P = np.array([power / y, -x * power / y, *(1 / y for _ in offset)])
            ends = self.uncertainty.interval(math.log(y), gradient_P, new_model=True)
            lo, hi = Estimate(y, *map(exp_or_none, ends)).times(sign).ends or (None, None)
        return Prediction(S, sign * y, lo, hi, outside(S, self.S))

    def record(self) -> dict[str, Any]:
        """Params in the row of `fits`, as JSON takes them: what reproduces the fit (`reproduce`), and what is known."""
        about, theta_P, regression = self.uncertainty, self.theta_P, self.regression
        record: dict[str, Any] = {
            "method": self.method.value,
            "S": list(self.S),
            "y": finite_or_none(np.array(self.y)),
            "sign": self.sign,
            "equation": EQUATIONS[self.method],
            "source": SOURCE,
            "uncertainty": None if about is None else as_plain(about),
            "interval": self.interval,
        }
        if theta_P is not None:
            record |= {"S_ref": self.S_ref, "ln_C_ref": float(theta_P[0]), "E": self.E.value}
        if regression is not None:
            if self.n_replicates is not None:
                record |= {"n_resamples": self.n_replicates, "n_resamples_left_out": self.n_replicates_left_out}
            weighs = regression.weighs_variances
            record |= {"sigma_ln": (1 / np.sqrt(regression.weight_N)).tolist() if weighs else None}
            record |= {"residuals_ln": self.residuals_ln, "huber_scale_ln": regression.scale}
            if len(set(self.S)) < len(self.S):
                record["replicates"] = None if self.pure_error is None else vars(self.pure_error)
        if about is not None:
            ends = by_name(C=self.C, E=self.E, r2=self.r2)
            record |= {name: end for name, end in ends.items() if name.endswith(("_lo", "_hi"))}
            sd, models_sd = self.alpha_sds
            record |= {"alpha_models_sd": models_sd, "limited_by": self.limited_by}
            if about.knows_text:
                record |= {"alpha_text_lo": self.alpha_text.lo, "alpha_text_hi": self.alpha_text.hi}
                record |= {"alpha_text_sd": sd, "alpha_text_bias": float(about.bias_P[1])}
        if self.unequal is not None:
            record |= {"over": self.unequal.over, "weights": self.unequal.weight_N.tolist()}
        if self.pinned:
            record |= {"pins": {each.name: each.record() for each in self.pinned}, "given": dict(self.given)}
        if self.bend is not None:
            curvature = self.bend.curvature
            record |= vars(self.bend) | {"curvature": None if curvature is None else curvature.record()}
        return record if self.reasons is None else record | {"reasons": [reason.value for reason in self.reasons]}


def finite_or_none(values: Floats) -> list[float | None]:
    """Values as JSON takes them."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def fit_power_law(
    S: ArrayLike,
    y: ArrayLike,
    y_replicates: ArrayLike | Replicates | None = None,
    method: Method = Method.ols,
    backtests: bool = True,
    signed: bool = False,
    given: Mapping[str, float] = NOTHING,
    unequal: Unequal | None = None,
) -> PowerLaw:
    """Fit y = C * S^(-alpha) by least squares of ln y on ln S, as the paper does, or by another method.

    The fit runs at a reference size, ln y = ln_C_ref - alpha * ln(S / S_ref) with S_ref the geometric mean of the
    sizes, where constant and exponent are uncorrelated. `offset` adds E >= 0, an irreducible part of y; `weighted`
    takes the variances of ln y over the replicates; `robust` uses Huber's loss, for outlying sizes.

    Args:
        S: non-embedding parameters of each model, shape [N], positive, in any order; equal ones are replicates of one
            size, models that were trained more than once.
        y: -ln RBP_k, or cross-entropy in nats, or any positive quantity, or a signed one that is nowhere 0, shape [N].
        y_replicates: the same quantity under B replicates of the documents, the same documents for every size, shape
            [B, N]. Rows with a value that is not finite or has another sign are left out and counted. There is no
            interval if fewer than 20 rows are left. Or |y| as `Replicates`, negative where a sign differs.
        method: how ln y is regressed on ln S.
        backtests: whether to fit once more without the largest size, and to find the interval of R2, as for a law that
            is shown; if not, these are None.
        signed: whether y may be negative at every size; the law is then that of |y|.
        given: constants that are held (`PINNABLE`), with `ols` and `offset`; E is below every y.
        unequal: how runs count, with `ols` and nothing given.

    Returns:
        The fit. Its status is too_few_sizes below 3 different sizes (4 for `offset`), not_positive if a y is not
        positive and finite, no_variation if all y are equal (alpha is 0 then, and the rest is unknown), no_variances if
        `weighted` has no replicates to weigh by, not_converged if the regression fails its own check, sign_change if a
        signed y has both signs, or is 0; with numbers none, or at_bound where E is 0.

    Raises:
        ValueError: if shapes disagree, or sizes are not positive.

    Source:
        RBP paper (arXiv 2510.20387), eq. 5; table 2 gives slope = -alpha and R2 of the regression `ols`. Signed terms
        of cross-entropy: arXiv 2510.04067.
    """
    S_N, signed_N = np.asarray(S, np.float64), np.asarray(y, np.float64)
    sign, method = -1 if signed and len(signed_N) and signed_N[0] < 0 else 1, Method(method)
    law = PowerLaw(n_points=len(S_N), S=S_N.tolist(), method=method, y=signed_N.tolist(), sign=sign)
    if signed and len(S_N) >= 3 and np.all(np.isfinite(signed_N)) and np.any(sign * signed_N <= 0):
        return replace(law, status=Status.sign_change, sign=None)
    y_N, replicates = sign * signed_N, y_replicates
    if replicates is not None and not isinstance(replicates, Replicates):
        replicates = Replicates.of(sign * np.asarray(replicates, np.float64))
    used = replicates if replicates is not None and replicates.suffices else None
    weights = None if unequal is None else unequal.scaled()
    # The standard deviation of equal values is rounding, not 0.
    if method is Method.weighted and used is not None and np.all(np.ptp(used.ln_y_BN, axis=0) > 0):
        weights = Unequal(1 / np.diag(used.covariance_NN))
    regression = regression_of(S_N, y_N, method, given, weights)
    if regression is Status.no_variation:  # the same at every size: alpha is 0, R2 and intervals are undefined
        return replace(law, status=regression, C=Estimate(float(y_N[0])), alpha=Estimate(0.0))
    if isinstance(regression, Status):
        return replace(law, status=regression)
    (x_N, ln_S_ref), ln_y_N = centred(S_N), np.log(y_N)
    if weights is not None and weights.over > 1:  # runs that are badly tuned have no part in the law
        spread = uncertainty_over(x_N, ln_y_N, weights, used)
        has_interval = replicates is None or used is not None
        r2, aic, bic = NO_ESTIMATE, None, None
    else:
        spread = spread_of(regression, x_N, used)
        has_interval = replicates is None or spread.knows_text
        r2, aic, bic = quality(regression, ln_y_N, backtests and has_interval)
    C, alpha, E = numbers(regression, spread, x_N, ln_y_N, ln_S_ref, has_interval)
    return replace(
        law,
        C=C,
        alpha=alpha,
        E=E,
        r2=r2,
        aic=aic,
        bic=bic,
        backtest_error=_backtest_error(S_N, y_N, method, given, weights) if backtests else None,
        status=Status.at_bound if regression.at_bound else None,
        regression=regression,
        uncertainty=spread if has_interval else None,
        unequal=unequal,
        n_replicates=None if replicates is None else len(replicates.y_BN),
        n_replicates_left_out=0 if replicates is None else replicates.n_left_out,
        given=given,
        interval=None if not has_interval else "documents and models" if spread.knows_text else "models",
        limited_by=spread.limit(np.eye(len(regression.theta_P))[1]) if has_interval else None,
    )


def reproduce(params: Mapping[str, Any]) -> dict[str, float | None]:
    """Repeat a fit from the values in its params: C at S = 1, alpha and E, to be compared with those of the fit.

    Args:
        params: the record of a fit that has numbers.
    """
    S_N, y_N = np.asarray(params["S"], float), params["sign"] * np.asarray(params["y"], float)
    unequal = Unequal(np.asarray(params["weights"], float), params["over"]).scaled() if "over" in params else None
    if unequal is None and params["sigma_ln"] is not None:
        unequal = Unequal(np.asarray(params["sigma_ln"], float) ** -2)
    regression = regression_of(S_N, y_N, Method(params["method"]), params.get("given") or NOTHING, unequal)
    if isinstance(regression, Status):
        return {"C": None, "alpha": None, "E": None}
    theta = dict(zip(NAMES, regression.theta_P.tolist(), strict=False))
    ln_C = theta["ln_C_ref"] + theta["alpha"] * centred(S_N)[1]
    return {"C": exp_or_none(ln_C), "alpha": theta["alpha"], "E": theta.get("E", 0.0)}


def _backtest_error(
    S_N: Floats, y_N: Floats, method: Method, given: Mapping[str, float], weights: Unequal | None
) -> float | None:
    rest, largest = np.flatnonzero(S_N < S_N.max()), S_N == S_N.max()
    rest = rest[np.argsort(S_N[rest])]
    regression = regression_of(S_N[rest], y_N[rest], method, given, None if weights is None else weights.only(rest))
    if isinstance(regression, Status):
        return None
    x = math.log(S_N.max()) - centred(S_N[rest])[1]
    y = exp_or_none(float(ln_law(np.array([x]), regression.theta_P)[0]))
    return None if y is None else y / float(y_N[largest].mean()) - 1
