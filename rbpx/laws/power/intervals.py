"""Estimates, intervals, R2, information criteria and p values of a power law, from points and bootstrap replicates.

A p value is the level at which the interval just reaches 0, as an interval over documents and models does not belong to
one distribution (`half_width`).

Shapes: N sizes, B bootstrap replicates of the documents, P parameters, G steps along a valley, T tests.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import gammaincinv, ncfdtr

from rbpx.laws.intervals.estimate import (
    NO_ESTIMATE,
    TAILS,
    Estimate,
    Moments,
    Replicates,
    extended_to,
    moments,
    student_t,
)
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, bisect
from rbpx.laws.power.parameters import NOTHING
from rbpx.laws.power.regression import Regression, profile_offset, regress, regress_pinned
from rbpx.laws.power.uncertainty import Uncertainty, uncertainty
from rbpx.laws.power.unequal import RunWeights, regress_weighted
from rbpx.status import Status


def centred(S_N: Floats) -> tuple[Floats, float]:
    """Returns ln(S / S_ref), S_ref being the geometric mean of the sizes, and ln S_ref."""
    ln_S_ref = float(np.log(S_N).mean())
    return np.log(S_N) - ln_S_ref, ln_S_ref


def regression_of(
    S_N: Floats,
    y_N: Floats,
    method: Method,
    given: Mapping[str, float] = NOTHING,
    run_weights: RunWeights | None = None,
) -> Regression | Status:
    """Fits the regression of ln y on ln S, or returns the status that says why there is none.

    `given` are fixed parameters; the weighted method needs `run_weights`.
    """
    if len(set(S_N.tolist())) < (4 if method is Method.offset and not given else 3):
        return Status.too_few_sizes
    if not np.all((y_N > 0) & np.isfinite(y_N)):
        return Status.not_positive
    if np.all(y_N == y_N[0]):
        return Status.no_variation
    x_N, ln_S_ref = centred(S_N)
    if run_weights is not None:
        regression = regress_weighted(x_N, np.log(y_N), run_weights)
    elif method is Method.weighted:
        return Status.no_variances
    elif given:
        regression = regress_pinned(x_N, np.log(y_N), method, given, ln_S_ref)
    else:
        regression = regress(x_N, np.log(y_N), method)
    return regression if regression.converged else Status.not_converged


def uncertainty_of(regression: Regression, x_N: Floats, replicates: Replicates | None) -> Uncertainty:
    """Returns the uncertainty of a regression, without the replicates whose fit does not converge."""
    if replicates is None:
        return uncertainty(regression, None, x_N)
    text: Moments | None
    if regression.is_linear:  # mean and covariance in closed form, without fitting the replicates
        L_PN = regression.sensitivity_PN
        text = Moments(L_PN @ replicates.mean_N - regression.theta_P, replicates.covariance_of(L_PN))
        return uncertainty(regression, (text, replicates), x_N)
    theta_BP = regression.refit(x_N, replicates.ln_y_BN)
    ended_B = np.isfinite(theta_BP).all(axis=1)
    text = moments(regression.theta_P, theta_BP[ended_B])
    if not ended_B.all():
        ended = Replicates.of_logarithms(replicates.ln_y_BN[ended_B])
        replicates = replace(ended, n_effective=replicates.n_effective)
    return uncertainty(regression, (text, replicates), x_N)


_NUMERATOR_CERTAIN: Final = 1e6
_REACH: Final = np.linspace(-8, 24, 161)  # around alpha, in half widths of its linear interval
_STEEPEST: Final = 4.0  # larger exponents describe a step between two sizes


def r2_interval(r2: float, n: int) -> tuple[float, float]:
    """Returns the 95 % interval of R2, in [0, 1), of a line through n > 2 points, from the noncentral F distribution.

    Source:
        M. L. Smithson, Correct Confidence Intervals for Various Regression Effect Sizes, Educational and Psychological
        Measurement 61 (2001) 605.
    """
    dof = n - 2
    F = dof * r2 / (1 - r2)
    lo, hi = (_noncentrality(F, dof, tail) for tail in TAILS)
    return lo / (lo + n), hi / (hi + n)


def _noncentrality(F: float, dof: int, tail: float) -> float:
    if F > _NUMERATOR_CERTAIN:
        return F * 2 * float(gammaincinv(dof / 2, tail)) / dof
    if 1 - tail >= ncfdtr(1, dof, 0.0, F):  # F is below its quantile without any noncentrality
        return 0.0
    high = max(F, 1.0)
    while ncfdtr(1, dof, high, F) > 1 - tail:
        high *= 2
    return bisect(lambda nc: bool(ncfdtr(1, dof, nc, F) > 1 - tail), 0.0, high)


def offset_ends(x_N: Floats, ln_y_N: Floats, theta_P: Floats, spread: Uncertainty, gradients_PP: Floats) -> Floats:
    """Returns 95 % profile intervals of linear functions of theta, [P, 2], for a law with an offset; NaN where open.

    The gradients are those of alpha, any function, E.
    """
    alpha, width = float(theta_P[1]), spread.half_width(gradients_PP[0])
    if width == 0:
        return np.column_stack([gradients_PP @ theta_P] * 2)
    alpha_G = alpha + width * _REACH
    alpha_G = alpha_G[(np.abs(alpha_G) <= max(_STEEPEST, abs(alpha))) | (_REACH == 0)]
    best = int(np.argmin(np.abs(alpha_G - alpha)))
    theta_GP, ss_G = profile_offset(x_N, ln_y_N, theta_P, alpha_G)
    value_GP, limit = theta_GP @ gradients_PP.T, spread.scatter**2 * (spread.dof + student_t(spread.dof) ** 2)
    ends_P2 = np.column_stack([_crossing(value_GP[side], ss_G[side], limit) for side in np.s_[best::-1, best:]])
    reach_P2 = np.abs(ends_P2 - value_GP[best][:, None])
    shared_P = np.array([spread.shared_half_width(of_P) for of_P in gradients_PP])
    ends_P2 += [-1, 1] * (np.hypot(reach_P2, shared_P[:, None]) - reach_P2)
    slope = float(x_N @ ln_y_N) / float(x_N @ x_N)
    without_offset = float(np.sum((ln_y_N - ln_y_N.mean() - slope * x_N) ** 2))
    if without_offset <= limit:  # tested directly, since the valley bends where E reaches 0
        ends_P2[2, 0] = 0.0
    return ends_P2


def _crossing(value_GP: Floats, ss_G: Floats, limit: float) -> Floats:
    """The values where the sum of squares passes the limit; NaN if it never does, or if a search failed."""
    over_G = ~(ss_G <= limit)
    at = int(np.argmax(over_G))
    if at == 0 or not np.isfinite(ss_G[at]):
        return np.full(value_GP.shape[1], math.nan)
    # The root of the sum of squares is nearly linear in alpha, the sum itself is not.
    before, after, wanted = np.sqrt(np.maximum([ss_G[at - 1], ss_G[at], limit] - ss_G[0], 0.0))
    return np.asarray(value_GP[at - 1] + (wanted - before) / (after - before) * (value_GP[at] - value_GP[at - 1]))


def law_estimates(
    regression: Regression, spread: Uncertainty, x_N: Floats, ln_y_N: Floats, ln_S_ref: float, has_interval: bool
) -> tuple[Estimate, Estimate, Estimate]:
    """Returns C, alpha and E of a law, with their 95 % intervals."""
    of_3P = np.array([[0.0, 1.0, 0.0], [1.0, ln_S_ref, 0.0], [0.0, 0.0, 1.0]])  # alpha, ln C at S = 1, E
    P, free_PF, ends_32 = len(regression.theta_P), regression.free_PF, np.full((3, 2), math.nan)
    value_3 = of_3P[:, :P] @ regression.theta_P
    if has_interval and P == 3 and free_PF is None:
        ends_32 = offset_ends(x_N, ln_y_N, regression.theta_P, spread, of_3P)
        if math.isfinite(ends_32[2, 1]):
            ends_32[2, 0] = np.nan_to_num(ends_32[2, 0])
        for at in (1, 2):  # the valley may turn, and the ends of alpha then do not enclose C
            if np.isfinite(ends_32[at]).all():
                ends_32[at] = extended_to(float(value_3[at]), tuple(ends_32[at].tolist()))
    elif has_interval:
        for at in range(3 if P == 3 and free_PF is not None and np.any(free_PF[2]) else 2):
            ends_32[at] = spread.interval(float(value_3[at]), of_3P[at, :P])
    ends_32[2, 0] = np.maximum(ends_32[2, 0], 0.0)
    alpha, ln_C, E = (
        Estimate(value, *(None if math.isnan(end) else end for end in ends))
        for value, ends in zip(value_3.tolist(), ends_32.tolist(), strict=True)
    )
    stderr = spread.scatter * math.sqrt(float(spread.spread_PP[1, 1]))
    return ln_C.exp(), replace(alpha, stderr=stderr), E if P == 3 else NO_ESTIMATE


def fit_quality(regression: Regression, ln_y_N: Floats, shows: bool) -> tuple[Estimate, float | None, float | None]:
    """Returns R2, AIC and BIC: n ln(SS / n) + sum ln sigma^2 + penalty, the normal likelihood up to a constant.

    R2 of a line has its interval if `shows`.
    """
    n = len(ln_y_N)
    w_N = regression.weight_N if regression.weighs_variances else np.ones(n)
    ss_residual = float(w_N @ regression.residual_N**2)
    r2 = 1 - ss_residual / float(w_N @ (ln_y_N - np.average(ln_y_N, weights=w_N)) ** 2)
    has_ends = shows and regression.is_linear and regression.scale is None and 0 <= r2 < 1
    of_r2 = Estimate(r2, *extended_to(r2, r2_interval(r2, n))) if has_ends else Estimate(r2)
    if regression.scale is not None or ss_residual == 0:
        return of_r2, None, None
    fit, n_parameters = n * math.log(ss_residual / n) - float(np.log(w_N).sum()), n - regression.dof
    return of_r2, fit + 2 * n_parameters, fit + n_parameters * math.log(n)


ALPHA: Final = 0.05  # of tests
_SMALLEST: Final = 1e-100


def p_of_zero(value: float, gradient_P: Floats, about: Uncertainty) -> float:
    """Returns the two-sided p value of a function of fitted parameters being 0, given its value and gradient.

    At level 1 - p, `Uncertainty.interval` ends at 0. Values below 1e-100 are 0.
    """
    distance = abs(value - float(gradient_P @ about.bias_P))

    def left(ln_p: float) -> float:
        return distance - about.half_width(gradient_P, p=math.exp(ln_p))

    if left(math.log(_SMALLEST)) >= 0:
        return 0.0 if distance > 0 else 1.0
    if distance == 0:
        return 1.0
    return math.exp(bisect(lambda ln_p: left(ln_p) < 0, math.log(_SMALLEST), 0.0))


def holm(p_T: Sequence[float]) -> list[float]:
    """Adjusts p values of several tests, so that any false rejection has a probability of at most 0.05.

    The smallest is multiplied by T, the next by T - 1 and so on, without decreasing; at most 1. Tests may depend on
    each other.

    Source:
        Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
    """
    order = np.argsort(p_T, kind="stable")
    factors_T = len(p_T) - np.arange(len(p_T))
    adjusted_T = np.minimum(np.maximum.accumulate(np.asarray(p_T, float)[order] * factors_T), 1.0)
    back = np.empty(len(p_T))
    back[order] = adjusted_T
    return [float(p) for p in back]
