"""Uncertainty of a fitted law, from its residuals and from bootstrap replicates of the documents.

The scatter of the sizes about the law, minus the part that the documents explain, is the variation of models; the two
stay separate, so that a law can say which to collect more of. A p value is the level at which the interval just reaches
0, as an interval over documents and models belongs to no one distribution.

Shapes: N sizes, P parameters, B bootstrap replicates of the documents, G steps along a valley, T tests.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.special import gammaincinv, ncfdtr

from rbpx.laws.intervals.estimate import (
    LEVEL,
    NO_ESTIMATE,
    Estimate,
    Moments,
    Replicates,
    around,
    extended_to,
    half_width,
    moments,
    student_t,
)
from rbpx.laws.numeric import Floats, bisect
from rbpx.laws.power.offset import Regression, lines, ln_law, profile_offset

_WORST_CONDITION: Final = 1e8
_NUMERATOR_CERTAIN: Final = 1e6
_REACH: Final = np.linspace(-8, 24, 161)  # around alpha, in half widths of its linear interval
_STEEPEST: Final = 4.0  # larger exponents describe a step between two sizes
ALPHA: Final = 0.05  # of tests
_SMALLEST: Final = 1e-100  # p


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Variances of the parameters of one fit.

    Attributes:
        text_PP: covariance over documents; zeros without replicates.
        bias_P: mean over replicates minus the fit.
        spread_PP: covariance for points with variance 1 in ln y (in a weighted fit, times their own variance).
        scatter: standard deviation of the points about the law, in ln y (of their own standard deviations).
        text_scatter: the part of it that the documents explain.
        point: variance of a new point in units of scatter^2; in a weighted fit the mean over the points.
    """

    text_PP: Floats
    bias_P: Floats
    spread_PP: Floats
    scatter: float
    text_scatter: float
    dof: float
    knows_text: bool
    point: float = 1.0
    n_effective: float | None = None

    def record(self) -> dict[str, Any]:
        """The fields as JSON."""
        return {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in vars(self).items()}

    def interval(
        self, value: float, gradient_P: Floats, new_model: bool = False, p: float = 1 - LEVEL
    ) -> tuple[float, float]:
        """The interval at level 1 - p over documents and models of a function of the parameters.

        It is value - bias +- `half_width`, extended to the value: a plug-in quantity such as an entropy is biased once
        in the data and about as much again in each replicate. `new_model` adds the scatter of one model.
        """
        return extended_to(
            value, around(value - float(gradient_P @ self.bias_P), self.half_width(gradient_P, new_model, p))
        )

    def half_width(self, gradient_P: Floats, new_model: bool = False, p: float = 1 - LEVEL) -> float:
        """Its half width."""
        unit, shared = self._unit(gradient_P, new_model), self.shared(gradient_P, new_model)
        return half_width(shared, self.scatter, self.dof, self.text_scatter, unit, self.n_effective, p)

    def _unit(self, gradient_P: Floats, new_model: bool = False) -> float:
        return max(float(gradient_P @ self.spread_PP @ gradient_P), 0.0) + self.point * new_model

    def shared(self, gradient_P: Floats, new_model: bool = False) -> float:
        """The variance over documents that the scatter does not show, as all sizes share it."""
        text = float(gradient_P @ self.text_PP @ gradient_P)
        return max(text - self.text_scatter**2 * self._unit(gradient_P, new_model), 0.0)

    def text_interval(self, value: float, gradient_P: Floats, p: float = 1 - LEVEL) -> tuple[float, float]:
        """The interval for the same models on other documents."""
        shared = self.shared(gradient_P)
        own = max(self.variances(gradient_P)[0] - shared, 0.0)
        half = half_width(shared, own=math.sqrt(own), n_effective=self.n_effective, p=p)
        return extended_to(value, around(value - float(gradient_P @ self.bias_P), half))

    def variances(self, gradient_P: Floats) -> tuple[float, float]:
        """The variances over documents and over models."""
        models = max(self.scatter**2 - self.text_scatter**2, 0.0) * float(gradient_P @ self.spread_PP @ gradient_P)
        return float(gradient_P @ self.text_PP @ gradient_P), models

    def limit(self, gradient_P: Floats) -> str | None:
        """What to collect more of, "models" or "text"; None without replicates of the documents."""
        if not self.knows_text:
            return None
        text, models = self.variances(gradient_P)
        return "models" if models >= text else "text"


def uncertainty(regression: Regression, x_N: Floats, replicates: Replicates | None = None) -> Uncertainty:
    """The variances of a fit from its residuals and from those replicates of the documents that converge."""
    J_NP, L_PN, theta_P = regression.jacobian_NP, regression.sensitivity_PN, regression.theta_P
    dof: float = regression.dof
    w_N, spread_PP, point = np.ones(len(J_NP)), L_PN @ L_PN.T, 1.0
    if regression.weighs_variances:
        w_N = regression.weight_N
        spread_PP, point = (L_PN / w_N) @ L_PN.T, float(np.mean(1 / w_N))
    total = float(w_N @ regression.residual_N**2) / dof
    text, replicates = _text(regression, x_N, replicates)
    text_PP, bias_P, explained, changes = np.zeros((len(theta_P),) * 2), np.zeros(len(theta_P)), 0.0, None
    if replicates is not None and text is not None:
        text_PP, bias_P = text.covariance_PP, text.bias_P
        explained = float(w_N @ replicates.mean_squares_of(np.eye(len(J_NP)) - J_NP @ L_PN)) / dof
        changes = (replicates.ln_y_BN - replicates.mean_N) * np.sqrt(w_N)
    scatter, text_scatter = total**0.5, explained**0.5
    if len(set(x_N.tolist())) < len(x_N) and regression.free_PF is None:
        root_N = np.sqrt(w_N)
        J_NP, residual_N = regression.free_jacobian_NP * root_N[:, None], regression.residual_N * root_N
        scatter, text_scatter, dof = _of_repeated_sizes(x_N, J_NP, residual_N, changes)
    n_effective = None if replicates is None else replicates.n_effective
    return Uncertainty(text_PP, bias_P, spread_PP, scatter, text_scatter, dof, text is not None, point, n_effective)


def _of_repeated_sizes(
    x_N: Floats, J_NP: Floats, residual_N: Floats, change_BN: Floats | None
) -> tuple[float, float, float]:
    """Scatter, the part of it that documents explain, and its degrees of freedom, for alpha, where sizes repeat.

    Models of one size share an effect. With K the indicator of points of one size, r the residuals and l the influence
    of each point on alpha, the variance omega^2 l'l + tau^2 l'K l is estimated by the combination a r'r + b r'K r of
    that mean, with Satterthwaite's degrees of freedom.

    Source:
        F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110; S. R. Searle, G. Casella, C. E. McCulloch, Variance
        Components (1992), section 5.3.
    """
    L_PN = np.linalg.pinv(J_NP)
    rest_NN, same_NN, influence_N = np.eye(len(x_N)) - J_NP @ L_PN, np.equal.outer(x_N, x_N).astype(float), L_PN[1]
    wanted = np.array([influence_N @ influence_N, influence_N @ same_NN @ influence_N])
    squares = np.array([residual_N @ residual_N, residual_N @ same_NN @ residual_N])
    # Means of r'r and r'K r, by omega^2 and tau^2.
    of_size_NN = rest_NN @ same_NN
    of_one, mixed, of_sizes = (float(np.trace(each)) for each in (rest_NN, of_size_NN, of_size_NN @ of_size_NN))
    means = np.array([[of_one, mixed], [mixed, of_sizes]])
    if np.linalg.cond(means) > _WORST_CONDITION:  # the residuals do not tell the variances apart
        (a, b), omega2, tau2 = (wanted[1] / mixed, 0.0), squares[0] / of_one, 0.0
    else:
        (a, b), (omega2, tau2) = np.linalg.solve(means, wanted), np.linalg.solve(means, squares)
        if omega2 < 0 or tau2 < 0:
            omega2, tau2 = (squares[0] / of_one, 0.0) if tau2 < 0 else (0.0, squares[0] / mixed)
    form_NN = a * rest_NN + b * of_size_NN @ rest_NN
    variance = float(residual_N @ form_NN @ residual_N)
    if variance < 0:  # an unbiased estimate may be negative; effects of sizes are then set to 0
        form_NN = rest_NN * (wanted[0] / of_one)
        variance, tau2 = float(residual_N @ form_NN @ residual_N), 0.0
    spread_NN = form_NN @ (tau2 * same_NN + omega2 * np.eye(len(x_N)))
    rounds = float(np.sum(spread_NN * spread_NN.T))
    dof = float(np.trace(spread_NN)) ** 2 / rounds if rounds > 0 else of_one
    explained = 0.0
    if change_BN is not None:
        explained = max(float(np.einsum("bm,mn,bn->b", change_BN, form_NN, change_BN).mean()), 0.0)
    return math.sqrt(variance / wanted[0]), math.sqrt(explained / wanted[0]), dof


def _text(
    regression: Regression, x_N: Floats, replicates: Replicates | None
) -> tuple[Moments | None, Replicates | None]:
    if replicates is None:
        return None, None
    if regression.is_linear:  # in closed form, without fitting the replicates
        L_PN = regression.sensitivity_PN
        return Moments(L_PN @ replicates.mean_N - regression.theta_P, replicates.covariance_of(L_PN)), replicates
    theta_BP = regression.refit(x_N, replicates.ln_y_BN)
    ended_B = np.isfinite(theta_BP).all(axis=1)
    if not ended_B.all():
        ended = Replicates.of_logarithms(replicates.ln_y_BN[ended_B])
        replicates = replace(ended, n_effective=replicates.n_effective)
    return moments(regression.theta_P, theta_BP[ended_B]), replicates


def r2_interval(r2: float, n: int, p: float = 1 - LEVEL) -> tuple[float, float]:
    """The interval at level 1 - p of R2, in [0, 1), of a line through n > 2 points, from the noncentral F distribution.

    Source:
        M. L. Smithson, Educational and Psychological Measurement 61 (2001) 605.
    """
    dof = n - 2
    F = dof * r2 / (1 - r2)
    lo, hi = (_noncentrality(F, dof, tail) for tail in (p / 2, 1 - p / 2))
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


def offset_ends(
    x_N: Floats, ln_y_N: Floats, theta_P: Floats, spread: Uncertainty, gradients_PP: Floats, p: float = 1 - LEVEL
) -> Floats:
    """Profile intervals at level 1 - p of linear functions of theta, [P, 2], for a law with an offset; NaN where open.

    The gradients are those of alpha, any function, E.
    """
    alpha, width = float(theta_P[1]), spread.half_width(gradients_PP[0], p=p)
    if width == 0:
        return np.column_stack([gradients_PP @ theta_P] * 2)
    alpha_G = alpha + width * _REACH
    alpha_G = alpha_G[(np.abs(alpha_G) <= max(_STEEPEST, abs(alpha))) | (_REACH == 0)]
    best = int(np.argmin(np.abs(alpha_G - alpha)))
    theta_GP, ss_G = profile_offset(x_N, ln_y_N, theta_P, alpha_G)
    value_GP, limit = theta_GP @ gradients_PP.T, spread.scatter**2 * (spread.dof + student_t(spread.dof, p) ** 2)
    ends_P2 = np.column_stack([_crossing(value_GP[side], ss_G[side], limit) for side in np.s_[best::-1, best:]])
    reach_P2 = np.abs(ends_P2 - value_GP[best][:, None])
    shared_P = np.array([half_width(spread.shared(of_P), n_effective=spread.n_effective, p=p) for of_P in gradients_PP])
    ends_P2 += [-1, 1] * (np.hypot(reach_P2, shared_P[:, None]) - reach_P2)
    line_P = lines(x_N, ln_y_N[None])[0]
    if np.sum((ln_y_N - ln_law(x_N, line_P)) ** 2) <= limit:  # not along the valley, which bends where E reaches 0
        ends_P2[2, 0] = 0.0
    return ends_P2


def _crossing(value_GP: Floats, ss_G: Floats, limit: float) -> Floats:
    """The values where the sum of squares passes the limit; NaN if it never does, or a search failed."""
    over_G = ~(ss_G <= limit)
    at = int(np.argmax(over_G))
    if at == 0 or not np.isfinite(ss_G[at]):
        return np.full(value_GP.shape[1], math.nan)
    # The root of the sum of squares is nearly linear in alpha, the sum itself is not.
    before, after, wanted = np.sqrt(np.maximum([ss_G[at - 1], ss_G[at], limit] - ss_G[0], 0.0))
    return np.asarray(value_GP[at - 1] + (wanted - before) / (after - before) * (value_GP[at] - value_GP[at - 1]))


def law_estimates(
    regression: Regression,
    spread: Uncertainty,
    x_N: Floats,
    ln_y_N: Floats,
    ln_S_ref: float,
    has_interval: bool,
    p: float = 1 - LEVEL,
) -> tuple[Estimate, Estimate, Estimate]:
    """C, alpha and E of a law, with their intervals at level 1 - p."""
    of_3P = np.array([[0.0, 1.0, 0.0], [1.0, ln_S_ref, 0.0], [0.0, 0.0, 1.0]])  # alpha, ln C at S = 1, E
    P, free_PF, ends_32 = len(regression.theta_P), regression.free_PF, np.full((3, 2), math.nan)
    value_3 = of_3P[:, :P] @ regression.theta_P
    if has_interval and P == 3 and free_PF is None:
        ends_32 = offset_ends(x_N, ln_y_N, regression.theta_P, spread, of_3P, p)
        if math.isfinite(ends_32[2, 1]):
            ends_32[2, 0] = np.nan_to_num(ends_32[2, 0])
        for at in (1, 2):  # the valley may turn, and the ends of alpha then do not enclose C
            if np.isfinite(ends_32[at]).all():
                ends_32[at] = extended_to(float(value_3[at]), tuple(ends_32[at].tolist()))
    elif has_interval:
        for at in range(3 if P == 3 and free_PF is not None and np.any(free_PF[2]) else 2):
            ends_32[at] = spread.interval(float(value_3[at]), of_3P[at, :P], p=p)
    ends_32[2, 0] = np.maximum(ends_32[2, 0], 0.0)
    alpha, ln_C, E = (
        Estimate(value, *(None if math.isnan(end) else end for end in ends))
        for value, ends in zip(value_3.tolist(), ends_32.tolist(), strict=True)
    )
    stderr = spread.scatter * math.sqrt(float(spread.spread_PP[1, 1]))
    return ln_C.exp(), replace(alpha, stderr=stderr), E if P == 3 else NO_ESTIMATE


def fit_quality(
    regression: Regression, ln_y_N: Floats, shows: bool, p: float = 1 - LEVEL
) -> tuple[Estimate, float | None, float | None]:
    """R2 (with ends for a line, if `shows`), AIC and BIC: n ln(SS / n) + sum ln sigma^2 + penalty."""
    n = len(ln_y_N)
    w_N = regression.weight_N if regression.weighs_variances else np.ones(n)
    ss_residual = float(w_N @ regression.residual_N**2)
    r2 = 1 - ss_residual / float(w_N @ (ln_y_N - np.average(ln_y_N, weights=w_N)) ** 2)
    has_ends = shows and regression.is_linear and regression.scale is None and 0 <= r2 < 1
    of_r2 = Estimate(r2, *extended_to(r2, r2_interval(r2, n, p))) if has_ends else Estimate(r2)
    if regression.scale is not None or ss_residual == 0:
        return of_r2, None, None
    fit, n_parameters = n * math.log(ss_residual / n) - float(np.log(w_N).sum()), n - regression.dof
    return of_r2, fit + 2 * n_parameters, fit + n_parameters * math.log(n)


def p_of_zero(value: float, gradient_P: Floats, about: Uncertainty) -> float:
    """The two-sided p value of a function of the parameters being 0; values below 1e-100 are 0."""
    distance = abs(value - float(gradient_P @ about.bias_P))

    def left(ln_p: float) -> float:
        return distance - about.half_width(gradient_P, p=math.exp(ln_p))

    if left(math.log(_SMALLEST)) >= 0:
        return 0.0 if distance > 0 else 1.0
    if distance == 0:
        return 1.0
    return math.exp(bisect(lambda ln_p: left(ln_p) < 0, math.log(_SMALLEST), 0.0))


def holm(p_T: Sequence[float]) -> list[float]:
    """Adjusts p values of several tests for any false rejection (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    order = np.argsort(p_T, kind="stable")
    factors_T = len(p_T) - np.arange(len(p_T))
    adjusted_T = np.minimum(np.maximum.accumulate(np.asarray(p_T, float)[order] * factors_T), 1.0)
    back = np.empty(len(p_T))
    back[order] = adjusted_T
    return [float(p) for p in back]
