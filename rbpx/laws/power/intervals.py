"""Finds a power law from its points and their replicates: parameters, intervals, R2, information criteria and p values.

An interval over documents and models is not that of one distribution (`half_width`), so a p value is found from the
interval itself: the level at which it would just reach 0. Below 0.05 the 95 % interval leaves 0 out.

Shapes: N sizes, B replicates of the documents, P parameters, L laws, G steps along a valley, T tests.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincinv, ncfdtr, ndtri, stdtrit

from rbpx.laws.intervals.estimate import NO_ESTIMATE, TAILS, Estimate, Moments, Replicates, moments, reaching, student_t
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.pinned import NOTHING, refit_pinned, regress_pinned
from rbpx.laws.power.regression import Regression, profile_offset, refit, regress
from rbpx.laws.power.uncertainty import Uncertainty, uncertainty
from rbpx.laws.power.unequal import Unequal, regress_unequal, uncertainty_over
from rbpx.status import Status


@dataclass(frozen=True, eq=False)
class FoundLaw:
    """A law that was found.

    Attributes:
        ln_S_ref: of the geometric mean of the sizes.
        x_N: ln(S / S_ref).
        ln_y_N: logarithms of the values.
        regression: of ln y on x.
        spread: its uncertainty.
        sigma_N: standard deviation of each ln y; None unless it weighs.
        has_interval: not where replicates were given, of which too few are usable.
        unequal: how runs count; None where they count alike.
    """

    ln_S_ref: float
    x_N: Floats
    ln_y_N: Floats
    regression: Regression
    spread: Uncertainty
    sigma_N: Floats | None
    has_interval: bool
    unequal: Unequal | None = None


def estimate(
    S_N: Floats,
    y_N: Floats,
    replicates: Replicates | None,
    method: Method,
    given: Mapping[str, float] = NOTHING,
    unequal: Unequal | None = None,
) -> FoundLaw | Status:
    """The law, or the status that says why there is none: no_variation where all y are equal."""
    reason = doubt(S_N, y_N, method, given)
    if reason is not None:
        return reason
    if np.all(y_N == y_N[0]):
        return Status.no_variation
    ln_S_ref = float(np.log(S_N).mean())
    x_N, ln_y_N = np.log(S_N) - ln_S_ref, np.log(y_N)
    used = replicates if replicates is not None and replicates.suffices else None
    sigma_N = None
    if method is Method.weighted:
        # The standard deviation of equal values is rounding, not 0.
        if used is None or not np.all(np.ptp(used.ln_y_BN, axis=0) > 0):
            return Status.no_variances
        sigma_N = np.sqrt(np.diag(used.covariance_NN))
    if unequal is not None:
        regression = regress_unequal(x_N, ln_y_N, unequal)
        sigma_N = 1 / np.sqrt(regression.weight_N)
    elif given:
        regression = regress_pinned(x_N, ln_y_N, method, given, ln_S_ref)
    else:
        regression = regress(x_N, ln_y_N, method, sigma_N)
    if not regression.converged:
        return Status.not_converged
    if unequal is not None and unequal.over > 1:
        spread = uncertainty_over(x_N, ln_y_N, unequal, used)
        return FoundLaw(
            ln_S_ref, x_N, ln_y_N, regression, spread, sigma_N, replicates is None or used is not None, unequal
        )
    spread = _spread(regression, method, x_N, used)
    return FoundLaw(
        ln_S_ref, x_N, ln_y_N, regression, spread, sigma_N, replicates is None or spread.knows_text, unequal
    )


def _spread(regression: Regression, method: Method, x_N: Floats, replicates: Replicates | None) -> Uncertainty:
    """The uncertainty of a regression; replicates whose refit does not converge are left out."""
    if replicates is None:
        return uncertainty(regression, None, x_N)
    if regression.is_linear(method):  # mean and covariance of the refits, without these
        L_PN = regression.sensitivity_PN
        text: Moments | None = Moments(L_PN @ replicates.mean_N - regression.theta_P, replicates.covariance_of(L_PN))
        return uncertainty(regression, (text, replicates), x_N)
    if regression.free_PF is not None:
        theta_BP = refit_pinned(regression, x_N, replicates.ln_y_BN)
    else:
        theta_BP = refit(regression, method, x_N, replicates.ln_y_BN)
    ended_B = np.isfinite(theta_BP).all(axis=1)
    text = moments(regression.theta_P, theta_BP[ended_B])
    if not ended_B.all():
        ended = Replicates.of_logarithms(replicates.ln_y_BN[ended_B])
        replicates = replace(ended, n_documents=replicates.n_documents)
    return uncertainty(regression, (text, replicates), x_N)


def doubt(S_N: Floats, y_N: Floats, method: Method, given: Mapping[str, float] = NOTHING) -> Status | None:
    """Why no law can be fitted to these points."""
    if len(set(S_N.tolist())) < (4 if method is Method.offset and not given else 3):
        return Status.too_few_sizes
    if not np.all((y_N > 0) & np.isfinite(y_N)):
        return Status.not_positive
    return None


_NUMERATOR_CERTAIN: Final = 1e6
_LAST_DIGITS: Final = 4 * float(np.finfo(np.float64).eps)  # the least tolerance that brentq takes
Ends = tuple[float | None, float | None]
_REACH: Final = np.linspace(-8, 24, 161)  # half widths of the linear interval, to either side of the fit
_STEEPEST: Final = 4.0  # exponents beyond it are a step between two sizes, no power law


def r2_interval(r2: float, n: int) -> tuple[float, float]:
    """R2's 95 % interval: the noncentralities under which F, 1 and n - 2 degrees of freedom, is at its quantiles.

    Args:
        r2: in [0, 1), of a regression with one slope.
        n: number of sizes, above 2.

    Source:
        M. L. Smithson, Correct Confidence Intervals for Various Regression Effect Sizes, Educational and Psychological
        Measurement 61 (2001) 605.
    """
    dof = n - 2
    F = dof * r2 / (1 - r2)
    lo, hi = (_noncentrality(F, dof, tail) for tail in TAILS)
    return lo / (lo + n), hi / (hi + n)


def _noncentrality(F: float, dof: int, tail: float) -> float:
    """The noncentrality under which F has this probability of being at least as large; 0 where none is."""
    if F > _NUMERATOR_CERTAIN:
        return F * 2 * float(gammaincinv(dof / 2, tail)) / dof
    if 1 - tail >= ncfdtr(1, dof, 0.0, F):  # even no noncentrality at all leaves F below its quantile
        return 0.0
    high = max(F, 1.0)
    while ncfdtr(1, dof, high, F) > 1 - tail:
        high *= 2
    return float(brentq(lambda nc: ncfdtr(1, dof, nc, F) - (1 - tail), 0.0, high, xtol=1e-300, rtol=_LAST_DIGITS))


@dataclass(frozen=True)
class OffsetEnds:
    """95 % intervals of a law with an offset; an end is None where the valley does not close.

    Attributes:
        alpha: of the exponent.
        ln_C: of the logarithm of the constant at S = 1.
        E: of the offset, in the unit of y.
    """

    alpha: Ends
    ln_C: Ends
    E: Ends


def offset_ends(x_N: Floats, ln_y_N: Floats, theta_P: Floats, spread: Uncertainty, ln_S_ref: float) -> OffsetEnds:
    """The intervals of alpha, ln C and E.

    Args:
        x_N: ln(S / S_ref).
        ln_y_N: logarithms of the values.
        theta_P: ln_C_ref, alpha, E of the fit.
        spread: its uncertainty.
        ln_S_ref: logarithm of S_ref.
    """
    gradients_PP = np.array([[0.0, 1.0, 0.0], [1.0, ln_S_ref, 0.0], [0.0, 0.0, 1.0]])
    alpha, width = float(theta_P[1]), spread.half_width(gradients_PP[0])
    if width == 0:
        ends = [(float(value), float(value)) for value in gradients_PP @ theta_P]
        return OffsetEnds(*ends)
    alpha_G = alpha + width * _REACH
    alpha_G = alpha_G[(np.abs(alpha_G) <= max(_STEEPEST, abs(alpha))) | (_REACH == 0)]
    best = int(np.argmin(np.abs(alpha_G - alpha)))
    theta_GP, ss_G = profile_offset(x_N, ln_y_N, theta_P, alpha_G)
    limit = spread.scatter**2 * (spread.dof + student_t(spread.dof) ** 2)
    down, up = _crossing(ss_G[best::-1], limit), _crossing(ss_G[best:], limit)
    of_alpha, of_ln_C, of_E = (
        _ends(theta_GP @ g_P, best, down, up, spread.shared_half_width(g_P)) for g_P in gradients_PP
    )
    slope = float(x_N @ ln_y_N) / float(x_N @ x_N)
    without_offset = float(np.sum((ln_y_N - ln_y_N.mean() - slope * x_N) ** 2))
    if without_offset <= limit:  # tested directly: the valley bends where E reaches 0, between two steps
        of_E = (0.0, of_E[1])
    return OffsetEnds(of_alpha, of_ln_C, of_E)


def _ends(value_G: Floats, best: int, down: float | None, up: float | None, rest: float) -> Ends:
    """The value at both crossings, widened by the noise shared by all sizes. It increases along the valley."""
    middle, place_G = float(value_G[best]), np.arange(len(value_G))
    ends: list[float | None] = []
    for steps, side in ((down, -1), (up, 1)):
        if steps is None:
            ends.append(None)
            continue
        end = float(np.interp(best + side * steps, place_G, value_G))
        reach = abs(end - middle)
        ends.append(end + side * (float(np.hypot(reach, rest)) - reach))  # exactly the end where nothing is shared
    return ends[0], ends[1]


def _crossing(ss_G: Floats, limit: float) -> float | None:
    """How many steps from the fit the sum of squares passes the limit; None if it never does, or a search failed."""
    over_G = ~(ss_G <= limit)
    if not over_G.any():
        return None
    at = int(np.argmax(over_G))
    if at == 0 or not np.isfinite(ss_G[at]):
        return None
    # The root of the sum of squares is nearly linear in alpha, the sum itself is not.
    before, after, wanted = np.sqrt(np.maximum([ss_G[at - 1], ss_G[at], limit] - ss_G[0], 0.0))
    return at - 1 + float((wanted - before) / (after - before))


def numbers(found: FoundLaw, r2: float | None, method: Method, backtests: bool) -> dict[str, Any]:
    """C, alpha, E and r2 of a law with their 95 % intervals; without backtests r2 has none."""
    regression, spread, ln_S_ref = found.regression, found.spread, found.ln_S_ref
    of_alpha_P, of_ln_C_P, of_E_P = np.eye(3)[1], np.array([1.0, ln_S_ref, 0.0]), np.eye(3)[2]
    theta_P = np.append(regression.theta_P, 0.0)[:3]
    P, free_PF = len(regression.theta_P), regression.free_PF
    alpha, ln_C, E = (float(of_P @ theta_P) for of_P in (of_alpha_P, of_ln_C_P, of_E_P))
    ends: Ends = (None, None)
    ln_C_ends: Ends = (None, None)
    E_ends: Ends = (None, None)
    r2_ends: Ends = (None, None)
    if found.has_interval:
        ends, ln_C_ends = (spread.interval(at, of_P[:P]) for at, of_P in ((alpha, of_alpha_P), (ln_C, of_ln_C_P)))
        if P == 3 and free_PF is None:
            valley = offset_ends(found.x_N, found.ln_y_N, regression.theta_P, spread, ln_S_ref)
            ends, ln_C_ends, E_ends = valley.alpha, _reaching(ln_C, valley.ln_C), valley.E
            E_ends = E_ends if E_ends[1] is None else reaching(E, (E_ends[0] or 0.0, E_ends[1]))
        elif P == 3 and free_PF is not None and np.any(free_PF[2]):
            E_ends = spread.interval(E, of_E_P)
        if backtests and method in (Method.ols, Method.weighted) and free_PF is None:
            r2_ends = (None, None) if r2 is None or not 0 <= r2 < 1 else reaching(r2, r2_interval(r2, len(found.x_N)))
    E_lo, E_hi = E_ends
    return {
        "C": Estimate(*map(exp_or_none, (ln_C, *ln_C_ends))),
        "alpha": Estimate(alpha, *ends, spread.scatter * math.sqrt(float(spread.spread_PP[1, 1]))),
        "E": Estimate(E, None if E_lo is None else max(E_lo, 0.0), E_hi) if P == 3 else NO_ESTIMATE,
        "r2": Estimate(r2, *r2_ends),
    }


def _reaching(value: float, ends: Ends) -> Ends:
    """Both ends, if there are two, extended to the number: a valley may turn, so that an end of alpha is none of C."""
    lo, hi = ends
    return ends if lo is None or hi is None else reaching(value, (lo, hi))


def quality(
    regression: Regression, ln_y_N: Floats, method: Method, sigma_N: Floats | None
) -> tuple[float, float | None, float | None]:
    """R2, AIC and BIC: n ln(SS / n) + sum ln sigma^2 + penalty, the normal likelihood up to one constant."""
    w_N, n = (np.ones(len(ln_y_N)) if sigma_N is None else 1 / sigma_N**2), len(ln_y_N)
    mean = float(w_N @ ln_y_N / w_N.sum())
    ss_residual, ss_total = float(w_N @ regression.residual_N**2), float(w_N @ (ln_y_N - mean) ** 2)
    if method is Method.robust or ss_residual == 0:
        return 1 - ss_residual / ss_total, None, None
    fit = n * math.log(ss_residual / n) - float(np.log(w_N).sum())
    n_parameters = n - regression.dof
    return 1 - ss_residual / ss_total, fit + 2 * n_parameters, fit + n_parameters * math.log(n)


ALPHA: Final = 0.05  # a test with a smaller p is significant
_SMALLEST: Final = 1e-100


def p_of_zero(value: float, gradient_P: Floats, about: Uncertainty) -> float:
    """Two-sided p value of a function of fitted parameters being 0, under the interval of `Uncertainty.interval`.

    Args:
        value: the function at the fitted parameters.
        gradient_P: its derivatives.
        about: of the fit.

    Returns:
        p such that the interval at level 1 - p ends at 0; 0 below 1e-100.
    """
    distance = abs(value - float(gradient_P @ about.bias_P))
    unit = float(gradient_P @ about.spread_PP @ gradient_P)
    shared = max(float(gradient_P @ about.text_PP @ gradient_P) - about.text_scatter**2 * unit, 0.0)

    def left(ln_p: float) -> float:
        half_p = math.exp(ln_p) / 2
        t = -float(stdtrit(about.dof, half_p)) if about.scatter > 0 else 0.0
        z = -float(ndtri(half_p))
        t_D = z if about.n_documents is None else -float(stdtrit(about.n_documents - 1, half_p))
        return distance - math.sqrt(max(t * about.scatter, z * about.text_scatter) ** 2 * unit + t_D**2 * shared)

    if left(math.log(_SMALLEST)) >= 0:
        return 0.0 if distance > 0 else 1.0
    if distance == 0:
        return 1.0
    return math.exp(brentq(left, math.log(_SMALLEST), 0.0, xtol=1e-14, rtol=_LAST_DIGITS))


def holm(p_T: Sequence[float]) -> list[float]:
    """Adjust the p values of several tests, so that one false finding among all of them has a chance of 0.05 at most.

    The smallest is multiplied by their number T, the next by T - 1 and so on; none may be smaller than one before it,
    or above 1. Valid however the tests depend on each other.

    Source:
        Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
    """
    order = np.argsort(p_T, kind="stable")
    factors_T = len(p_T) - np.arange(len(p_T))
    adjusted_T = np.minimum(np.maximum.accumulate(np.asarray(p_T, float)[order] * factors_T), 1.0)
    back = np.empty(len(p_T))
    back[order] = adjusted_T
    return [float(p) for p in back]
