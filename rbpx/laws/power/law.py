"""Fits a power law in model size to one quantity: constants, intervals, status and the JSON record of the fit.

Shapes: N sizes, B bootstrap replicates of the documents, P parameters.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.arguments import level_of, places
from rbpx.laws.intervals.estimate import LEVEL, NO_ESTIMATE, Estimate, Replicates, by_name, flat
from rbpx.laws.intervals.lack_of_fit import NestedTest, lack_of_fit_test
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, exp_or_none, finite_or_none
from rbpx.laws.power.offset import EQUATIONS, NAMES, NOTHING, Regression, centred, ln_law, regression_of
from rbpx.laws.power.predicted import FAR, Prediction, Predictions, extrapolation_factor
from rbpx.laws.power.uncertainty import ALPHA, Uncertainty, fit_quality, law_estimates, uncertainty
from rbpx.laws.priors import Prior
from rbpx.status import Status, in_order

SOURCE: Final = "RBP paper, arXiv 2510.20387, eq. 5"


@dataclass(frozen=True)
class FixedParameter:
    """A fixed parameter, or one with a prior.

    Attributes:
        p: p value of `pin.value`, tested with the other parameters free.
        free: estimate without `pin`; `now` in the law, for a prior the posterior.
    """

    name: str
    pin: Prior
    p: float | None
    free: Estimate
    now: Estimate

    @property
    def is_refused(self) -> bool:
        """Whether the points contradict the value."""
        return self.p is not None and self.p < ALPHA

    def record(self) -> dict[str, Any]:
        """Its entry in `params`."""
        of = {"value": self.pin.value, "sd": self.pin.sd, "p": self.p}
        return of | flat({"free": self.free, "now": self.now})


@dataclass(frozen=True, kw_only=True)
class LawFit:
    """What every fitted law y = C S^-alpha has.

    Attributes:
        backtest_error: (predicted - measured) / measured at the largest size, predicted from the others.
        status: why there are no numbers, or the warning of a judge; None before that.
        S: sizes, or the values of another variable.
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
        """The numbers under the column names of `fits`."""
        own = {name: getattr(self, name) for name in ("aic", "bic", "n_points", "backtest_error", "status")}
        alpha = by_name(alpha=self.alpha) | {"alpha_stderr": self.alpha.stderr}
        return {"C": self.C.value, "r2": self.r2.value, **alpha, **own}


@dataclass(frozen=True)
class Curvature:
    """Curvature of the points about a law in k: half of the second derivative of ln y by ln k."""

    residual_autocorrelation: float | None
    curvature: Estimate | None


@dataclass(frozen=True, kw_only=True)
class PowerLaw(LawFit):
    """A fitted power law y = C S^-alpha, or y = E + C S^-alpha; unknown numbers are None.

    The intervals include document sampling and the scatter of the models, the standard error of alpha the scatter
    alone. aic and bic are of ln y, comparable between `ols`, `weighted` and `offset`. The common error of models of one
    size counts once.

    Attributes:
        sign: of y; None where y has both signs.
        n_replicates_left_out: those with a value that has no logarithm.
        interval: errors that the intervals include: "documents and models", "models", or in a law in k "documents" or
            "nested counts".
        limited_by: what to collect more of, "models" or "text".
        given: values of fixed parameters in `regression`; of a prior the most likely one.
        level: of the intervals; the status is found at .95.
    """

    method: Method
    y: Sequence[float]
    sign: int | None
    E: Estimate = NO_ESTIMATE
    regression: Regression | None = field(default=None, repr=False)
    uncertainty: Uncertainty | None = field(default=None, repr=False)
    weight_N: Floats | None = field(default=None, repr=False)
    n_replicates: int | None = None
    n_replicates_left_out: int = 0
    interval: str | None = None
    limited_by: str | None = None
    bend: Curvature | None = None
    pinned: tuple[FixedParameter, ...] = ()
    given: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[Status, ...] | None = None
    level: float = LEVEL

    @property
    def S_ref(self) -> float:
        """Geometric mean of the sizes."""
        return math.exp(centred(np.asarray(self.S))[1])

    @property
    def theta_P(self) -> Floats | None:
        """Ln C at S_ref, alpha and, in the offset form, E."""
        if self.regression is None:
            return None if self.alpha.value is None else np.array([math.log(abs(self.y[0])), 0.0])
        return self.regression.theta_P

    def report(self) -> str:
        """The report of lmfit on ln y: parameters, standard errors from the scatter, correlations.

        Raises:
            ValueError: the law has no numbers.
        """
        import lmfit  # its import takes a second

        if self.regression is None:
            raise ValueError(f"there is no fit to report: status {self.status}")
        x_N, ln_y_N, weight_N = centred(np.asarray(self.S))[0], np.log(np.abs(self.y)), self.regression.weight_N
        of = lmfit.create_params(**dict(zip(NAMES, self.regression.theta_P.tolist(), strict=False)))
        if "E" in of:
            of["E"].set(min=0.0, vary="E" not in self.given and not self.regression.at_bound)
        of["alpha"].set(vary="alpha" not in self.given)
        if "C" in self.given:  # at S = 1
            of["ln_C_ref"].set(expr=f"{math.log(self.given['C'])!r} - alpha * {math.log(self.S_ref)!r}")

        def residual_N(at: lmfit.Parameters) -> Floats:
            return (ln_law(x_N, np.array([*at.valuesdict().values()])) - ln_y_N) * weight_N**0.5

        return str(lmfit.fit_report(lmfit.minimize(residual_N, of)))

    @property
    def residuals_ln(self) -> list[float]:
        """Measured minus fitted ln y."""
        return [] if self.regression is None else self.regression.residual_N.tolist()

    @property
    def pure_error(self) -> NestedTest | None:
        """Lack-of-fit test against the differences between models of one size; None where no size repeats."""
        if self.regression is None or len(set(self.S)) == len(self.S):
            return None
        points = np.log(self.S), np.log(np.abs(self.y))
        return lack_of_fit_test(*points, self.regression.free_jacobian_NP, self.regression.residual_N)

    @property
    def alpha_text(self) -> Estimate:
        """Alpha with its interval for the same models on other documents."""
        about, alpha = self.uncertainty, self.alpha.value
        if about is None or alpha is None or not about.knows_text:
            return Estimate(alpha)
        return Estimate(alpha, *about.text_interval(alpha, np.eye(len(about.bias_P))[1], 1 - self.level))

    @property
    def alpha_sds(self) -> tuple[float | None, float | None]:
        """Standard deviations of alpha over documents and over models."""
        if (about := self.uncertainty) is None:
            return None, None
        text, models = about.variances(np.eye(len(about.bias_P))[1])
        return math.sqrt(text) if about.knows_text else None, math.sqrt(models)

    def __repr__(self) -> str:
        if self.alpha.value is None or self.C.value is None:
            return f"no law of {self.n_points} points: {'' if self.status is None else self.status.label}"
        ends, E = self.alpha.ends, "" if self.E.value is None else f"{self.E.value:.4g} + "
        at = "" if self.level == LEVEL else f" at {self.level:g}"
        between = "no interval" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}{at}"
        trust = "" if self.status is None else f": {self.status.label}"
        return f"y = {E}{self.C.value:.4g} S^-{self.alpha.value:.4g} (alpha {between}, {self.n_points} points){trust}"

    @overload
    def predict(self, S: float, level: float = LEVEL) -> Prediction: ...

    @overload
    def predict(self, S: Sequence[float] | NDArray[Any], level: float = LEVEL) -> Predictions: ...

    def predict(self, S: float | Sequence[float] | NDArray[Any], level: float = LEVEL) -> Prediction | Predictions:
        """Predicts y at one or several sizes, with the interval of a single model of that size.

        Where the law is judged, the prediction has its reasons, and beyond.

        Raises:
            ValueError: the law has no numbers, S is not positive and finite, or level is not between 0 and 1.
        """
        if not isinstance(S, float):
            (S_T,) = places(S=S)
            found = [self.predict(each, level) for each in S_T.reshape(-1).tolist()]
            return Predictions.of(found, S_T.shape) if S_T.ndim else found[0]
        p = level_of(level)
        if self.theta_P is None or not 0 < S < math.inf:
            raise ValueError(f"nothing to predict at S = {S}: status {self.status}")
        x, sign = math.log(S / self.S_ref), self.sign or 1
        ln_C_ref, alpha, *offset = self.theta_P.tolist()
        power = math.exp(ln_C_ref - alpha * x)
        y, lo, hi = power + sum(offset), None, None
        if self.uncertainty is not None:
            gradient_P = np.array([power / y, -x * power / y, *(1 / y for _ in offset)])
            ends = self.uncertainty.interval(math.log(y), gradient_P, new_model=True, p=p)
            lo, hi = Estimate(y, *map(exp_or_none, ends)).times(sign).ends or (None, None)
        beyond = extrapolation_factor(S, self.S)
        reasons = (
            None if self.reasons is None else in_order([*self.reasons, *([Status.beyond] if beyond > FAR else [])])
        )
        return Prediction(S, sign * y, lo, hi, beyond, reasons=reasons)

    def record(self) -> dict[str, Any]:
        """What the row in `fits` has as `params`."""
        about, theta_P, regression = self.uncertainty, self.theta_P, self.regression
        record: dict[str, Any] = {
            "method": self.method.value,
            "S": list(self.S),
            "y": finite_or_none(np.array(self.y)),
            "sign": self.sign,
            "equation": EQUATIONS[self.method],
            "source": SOURCE,
            "uncertainty": None if about is None else about.record(),
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
            ends, (sd, models_sd) = by_name(C=self.C, E=self.E, r2=self.r2), self.alpha_sds
            record |= {name: end for name, end in ends.items() if name.endswith(("_lo", "_hi"))}
            record |= {"alpha_models_sd": models_sd, "limited_by": self.limited_by}
            if about.knows_text:
                record |= {"alpha_text_lo": self.alpha_text.lo, "alpha_text_hi": self.alpha_text.hi}
                record |= {"alpha_text_sd": sd, "alpha_text_bias": float(about.bias_P[1])}
        if self.weight_N is not None:
            # 0.4 could weigh runs above the law less, by `over`; it is part of the id.
            record |= {"over": 1.0, "weights": self.weight_N.tolist()}
        if self.pinned:
            record |= {"pins": {each.name: each.record() for each in self.pinned}, "given": dict(self.given)}
        if self.bend is not None:
            curvature = self.bend.curvature
            record |= vars(self.bend) | {"curvature": None if curvature is None else curvature.record()}
        record |= {} if self.level == LEVEL else {"level": self.level}
        return record if self.reasons is None else record | {"reasons": [reason.value for reason in self.reasons]}


def fit_power_law(
    S: ArrayLike,
    y: ArrayLike,
    y_replicates: ArrayLike | Replicates | None = None,
    method: Method = Method.ols,
    backtests: bool = True,
    signed: bool = False,
    given: Mapping[str, float] = NOTHING,
    weight_N: Floats | None = None,
) -> PowerLaw:
    """Fits y = C * S^(-alpha) by least squares of ln y on ln S, or by another method (`EQUATIONS`).

    The fit uses ln y = ln_C_ref - alpha * ln(S / S_ref), S_ref the geometric mean of the sizes, where both parameters
    are uncorrelated. E and the ends of its interval lie above no y. Without numbers the status says why.

    `y_replicates` are y under bootstrap replicates of the same documents for every size, [B, N], or `Replicates` of
    |y|. `signed` is for y that may be negative at every size; the law then describes |y|. Fixed parameters are for
    `ols` and `offset`; weights, by which a run scatters 1 / sqrt(weight) times as much, for `ols` alone.

    Raises:
        ValueError: shapes disagree, or sizes are not positive.

    Source:
        RBP paper (arXiv 2510.20387), eq. 5 and table 2. Signed terms of cross-entropy: arXiv 2510.04067.
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
    of_N = None if weight_N is None else weight_N / weight_N.mean()
    # The standard deviation of equal values is rounding, not 0.
    if method is Method.weighted and used is not None and np.all(np.ptp(used.ln_y_BN, axis=0) > 0):
        of_N = 1 / np.diag(used.covariance_NN)
    regression = regression_of(S_N, y_N, method, given, of_N)
    if regression is Status.no_trend:  # alpha is 0, R2 and intervals are undefined
        return replace(law, status=regression, C=Estimate(float(y_N[0])), alpha=Estimate(0.0))
    if isinstance(regression, Status):
        return replace(law, status=regression)
    spread = uncertainty(regression, centred(S_N)[0], used)
    has_interval = replicates is None or spread.knows_text
    law = replace(
        _with_estimates(law, regression, spread, has_interval, backtests and has_interval),
        status=Status.at_bound if regression.at_bound else None,
        regression=regression,
        uncertainty=spread if has_interval else None,
        weight_N=weight_N,
        n_replicates=None if replicates is None else len(replicates.y_BN),
        n_replicates_left_out=0 if replicates is None else replicates.n_left_out,
        given=given,
        interval=None if not has_interval else "documents and models" if spread.knows_text else "models",
        limited_by=spread.limit(np.eye(len(regression.theta_P))[1]) if has_interval else None,
    )
    return with_backtest(law) if backtests else law


def reproduce(params: Mapping[str, Any]) -> dict[str, float | None]:
    """Repeats a fit from `params` and returns C at S = 1, alpha and E; None of a law of 0.4 with `over`."""
    if params.get("over", 1.0) != 1.0:
        return {"C": None, "alpha": None, "E": None}
    S_N, y_N = np.asarray(params["S"], float), params["sign"] * np.asarray(params["y"], float)
    weight_N = np.asarray(params["weights"], float) if "weights" in params else None  # their scale does not matter
    if weight_N is None and params["sigma_ln"] is not None:
        weight_N = np.asarray(params["sigma_ln"], float) ** -2
    regression = regression_of(S_N, y_N, Method(params["method"]), params.get("given") or NOTHING, weight_N)
    if isinstance(regression, Status):
        return {"C": None, "alpha": None, "E": None}
    ln_C_ref, alpha, *E = regression.theta_P.tolist()
    return {"C": exp_or_none(ln_C_ref + alpha * centred(S_N)[1]), "alpha": alpha, "E": sum(E)}


def _with_estimates(
    law: PowerLaw, regression: Regression, spread: Uncertainty, has_interval: bool, shows_r2: bool
) -> PowerLaw:
    (x_N, ln_S_ref), y_N, p = centred(np.asarray(law.S)), np.abs(law.y), 1 - law.level
    ln_y_N, least = np.log(y_N), float(y_N.min())
    r2, aic, bic = fit_quality(regression, ln_y_N, shows_r2, p)
    C, alpha, E = law_estimates(regression, spread, x_N, ln_y_N, ln_S_ref, has_interval, p)
    E = E.through(lambda each: min(each, least))  # no run refutes it
    return replace(law, C=C, alpha=alpha, E=E, r2=r2, aic=aic, bic=bic)


def at_level(law: PowerLaw, level: float) -> PowerLaw:
    """The law with its intervals at another level.

    Raises:
        ValueError: the level is not between 0 and 1, or parameters are given.
    """
    if level_of(level, law.pinned) == level_of(law.level) or law.uncertainty is None or law.regression is None:
        return law
    at = replace(law, level=level)
    return _with_estimates(at, law.regression, law.uncertainty, True, law.r2.ends is not None)


def with_backtest(law: PowerLaw) -> PowerLaw:
    """The law with its `backtest_error`, if the other sizes have a law."""
    S_N, y_N, of = np.asarray(law.S), np.abs(law.y), law.regression
    largest = S_N == S_N.max()
    rest = ~largest
    weight_N = of.weight_N[rest] if of is not None and of.weighs_variances else None
    regression = regression_of(S_N[rest], y_N[rest], law.method, law.given, weight_N)
    if isinstance(regression, Status):
        return law
    x = math.log(S_N.max()) - centred(S_N[rest])[1]
    y = exp_or_none(float(ln_law(np.array([x]), regression.theta_P)[0]))
    return law if y is None else replace(law, backtest_error=y / float(y_N[largest].mean()) - 1)
