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

from rbpx.laws.intervals.estimate import Estimate, Replicates
from rbpx.laws.intervals.lack_of_fit import NestedTest, lack_of_fit_test, stack_one
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, Searching, alone, at_once, exp_or_none, together
from rbpx.laws.power.intervals import NO_INTERVALS, Ends, FoundLaw, Intervals, doubt, estimate, intervals, quality
from rbpx.laws.power.pinned import NOTHING, Pinned, regress_pinned
from rbpx.laws.power.regression import EQUATIONS, NAMES, TOLERANCES, regress
from rbpx.laws.power.uncertainty import Uncertainty, as_plain
from rbpx.laws.power.unequal import Unequal, regress_unequal
from rbpx.status import Status

__all__ = ["LawFit", "PowerLawFit", "fit_offsets", "fit_power_law", "power_law", "reproduce"]

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
    found: FoundLaw | None = None
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
            return None if self.alpha is None else np.array([math.log(abs(self.y[0])), 0.0])
        return self.found.regression.theta_P

    @property
    def offset(self) -> Estimate:
        """E with its interval; empty where the law has none."""
        with_prior = next((each.now for each in self.pinned if each.name == "E" and each.pin.sd), None)
        if with_prior is not None:
            return with_prior
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
    def pure_error(self) -> NestedTest | None:
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
            for name, (lo, hi) in self.ends._asdict().items():
                record |= {f"{name}_lo": lo, f"{name}_hi": hi}
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


def power_law(
    S: ArrayLike,
    y: ArrayLike,
    y_replicates: ArrayLike | Replicates | None = None,
    method: Method = Method.ols,
    backtests: bool = True,
    signed: bool = False,
    given: Mapping[str, float] = NOTHING,
    unequal: Unequal | None = None,
) -> Searching[PowerLawFit]:
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
        signed y has both signs, or is 0; with numbers, ok, or at_bound where E is 0.

    Raises:
        ValueError: if shapes disagree, or sizes are not positive.

    Source:
        RBP paper (arXiv 2510.20387), eq. 5; table 2 gives slope = -alpha and R2 of the regression `ols`. Signed terms
        of cross-entropy: arXiv 2510.04067.
    """
    S_N, given_N = _checked(S, y)
    method, sign = Method(method), 1
    law = PowerLawFit(n_points=len(S_N), status=Status.ok, S=S_N.tolist(), method=method, y=given_N.tolist(), sign=1)
    if signed:
        signs = np.sign(given_N)
        if len(S_N) >= 3 and np.all(np.isfinite(given_N)) and (np.any(signs != signs[0]) or signs[0] == 0):
            return replace(law, status=Status.sign_change, sign=None)
        sign = -1 if len(signs) and signs[0] < 0 else 1
        law = replace(law, sign=sign)
    y_N, replicates = sign * given_N, _usable(y_replicates, len(S_N), sign)
    found = yield from estimate(S_N, y_N, replicates, method, given, unequal)
    if found is Status.no_variation:  # the same at every size: alpha is 0, R2 and intervals are undefined
        return replace(law, status=found, C=float(y_N[0]), alpha=0.0)
    if isinstance(found, Status):
        return replace(law, status=found)
    regression, spread, sigma_N, ln_S_ref = found.regression, found.spread, found.sigma_N, found.ln_S_ref
    ln_C_ref, alpha = float(regression.theta_P[0]), float(regression.theta_P[1])
    r2: float | None
    r2, aic, bic = quality(regression, found.ln_y_N, method, sigma_N)
    if unequal is not None and unequal.over > 1:  # runs that are badly tuned have no part in the law
        r2, aic, bic = None, None, None
    alpha_ends: Ends = (None, None)
    ends = NO_INTERVALS
    if found.has_interval:
        alpha_ends, ends = yield from intervals(found, r2 if backtests else None, method)
    return replace(
        law,
        C=exp_or_none(ln_C_ref + alpha * ln_S_ref),
        alpha=alpha,
        alpha_stderr=spread.scatter * math.sqrt(float(spread.spread_PP[1, 1])),
        alpha_lo=alpha_ends[0],
        alpha_hi=alpha_ends[1],
        r2=r2,
        aic=aic,
        bic=bic,
        backtest_error=(yield from _backtest_error(S_N, y_N, method, sigma_N, given, unequal)) if backtests else None,
        status=Status.at_bound if regression.at_bound else Status.ok,
        ends=ends,
        found=found,
        n_replicates=None if replicates is None else len(replicates.y_BN),
        n_replicates_left_out=0 if replicates is None else replicates.n_left_out,
        given=given,
        interval=("documents and models" if spread.knows_text else "models") if found.has_interval else None,
        limited_by=spread.limit(np.eye(len(regression.theta_P))[1]) if found.has_interval else None,
    )


fit_power_law = at_once(power_law)


def fit_offsets(points: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike | Replicates | None]]) -> list[PowerLawFit]:
    """The laws with an offset of many (S, y, y_replicates), each as `fit_power_law` without backtests; faster."""
    return together([power_law(*each, Method.offset, backtests=False) for each in points])


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
        regression = alone(regress(x_N, ln_y_N, method, sigma_N))
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
) -> Searching[float | None]:
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
        regression = yield from regress(x_N, ln_y_N, method, sigma_of_rest)
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
