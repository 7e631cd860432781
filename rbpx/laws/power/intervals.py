"""Finds a power law from its points and their replicates: parameters, intervals, R2, information criteria and p values.

An interval over documents and models is not that of one distribution (`half_width`), so a p value is found from the
interval itself: the level at which it would just reach 0. Below 0.05 the 95 % interval leaves 0 out.

Shapes: N sizes, B replicates of the documents, P parameters, L laws, G steps along a valley, T tests.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from scipy.special import gammaincinv, ncfdtr, ndtri, stdtrit

from rbpx.laws.intervals.estimate import TAILS, Moments, Replicates, moments, reaching, student_t
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, Problem, Searching, exp_or_none
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
) -> Searching[FoundLaw | Status]:
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
        regression = yield from regress(x_N, ln_y_N, method, sigma_N)
    if not regression.converged:
        return Status.not_converged
    if unequal is not None and unequal.over > 1:
        spread = uncertainty_over(x_N, ln_y_N, unequal, used)
        return FoundLaw(
            ln_S_ref, x_N, ln_y_N, regression, spread, sigma_N, replicates is None or used is not None, unequal
        )
    spread = yield from _spread(regression, method, x_N, used)
    return FoundLaw(
        ln_S_ref, x_N, ln_y_N, regression, spread, sigma_N, replicates is None or spread.knows_text, unequal
    )


def _spread(
    regression: Regression, method: Method, x_N: Floats, replicates: Replicates | None
) -> Searching[Uncertainty]:
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
        theta_BP = yield from refit(regression, method, x_N, replicates.ln_y_BN)
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
Ends = tuple[float | None, float | None]
_REACH: Final = np.linspace(-8, 24, 161)  # half widths of the linear interval, to either side of the fit
_STEEPEST: Final = 4.0  # exponents beyond it are a step between two sizes, no power law


@dataclass(frozen=True)
class R2(Problem):
    """The R2 of a regression, whose interval is wanted.

    Attributes:
        value: in [0, 1).
        n: number of sizes, above 2.
    """

    value: float
    n: int

    def kind(self) -> Hashable:
        """All are alike."""
        return None

    @staticmethod
    def solve(alike: Sequence["R2"]) -> list[tuple[float, float]]:
        """The interval of each, that of `r2_interval`."""
        value_L, n_L = np.array([(each.value, each.n) for each in alike], dtype=np.float64).T
        dof_L = n_L - 2
        F_L = dof_L * value_L / (1 - value_L)
        lo_hi_2L = np.empty((2, len(alike)))
        certain_L = F_L > _NUMERATOR_CERTAIN
        for end, tail in enumerate(TAILS):
            by_dof_L = 2 * gammaincinv(dof_L[certain_L] / 2, tail) / dof_L[certain_L]
            lo_hi_2L[end, certain_L] = F_L[certain_L] * by_dof_L
            lo_hi_2L[end, ~certain_L] = _noncentrality(F_L[~certain_L], dof_L[~certain_L], 1 - tail)
        lo_hi_2L /= lo_hi_2L + n_L
        return [(lo, hi) for lo, hi in lo_hi_2L.T.tolist()]


def _noncentrality(F_L: Floats, dof_L: Floats, tail: float) -> Floats:
    """The noncentrality of which F has this probability of being at most as large; 0 where none is."""
    from scipy.optimize.elementwise import find_root  # a fifth of a second, which only intervals of R2 need

    found_L, high_L = np.zeros(len(F_L)), np.maximum(F_L, 1.0)
    some_L = tail < ncfdtr(1, dof_L, 0.0, F_L)  # else even no noncentrality at all leaves F below its quantile
    while (low_L := ncfdtr(1, dof_L, high_L, F_L) > tail).any():
        high_L[low_L] *= 2
    zero_L, F_L, dof_L = np.zeros(int(some_L.sum())), F_L[some_L], dof_L[some_L]
    found_L[some_L] = find_root(
        lambda nc, *of: ncfdtr(1, of[0], nc, of[1]) - tail, (zero_L, high_L[some_L]), args=(dof_L, F_L)
    ).x
    return found_L


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


def offset_ends(
    x_N: Floats, ln_y_N: Floats, theta_P: Floats, spread: Uncertainty, ln_S_ref: float
) -> Searching[OffsetEnds]:
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
    theta_GP, ss_G = yield from profile_offset(x_N, ln_y_N, theta_P, alpha_G)
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


class Intervals(NamedTuple):
    """The 95 % intervals of a law beside that of alpha; an end is None where it is not known."""

    C: Ends = (None, None)
    E: Ends = (None, None)
    r2: Ends = (None, None)


NO_INTERVALS: Final = Intervals()


def intervals(found: FoundLaw, r2: float | None, method: Method) -> Searching[tuple[Ends, Intervals]]:
    """The 95 % interval of alpha, and the others; without an r2 there is none of it."""
    regression, spread, ln_S_ref = found.regression, found.spread, found.ln_S_ref
    n_more = len(regression.theta_P) - 2
    of_alpha_P, of_ln_C_P = np.array([0.0, 1.0, *[0.0] * n_more]), np.array([1.0, ln_S_ref, *[0.0] * n_more])
    alpha, ln_C = float(regression.theta_P[1]), float(of_ln_C_P @ regression.theta_P)
    ends: Ends = spread.interval(alpha, of_alpha_P)
    ln_C_ends: Ends = spread.interval(ln_C, of_ln_C_P)
    E_lo: float | None = None
    E_hi: float | None = None
    if method is Method.offset and regression.free_PF is not None:
        if np.any(regression.free_PF[2]):
            E_lo, E_hi = spread.interval(float(regression.theta_P[2]), np.array([0.0, 0.0, 1.0]))
    elif method is Method.offset:
        valley = yield from offset_ends(found.x_N, found.ln_y_N, regression.theta_P, spread, ln_S_ref)
        ends, ln_C_ends = valley.alpha, valley.ln_C
        E_lo, E_hi = valley.E
        if None not in ln_C_ends:  # the valley may turn, so that an end of alpha is none of C
            ln_C_ends = reaching(ln_C, (ln_C_ends[0], ln_C_ends[1]))  # type: ignore[arg-type]
        if E_hi is not None:
            E_lo, E_hi = reaching(float(regression.theta_P[2]), (E_lo or 0.0, E_hi))
    C_ends = exp_or_none(ln_C_ends[0]), exp_or_none(ln_C_ends[1])
    r2_ends: Ends = (None, None)
    if method in (Method.ols, Method.weighted) and r2 is not None and 0 <= r2 < 1 and regression.free_PF is None:
        r2_ends = reaching(r2, (yield R2(r2, len(regression.residual_N))))
    return ends, Intervals(C_ends, (None if E_lo is None else max(E_lo, 0.0), E_hi), r2_ends)


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
    from scipy.optimize import brentq  # a fifth of a second, which only tests need

    return math.exp(brentq(left, math.log(_SMALLEST), 0.0, xtol=1e-14))


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
