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
from rbpx.laws.intervals.lack_of_fit import NestedTest, lack_of_fit_test, stack_one
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.intervals import FoundLaw, doubt, estimate, numbers, quality
from rbpx.laws.power.pinned import NOTHING, Pinned, regress_pinned
from rbpx.laws.power.predictor import Prediction, Predictor
from rbpx.laws.power.regression import EQUATIONS, NAMES, TOLERANCES, by_lmfit, regress
from rbpx.laws.power.uncertainty import Uncertainty, as_plain
from rbpx.laws.power.unequal import Unequal, regress_unequal
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
        found: the law as it was found; None where there is none, or all y are equal.
        n_replicates: of the documents; None where there were none.
        n_replicates_left_out: those with a value that has no logarithm.
        interval: what the intervals include, "documents and models" or "models"; of a law in k "documents" or "nested
            counts"; None where there are none.
        limited_by: what to collect more of, "models" or "text"; None where no documents were resampled.
        bend: of a law in k.
        pinned: the constants that were given.
        given: the values that they have in `found`; of priors the likeliest.
        reasons: every status that holds, in the order of `Status`; None before the law was judged.
    """

    method: Method
    y: Sequence[float]
    sign: int | None
    E: Estimate = NO_ESTIMATE
    found: FoundLaw | None = field(default=None, repr=False)
    n_replicates: int | None = None
    n_replicates_left_out: int = 0
    interval: str | None = None
    limited_by: str | None = None
    bend: Bend | None = None
    pinned: tuple[Pinned, ...] = ()
    given: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[Status, ...] | None = None

    @property
    def S_ref(self) -> float:
        """The geometric mean of the sizes."""
        return math.exp(float(np.log(self.S).mean()))

    @property
    def theta_P(self) -> Floats | None:
        """Ln C at S_ref, alpha and, where the form has one, E; None where there is no law."""
        if self.found is None:
            return None if self.alpha.value is None else np.array([math.log(abs(self.y[0])), 0.0])
        return self.found.regression.theta_P

    @property
    def uncertainty(self) -> Uncertainty | None:
        """Of theta; None where there are no intervals."""
        return self.found.spread if self.found is not None and self.found.has_interval else None

    def report(self) -> str:
        """Lmfit's report of the fit of ln y at the points: parameters, standard errors of the scatter, correlations.

        Raises:
            ValueError: the law has no numbers, or constants that were given.
        """
        from lmfit import fit_report

        if self.found is None or self.pinned or self.given:
            raise ValueError(f"there is no search to report: status {self.status}, given {dict(self.given)}")
        regression = self.found.regression
        start_P, weight_N = regression.theta_P[: 2 if regression.at_bound else 3], regression.weight_N
        return str(fit_report(by_lmfit(self.found.x_N, self.found.ln_y_N, start_P.tolist(), weight_N)))

    @property
    def residuals_ln(self) -> list[float]:
        """The logarithm of y measured minus law, by size; empty where the law has no numbers."""
        return [] if self.found is None else list(self.found.regression.residual_N.tolist())

    @property
    def pure_error(self) -> NestedTest | None:
        """The test of the law against what models of one size differ by; None without replicates."""
        if self.found is None or len(set(self.S)) == len(self.S):
            return None
        points, regression = stack_one(self.found.x_N, self.found.ln_y_N), self.found.regression
        return lack_of_fit_test(points, regression.free_jacobian_NP, regression.residual_N)

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

    @property
    def predictor(self) -> Predictor | None:
        """What it predicts from; None if it has no numbers."""
        if self.theta_P is None:
            return None
        return Predictor(self.theta_P, self.S_ref, self.sign or 1, self.S, self.uncertainty)

    def predict(self, S: float) -> Prediction:
        """The value of the law at another size, with an interval for a single model of that size.

        Raises:
            ValueError: the law has no numbers, or S is not positive and finite.
        """
        if self.predictor is None or not 0 < S < math.inf:
            raise ValueError(f"nothing to predict at S = {S}: status {self.status}")
        return self.predictor.at(S)

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
        at = {} if theta_P is None else {"S_ref": self.S_ref, "ln_C_ref": float(theta_P[0]), "E": self.E.value}
        if found is None:
            record |= {"interval": None} | at
        else:
            if self.n_replicates is not None:
                record |= {"n_resamples": self.n_replicates, "n_resamples_left_out": self.n_replicates_left_out}
            record |= {"sigma_ln": None if found.sigma_N is None else found.sigma_N.tolist()} | at
            record |= {"residuals_ln": self.residuals_ln}
            if len(set(self.S)) < len(self.S):
                record["replicates"] = None if self.pure_error is None else vars(self.pure_error)
            record |= {"huber_scale_ln": found.regression.scale, "starts": [*map(list, found.regression.starts)]}
            record |= {"tolerances": TOLERANCES, "gradient": found.regression.gradient_P.tolist()}
            record |= {"interval": self.interval}
        if about is not None:
            ends = by_name(C=self.C, E=self.E, r2=self.r2)
            record |= {name: end for name, end in ends.items() if name.endswith(("_lo", "_hi"))}
            sd, models_sd = self.alpha_sds
            record |= {"alpha_models_sd": models_sd, "limited_by": self.limited_by}
            if about.knows_text:
                record |= {"alpha_text_lo": self.alpha_text.lo, "alpha_text_hi": self.alpha_text.hi}
                record |= {"alpha_text_sd": sd, "alpha_text_bias": float(about.bias_P[1])}
        if found is not None and found.unequal is not None:
            record |= {"over": found.unequal.over, "weights": found.unequal.weight_N.tolist()}
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
    S_N, given_N = _checked(S, y)
    method, sign = Method(method), 1
    law = PowerLaw(n_points=len(S_N), S=S_N.tolist(), method=method, y=given_N.tolist(), sign=1)
    if signed:
        signs = np.sign(given_N)
        if len(S_N) >= 3 and np.all(np.isfinite(given_N)) and (np.any(signs != signs[0]) or signs[0] == 0):
            return replace(law, status=Status.sign_change, sign=None)
        sign = -1 if len(signs) and signs[0] < 0 else 1
        law = replace(law, sign=sign)
    y_N, replicates = sign * given_N, _usable(y_replicates, len(S_N), sign)
    found = estimate(S_N, y_N, replicates, method, given, unequal)
    if found is Status.no_variation:  # the same at every size: alpha is 0, R2 and intervals are undefined
        return replace(law, status=found, C=Estimate(float(y_N[0])), alpha=Estimate(0.0))
    if isinstance(found, Status):
        return replace(law, status=found)
    r2: float | None
    r2, aic, bic = quality(found.regression, found.ln_y_N, method, found.sigma_N)
    if unequal is not None and unequal.over > 1:  # runs that are badly tuned have no part in the law
        r2, aic, bic = None, None, None
    about = found.spread if found.has_interval else None
    return replace(
        law,
        **numbers(found, r2, method, backtests),
        aic=aic,
        bic=bic,
        backtest_error=_backtest_error(S_N, y_N, method, found.sigma_N, given, unequal) if backtests else None,
        status=Status.at_bound if found.regression.at_bound else None,
        found=found,
        n_replicates=None if replicates is None else len(replicates.y_BN),
        n_replicates_left_out=0 if replicates is None else replicates.n_left_out,
        given=given,
        interval=None if about is None else "documents and models" if about.knows_text else "models",
        limited_by=None if about is None else about.limit(np.eye(len(found.regression.theta_P))[1]),
    )


def reproduce(params: Mapping[str, Any]) -> dict[str, float | None]:
    """Repeat a fit from the values in its params: C at S = 1, alpha and E, to be compared with those of the fit.

    Args:
        params: the record of a fit that has numbers.
    """
    S_N, y_N = np.asarray(params["S"], float), params["sign"] * np.asarray(params["y"], float)
    sigma_N = None if params["sigma_ln"] is None else np.asarray(params["sigma_ln"], float)
    x_N, ln_y_N, ln_S_ref = np.log(S_N) - np.log(S_N).mean(), np.log(y_N), float(np.log(S_N).mean())
    method, given = Method(params["method"]), params.get("given")
    if "over" in params:
        unequal = Unequal(np.asarray(params["weights"], float), params["over"])
        regression = regress_unequal(x_N, ln_y_N, unequal)
    elif given:
        regression = regress_pinned(x_N, ln_y_N, method, given, ln_S_ref)
    else:
        regression = regress(x_N, ln_y_N, method, sigma_N)
    theta = dict(zip(NAMES, regression.theta_P.tolist(), strict=False))
    ln_C = theta["ln_C_ref"] + theta["alpha"] * ln_S_ref
    return {"C": exp_or_none(ln_C), "alpha": theta["alpha"], "E": theta.get("E", 0.0)}


def _backtest_error(
    S_N: Floats,
    y_N: Floats,
    method: Method,
    sigma_N: Floats | None,
    given: Mapping[str, float],
    unequal: Unequal | None,
) -> float | None:
    rest, largest = np.flatnonzero(S_N < S_N.max()), np.flatnonzero(S_N == S_N.max())
    rest = rest[np.argsort(S_N[rest])]
    if doubt(S_N[rest], y_N[rest], method, given) is not None or np.all(y_N[rest] == y_N[rest[0]]):
        return None
    ln_S_ref = float(np.log(S_N[rest]).mean())
    sigma_of_rest = None if sigma_N is None else sigma_N[rest]
    x_N, ln_y_N = np.log(S_N[rest]) - ln_S_ref, np.log(y_N[rest])
    if unequal is not None:
        regression = regress_unequal(x_N, ln_y_N, unequal.only(rest))
    elif given:
        regression = regress_pinned(x_N, ln_y_N, method, given, ln_S_ref)
    else:
        regression = regress(x_N, ln_y_N, method, sigma_of_rest)
    if not regression.converged:
        return None
    x = math.log(S_N.max()) - ln_S_ref
    ln_power = float(regression.theta_P[0] - regression.theta_P[1] * x)
    if ln_power > 700:
        return None
    E = float(regression.theta_P[2]) if method is Method.offset else 0.0
    return (math.exp(ln_power) + E) / float(y_N[largest].mean()) - 1


def _checked(S: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    S_N, y_N = np.asarray(S, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if S_N.ndim != 1 or not np.all((S_N > 0) & np.isfinite(S_N)):
        raise ValueError(f"sizes must be a list of positive numbers, got {S!r}")
    if y_N.shape != S_N.shape:
        raise ValueError(f"S has shape {S_N.shape}, y {y_N.shape}")
    return S_N, y_N


def _usable(replicates: ArrayLike | Replicates | None, n_sizes: int, sign: int) -> Replicates | None:
    if replicates is None or isinstance(replicates, Replicates):
        return replicates
    y_BN = np.asarray(replicates, dtype=np.float64)
    if y_BN.ndim != 2 or y_BN.shape[1] != n_sizes:
        raise ValueError(f"y_resampled has shape {y_BN.shape}, expected [B, {n_sizes}]")
    return Replicates.of(sign * y_BN)
