"""Fits ln y = ln(E + C S^-alpha) on ln S, with E = 0 or not, to points and to all their replicates at once.

With theta = (ln C_ref, alpha, E), fixed parameters leave theta = origin + free phi, and phi is fitted. With an offset
the best ln C is a mean of ln y - ln(exp(-alpha x) + q), q = E / C. In alpha and q the sum of squares is a narrow, bent
valley; in the slope -m of ln y at x = 0, m = alpha / (1 + q), and q it is straight, and Newton's method needs few
steps.

Shapes: N sizes, P parameters in the order of `NAMES` (E only for `offset`), F free numbers, B sets of points.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, ObjectiveFunction, Sets, StoppingRule, diagonal, minimise, squares
from rbpx.status import Status

NAMES: Final = ("ln_C_ref", "alpha", "E")
HUBER: Final = 1.345  # scales; 95 % of the efficiency of least squares for normal residuals
_GRADIENT_TOLERANCE: Final = 1e-6  # of the largest possible gradient
_WORST_CONDITION: Final = 1e8  # of the Jacobian; half of the digits of a parameter would be noise
_LARGEST: Final = 1 - 1e-6  # share of the smallest y, for the start of a search with a fixed E
_SHARES_OF_OFFSET: Final = np.array([0.0, 0.3, 0.6, 0.9])  # of the smallest y; starts of E
_AT_BOUND: Final = 1e-7  # of the smallest y; a smaller offset is 0
_EPSILON: Final = float(np.finfo(np.float64).eps)
_ROUNDING: Final = 64 * _EPSILON  # of the largest |ln y|; a smaller scale is 0
_CLOSE: Final = 1e-12  # tolerance of a fitted number
_SMALLEST_SHARE: Final = 2.0**-40  # of the power law in y; float64 does not resolve smaller ones
_LEAST_CURVATURE: Final = 1e-3  # of Gauss-Newton's; below it Newton's matrix is not used

PINNABLE: Final = {Method.ols: ("C", "alpha"), Method.offset: ("C", "alpha", "E")}
"""Parameters that can be fixed or have a prior, by method."""
NOTHING: Final[Mapping[str, float]] = {}

EQUATIONS: Final = {
    Method.ols: "y = C * S^(-alpha), ordinary least squares of ln y on ln S",
    Method.weighted: "y = C * S^(-alpha), least squares of ln y on ln S, weighted by 1 / variance of ln y (documents)",
    Method.offset: "y = E + C * S^(-alpha), E >= 0, ordinary least squares of ln y",
    Method.robust: "y = C * S^(-alpha), Huber's loss of ln y on ln S (1.345 scales)",
}


@dataclass(frozen=True, eq=False)
class Regression:
    """One fitted regression.

    Attributes:
        theta_P: ln_C_ref, alpha and, for `offset`, E (0 at its bound).
        jacobian_NP: derivatives of ln y; zeros for a parameter at its bound.
        residual_N: ln y, measured minus fitted.
        scale: of Huber's loss, in ln y.
        weighs_variances: whether the weights are one over the variances of the points.
        free_PF: directions in which theta is free; None where every parameter is.
    """

    theta_P: Floats
    jacobian_NP: Floats
    weight_N: Floats
    residual_N: Floats
    scale: float | None = None
    at_bound: bool = False
    converged: bool = True
    weighs_variances: bool = False
    free_PF: Floats | None = None

    @property
    def free_jacobian_NP(self) -> Floats:
        """Derivatives of ln y by the free numbers."""
        if self.free_PF is not None:
            return self.jacobian_NP @ self.free_PF
        return self.jacobian_NP[:, np.any(self.jacobian_NP != 0, axis=0)]

    @property
    def dof(self) -> int:
        """Degrees of freedom of the residuals; an E at its bound takes one."""
        return len(self.residual_N) - (len(self.theta_P) if self.free_PF is None else self.free_PF.shape[1])

    @property
    def is_linear(self) -> bool:
        """Whether theta is linear in ln y: not with Huber's loss, an offset or fixed parameters."""
        return self.free_PF is None and len(self.theta_P) == 2 and not self.scale

    @cached_property
    def sensitivity_PN(self) -> Floats:
        """Change of each parameter for a change of each ln y: (J' W J)^-1 J' W over the free parameters."""
        free_PF = self.free_PF
        if free_PF is None:
            free_PF = np.eye(len(self.theta_P))[:, : len(self.theta_P) - int(self.at_bound)]
        J = self.jacobian_NP @ free_PF
        return np.asarray(free_PF @ np.linalg.solve((J.T * self.weight_N) @ J, J.T * self.weight_N))

    def refit(self, x_N: Floats, ln_y_BN: Floats) -> Floats:
        """Fits each replicate, [B, P], from this fit, with its weights and scale; NaN where it did not converge."""
        if self.is_linear:
            return np.asarray(ln_y_BN @ self.sensitivity_PN.T)  # exact
        if self.scale:
            return _huber_lines(x_N, ln_y_BN, self.theta_P, self.scale)
        start_BP = np.tile(self.theta_P, (len(ln_y_BN), 1))
        if self.free_PF is not None:
            return _search_free(x_N, ln_y_BN, start_BP, self.theta_P, self.free_PF)
        if self.at_bound:  # a replicate may have an offset although the data have none
            start_BP[:, 2] = 0.1 * float(np.exp(ln_y_BN.min()))
        return search_offsets(x_N, ln_y_BN, start_BP)


def centred(S_N: Floats) -> tuple[Floats, float]:
    """The ln(S / S_ref), S_ref the geometric mean of the sizes, and ln S_ref."""
    ln_S_ref = float(np.log(S_N).mean())
    return np.log(S_N) - ln_S_ref, ln_S_ref


def regression_of(
    S_N: Floats,
    y_N: Floats,
    method: Method,
    given: Mapping[str, float] = NOTHING,
    weight_N: Floats | None = None,
) -> Regression | Status:
    """Fits the regression of ln y on ln S, or says by a status why there is none; weights are for lines alone."""
    if len(set(S_N.tolist())) < (4 if method is Method.offset and not given else 3):
        return Status.too_few_sizes
    if not np.all((y_N > 0) & np.isfinite(y_N)):
        return Status.not_positive
    if np.all(y_N == y_N[0]):
        return Status.no_trend
    x_N, ln_S_ref = centred(S_N)
    if weight_N is None and method is Method.weighted:
        return Status.not_known
    if given:
        regression = _regress_pinned(x_N, np.log(y_N), method, given, ln_S_ref)
    else:
        regression = regress(x_N, np.log(y_N), method, weight_N)
    return regression if regression.converged else Status.not_converged


def regress(x_N: Floats, ln_y_N: Floats, method: Method, weight_N: Floats | None = None) -> Regression:
    """Fits ln y = ln(E + exp(ln_C_ref - alpha x)), with E = 0 unless the method is `offset`."""
    if weight_N is not None:
        weighted = _regression_at(x_N, ln_y_N, lines(x_N, ln_y_N[None], weight_N)[0], weight_N)
        return replace(weighted, weighs_variances=True)
    if method is Method.offset:
        return _offset(x_N, ln_y_N)
    if method is Method.robust:
        start_P = _median_line(x_N, ln_y_N)
        scale = _scale(ln_y_N - ln_law(x_N, start_P))
        if scale > _ROUNDING * max(1.0, float(np.abs(ln_y_N).max())):
            theta_P = _huber_lines(x_N, ln_y_N[None], start_P, scale)[0]
            return _regression_at(x_N, ln_y_N, theta_P, _huber_weight(ln_y_N - ln_law(x_N, theta_P), scale), scale)
        return replace(regress(x_N, ln_y_N, Method.ols), scale=0.0)
    return _regression_at(x_N, ln_y_N, lines(x_N, ln_y_N[None])[0])


def _offset(x_N: Floats, ln_y_N: Floats) -> Regression:
    start_GP = _offset_starts(x_N, ln_y_N)
    end_GP = search_offsets(x_N, np.tile(ln_y_N, (len(start_GP), 1)), start_GP)
    end_GP = np.where(np.isnan(end_GP), start_GP, end_GP)
    end_P, smallest = end_GP[np.argmin(_squares(x_N, ln_y_N, end_GP))], np.exp(ln_y_N.min())
    if end_P[2] > smallest:  # measured values lie below it
        return replace(_regress_pinned(x_N, ln_y_N, Method.offset, {"E": float(smallest)}, 0.0), free_PF=None)
    if end_P[2] > _AT_BOUND * smallest:
        return _regression_at(x_N, ln_y_N, end_P)
    plain = regress(x_N, ln_y_N, Method.ols)  # the same with E fixed at 0
    jacobian_NP = np.column_stack([plain.jacobian_NP, np.zeros(len(x_N))])
    return replace(plain, theta_P=np.append(plain.theta_P, 0.0), jacobian_NP=jacobian_NP, at_bound=True)


def _regress_pinned(
    x_N: Floats, ln_y_N: Floats, method: Method, given: Mapping[str, float], ln_S_ref: float
) -> Regression:
    """Fits ln y by least squares with fixed parameters C, alpha or E, where E is above no y."""
    names = PINNABLE[method]
    origin_P = np.array([given.get(name, 0.0) for name in names])
    free_PF = np.eye(len(names))[:, [at for at, name in enumerate(names) if name not in given]]
    if "C" in given:  # ln C_ref = ln C - alpha ln S_ref
        origin_P[0] = np.log(given["C"])
        to_ref_PP = np.eye(len(names))
        to_ref_PP[0, 1] = -ln_S_ref
        origin_P, free_PF = to_ref_PP @ origin_P, to_ref_PP @ free_PF
    seeks_E = "E" in names and "E" not in given
    E, smallest = given.get("E", 0.0), float(np.exp(ln_y_N.min()))
    above_N = np.exp(ln_y_N) - min(E, _LARGEST * smallest)
    start_BP = _offset_starts(x_N, ln_y_N) if seeks_E else np.append(lines(x_N, np.log(above_N[None])), [[E]], axis=1)
    start_BP = start_BP[:, : len(names)]
    theta_BP = _search_free(x_N, np.tile(ln_y_N, (len(start_BP), 1)), start_BP, origin_P, free_PF)
    theta_P = theta_BP[np.argmin(_squares(x_N, ln_y_N, theta_BP))]
    if seeks_E and theta_P[2] <= _AT_BOUND * smallest:
        return replace(_regress_pinned(x_N, ln_y_N, method, {**given, "E": 0.0}, ln_S_ref), at_bound=True)
    if seeks_E and theta_P[2] > smallest:
        return replace(_regress_pinned(x_N, ln_y_N, method, {**given, "E": smallest}, ln_S_ref), free_PF=free_PF)
    return _regression_at(x_N, ln_y_N, theta_P, free_PF=free_PF)


def _search_free(x_N: Floats, ln_y_BN: Floats, start_BP: Floats, origin_P: Floats, free_PF: Floats) -> Floats:
    if not free_PF.size:
        return np.tile(origin_P, (len(ln_y_BN), 1))

    def objective(phi_FB: Floats, sets: Sets) -> LocalQuadratic:
        theta_BP = origin_P + (free_PF @ phi_FB).T
        left_BN, J_BNP = ln_law(x_N, theta_BP) - ln_y_BN[sets], jacobian(x_N, theta_BP)
        return squares(left_BN.T, np.moveaxis(J_BNP @ free_PF, 0, -1).swapaxes(0, 1))

    phi_FB: Floats = np.asarray(np.linalg.lstsq(free_PF, (start_BP - origin_P).T, rcond=None)[0])
    found = minimise(objective, phi_FB, end=StoppingRule(step=_CLOSE))
    return np.asarray(origin_P + (free_PF @ found.theta_PB).T)


def _regression_at(
    x_N: Floats,
    ln_y_N: Floats,
    theta_P: Floats,
    weight_N: Floats | None = None,
    scale: float | None = None,
    free_PF: Floats | None = None,
) -> Regression:
    """The regression at theta; it has converged if its gradient vanishes in the free directions."""
    residual_N, jacobian_NP = ln_y_N - ln_law(x_N, theta_P), jacobian(x_N, theta_P)
    weight_N = np.ones(len(x_N)) if weight_N is None else weight_N
    J_NF = jacobian_NP if free_PF is None else jacobian_NP @ free_PF
    gradient_F = J_NF.T @ (weight_N * residual_N)
    reach_F = np.abs(J_NF).T @ (weight_N * np.abs(ln_y_N - ln_y_N.mean()))
    converged = bool(np.all(np.abs(gradient_F) <= _GRADIENT_TOLERANCE * reach_F)) and is_identified(J_NF)
    return Regression(theta_P, jacobian_NP, weight_N, residual_N, scale, False, converged, free_PF=free_PF)


def is_identified(jacobian_NP: Floats) -> bool:
    """Whether the points determine every parameter, which a step between two sizes does not."""
    length_P = np.linalg.norm(jacobian_NP, axis=0)
    if not length_P.all():
        return False
    stretch_P = np.linalg.svd(jacobian_NP / length_P, compute_uv=False)
    return not len(length_P) or bool(stretch_P[0] < _WORST_CONDITION * stretch_P[-1])


def ln_law(x_N: Floats, theta_P: Floats) -> Floats:
    """Ln y at each size, [..., N], for parameters [..., P]."""
    ln_power_N = theta_P[..., 0, None] - theta_P[..., 1, None] * x_N
    if theta_P.shape[-1] == 2:
        return np.asarray(ln_power_N)
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
        return np.asarray(np.logaddexp(ln_power_N, np.log(theta_P[..., 2, None])))


def jacobian(x_N: Floats, theta_P: Floats) -> Floats:
    """The derivatives of `ln_law` by the parameters, [..., N, P]."""
    if theta_P.shape[-1] == 2:
        x_N = np.broadcast_to(x_N, (*theta_P.shape[:-1], len(x_N)))
        return np.stack([np.ones(x_N.shape), -x_N], axis=-1)
    ln_law_N = ln_law(x_N, theta_P)
    share_N = np.exp(theta_P[..., 0, None] - theta_P[..., 1, None] * x_N - ln_law_N)
    return np.stack([share_N, -x_N * share_N, np.exp(-ln_law_N)], axis=-1)


def lines(x_N: Floats, ln_y_BN: Floats, weight_BN: Floats | float = 1.0) -> Floats:
    """The ln C_ref and alpha of (weighted) least squares of each series, [B, 2]; x need not be centred."""
    w_BN = np.broadcast_to(weight_BN, ln_y_BN.shape)
    mean_x, mean_y = ((w_BN * v).sum(1, keepdims=True) / w_BN.sum(1, keepdims=True) for v in (x_N, ln_y_BN))
    about_BN = x_N - mean_x
    slope_B = (w_BN * about_BN * ln_y_BN).sum(1) / (w_BN * about_BN**2).sum(1)
    return np.column_stack([mean_y[:, 0] - slope_B * mean_x[:, 0], -slope_B])


def _median_line(x_N: Floats, ln_y_N: Floats) -> Floats:
    """Theil and Sen's line: the median of the slopes of all pairs, the median of the residuals."""
    i, j = np.nonzero(np.triu(x_N[:, None] != x_N))  # models of one size have no slope
    slope = np.median((ln_y_N[j] - ln_y_N[i]) / (x_N[j] - x_N[i]))
    return np.array([np.median(ln_y_N - slope * x_N), -slope])


def _scale(residual_N: Floats) -> float:
    n = len(residual_N)
    return float(1.4826 * np.median(np.abs(residual_N)) * np.sqrt(n / (n - 2)))


def _offset_starts(x_N: Floats, ln_y_N: Floats) -> Floats:
    smallest = np.exp(ln_y_N.min())
    line_G2 = lines(x_N, np.log(np.exp(ln_y_N) - _SHARES_OF_OFFSET[:, None] * smallest))
    return np.column_stack([line_G2, np.maximum(_SHARES_OF_OFFSET, 1e-3) * smallest])


def profile_offset(x_N: Floats, ln_y_N: Floats, theta_P: Floats, alpha_G: Floats) -> tuple[Floats, Floats]:
    """The law with an offset at each of G fixed exponents, [G, P], and its sum of squares; NaN where that failed."""
    # The slope at x = 0, alpha / (1 + E / C), hardly changes along the valley. Smaller exponents start at E = 0, those
    # of the other sign at a vanishing power law.
    C = float(np.exp(theta_P[0]))
    slope = theta_P[1] / (1 + theta_P[2] / C)
    with np.errstate(divide="ignore", invalid="ignore"):
        E_G = C * np.where(alpha_G * slope > 0, np.maximum(alpha_G / slope - 1, 0.0), np.inf)
    start_GP = np.column_stack([np.full(len(alpha_G), theta_P[0]), alpha_G, E_G])
    theta_GP = search_offsets(x_N, np.tile(ln_y_N, (len(alpha_G), 1)), start_GP, holds_alpha=True)
    return theta_GP, _squares(x_N, ln_y_N, theta_GP)


def _squares(x_N: Floats, ln_y_N: Floats, theta_GP: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # NaN where a search did not converge
        return np.asarray(((ln_y_N - ln_law(x_N, theta_GP)) ** 2).sum(axis=1))


def _huber_weight(residual_N: Floats, scale: float) -> Floats:
    return np.asarray(HUBER * scale / np.maximum(np.abs(residual_N), HUBER * scale))


def _huber_lines(x_N: Floats, ln_y_BN: Floats, start_P: Floats, scale: float) -> Floats:
    """Lines under Huber's loss of one scale, [B, 2], by iteratively reweighted least squares."""
    theta_BP = np.tile(start_P, (len(ln_y_BN), 1))
    for _ in range(100):
        before_BP, w_BN = theta_BP, _huber_weight(ln_y_BN - ln_law(x_N, theta_BP), scale)
        theta_BP = lines(x_N, ln_y_BN, w_BN)
        if float(np.abs(theta_BP - before_BP).max()) < 1e-10:
            break
    return theta_BP


def search_offsets(x_N: Floats, ln_y_BN: Floats, start_BP: Floats, holds_alpha: bool = False) -> Floats:
    """Fits a law with an offset E >= 0 to each set of points: [B, P], NaN where the search did not converge.

    `holds_alpha` keeps the exponents of the starts.
    """
    mean_B = ln_y_BN.mean(axis=1)
    most_q_B = np.full(len(mean_B), 1 / _SMALLEST_SHARE)
    ln_C_B, alpha_B, E_B = start_BP.T
    with np.errstate(over="ignore"):
        if holds_alpha:
            most_q_B *= np.exp(np.abs(alpha_B) * np.abs(x_N).max())
        q_B = np.minimum(E_B * np.exp(-ln_C_B), most_q_B)
    first_B, reach = (alpha_B, 0.0) if holds_alpha else (alpha_B / (1 + q_B), np.inf)
    lower_2B, upper_2B = np.stack([first_B - reach, np.zeros(len(q_B))]), np.stack([first_B + reach, most_q_B])
    about_NB = np.ascontiguousarray((ln_y_BN - mean_B[:, None]).T)
    found = minimise(_objective(x_N, about_NB, holds_alpha), np.stack([first_B, q_B]), lower_2B, upper_2B)
    m_B, q_B = found.theta_PB
    alpha_B = m_B if holds_alpha else m_B * (1 + q_B)
    with np.errstate(all="ignore"):
        ln_C_B = mean_B - np.log(np.exp(-x_N[:, None] * alpha_B) + q_B).mean(axis=0)
        theta_BP = np.column_stack([ln_C_B, alpha_B, q_B * np.exp(ln_C_B)])
    theta_BP[~found.converged_B] = np.nan
    return theta_BP


def _objective(x_N: Floats, about_NB: Floats, holds_alpha: bool) -> ObjectiveFunction:
    """Half the sum of squares by m (alpha if it is fixed) and q, residuals being centred."""
    xx_N = x_N**2

    def at(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
        m_B, q_B = theta_PB
        share_NB = np.exp(-x_N[:, None] * (m_B if holds_alpha else m_B * (1 + q_B)))
        per_law_NB = 1 / (share_NB + q_B)
        share_NB *= per_law_NB
        ln_law_NB = -np.log(per_law_NB)
        r_NB = about_NB[:, sets] - ln_law_NB
        r_NB -= r_NB.mean(axis=0)
        value_B = np.einsum("nb,nb->b", r_NB, r_NB) / 2
        rounding_B = 4 * _EPSILON * np.sqrt(value_B * (about_NB[:, sets] ** 2 + ln_law_NB**2).sum(axis=0))
        # The derivatives of ln y are -x share by alpha and 1 / law by q; they are centred below.
        J_PNB = np.stack([-x_N[:, None] * share_NB, per_law_NB])
        slope_PB = -np.einsum("pnb,nb->pb", J_PNB, r_NB)
        r_NB *= per_law_NB
        bend_q_B = np.einsum("nb,nb->b", r_NB, per_law_NB)
        r_NB *= share_NB
        bend_PPB = np.array([[-q_B * (xx_N @ r_NB), -(x_N @ r_NB)], [-(x_N @ r_NB), bend_q_B]])
        J_PNB -= J_PNB.mean(axis=1, keepdims=True)
        gauss_PPB = np.einsum("pnb,qnb->pqb", J_PNB, J_PNB)
        newton_PPB = gauss_PPB + bend_PPB
        if not holds_alpha:  # alpha = m (1 + q)
            turn_PPB = np.array([[1 + q_B, m_B], [np.zeros_like(q_B), np.ones_like(q_B)]])
            gauss_PPB, newton_PPB = (
                np.einsum("rpb,rsb,sqb->pqb", turn_PPB, each, turn_PPB) for each in (gauss_PPB, newton_PPB)
            )
            newton_PPB[[0, 1], [1, 0]] += slope_PB[0]
            slope_PB = np.einsum("rpb,rb->pb", turn_PPB, slope_PB)
        scale_PPB = diagonal(gauss_PPB)
        a, b, c = newton_PPB[0, 0], newton_PPB[0, 1], newton_PPB[1, 1]
        least_a, least_c = _LEAST_CURVATURE * scale_PPB[0, 0], _LEAST_CURVATURE * scale_PPB[1, 1]
        is_valley_B = (a > least_a) & (c > least_c) & (a * c - b**2 > least_a * least_c)
        curve_PPB = np.where(is_valley_B, newton_PPB, gauss_PPB)
        return LocalQuadratic(value_B, slope_PB, curve_PPB, scale_PPB, rounding_B)

    return at
