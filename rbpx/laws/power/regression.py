"""Regression of ln y on ln S for a law in size, of the points and of all their replicates at once.

With theta = (ln C_ref, alpha, E), fixed parameters leave theta = origin + free phi, and phi is fitted.

Shapes: N sizes, P parameters in the order of `NAMES` (E only for `offset`), F free numbers, B bootstrap replicates of
the documents.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.offset import offset_residuals, search_offsets
from rbpx.laws.power.parameters import PINNABLE
from rbpx.laws.solver import LocalQuadratic, Sets, StoppingRule, minimise, squares

NAMES: Final = ("ln_C_ref", "alpha", "E")
HUBER: Final = 1.345  # scales; 95 % of the efficiency of least squares for normal residuals
_GRADIENT_TOLERANCE: Final = 1e-6  # of the largest possible gradient
_WORST_CONDITION: Final = 1e8  # of the Jacobian; half of the digits of a parameter would be noise
_LARGEST: Final = 1 - 1e-6  # share of the smallest y, for the start of a search with a fixed E
_SHARES_OF_OFFSET: Final = (0.0, 0.3, 0.6, 0.9)  # of the smallest y; starts of E
_AT_BOUND: Final = 1e-7  # of the smallest y; a smaller offset is 0
_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)  # of the largest |ln y|; a smaller scale is 0
_CLOSE: Final = 1e-12  # tolerance of a fitted number


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
        theta_P: ln_C_ref, alpha and, for `offset`, E (in the unit of y; 0 at its bound).
        jacobian_NP: derivatives of ln y at theta; a parameter at its bound has a column of zeros.
        weight_N: weight of each squared residual.
        residual_N: ln y, measured minus fitted.
        scale: of Huber's loss, in ln y; None for the other methods.
        at_bound: whether E is at its bound, 0.
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
        """Fits each replicate, [B, P], starting at this fit, with its weights and its scale.

        NaN where the search for an offset did not converge.
        """
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


def regress(x_N: Floats, ln_y_N: Floats, method: Method, weight_N: Floats | None = None) -> Regression:
    """Fits ln y = ln(E + exp(ln_C_ref - alpha x)), with E = 0 unless the method is `offset`, at x = ln(S / S_ref).

    Weights are for lines alone, and are one over the variance of each ln y.
    """
    if weight_N is not None:
        weighted = regression_at(x_N, ln_y_N, np.array(line(x_N, ln_y_N, weight_N)), weight_N)
        return replace(weighted, weighs_variances=True)
    if method is Method.offset:
        return _offset(x_N, ln_y_N)
    if method is Method.robust:
        start_P = _median_line(x_N, ln_y_N)
        scale = _scale(ln_y_N - ln_law(x_N, start_P))
        if scale > _ROUNDING * max(1.0, float(np.abs(ln_y_N).max())):
            theta_P = _huber_lines(x_N, ln_y_N[None], start_P, scale)[0]
            return regression_at(x_N, ln_y_N, theta_P, _huber_weight(ln_y_N - ln_law(x_N, theta_P), scale), scale)
        return replace(regress(x_N, ln_y_N, Method.ols), scale=0.0)
    return regression_at(x_N, ln_y_N, np.array(line(x_N, ln_y_N)))


def _offset(x_N: Floats, ln_y_N: Floats) -> Regression:
    start_GP = _offset_starts(x_N, ln_y_N)
    end_GP = search_offsets(x_N, np.tile(ln_y_N, (len(start_GP), 1)), start_GP)
    end_GP = np.where(np.isnan(end_GP), start_GP, end_GP)
    end_P, smallest = end_GP[np.argmin((offset_residuals(x_N, ln_y_N, end_GP) ** 2).sum(axis=1))], np.exp(ln_y_N.min())
    if end_P[2] > smallest:  # measured values lie below it
        return replace(regress_pinned(x_N, ln_y_N, Method.offset, {"E": float(smallest)}, 0.0), free_PF=None)
    if end_P[2] > _AT_BOUND * smallest:
        return regression_at(x_N, ln_y_N, end_P)
    plain = regress(x_N, ln_y_N, Method.ols)  # the same with E fixed at 0
    jacobian_NP = np.column_stack([plain.jacobian_NP, np.zeros(len(x_N))])
    return replace(plain, theta_P=np.append(plain.theta_P, 0.0), jacobian_NP=jacobian_NP, at_bound=True)


def regress_pinned(
    x_N: Floats, ln_y_N: Floats, method: Method, given: Mapping[str, float], ln_S_ref: float
) -> Regression:
    """Fits ln y by least squares with fixed parameters C, alpha or E, where E is above no y, by ols or offset."""
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
    start_BP = _offset_starts(x_N, ln_y_N) if seeks_E else np.array([[*line(x_N, np.log(above_N)), E]])
    start_BP = start_BP[:, : len(names)]
    theta_BP = _search_free(x_N, np.tile(ln_y_N, (len(start_BP), 1)), start_BP, origin_P, free_PF)
    theta_P = theta_BP[np.argmin(((ln_y_N - ln_law(x_N, theta_BP)) ** 2).sum(axis=1))]
    if seeks_E and theta_P[2] <= _AT_BOUND * smallest:
        return replace(regress_pinned(x_N, ln_y_N, method, {**given, "E": 0.0}, ln_S_ref), at_bound=True)
    if seeks_E and theta_P[2] > smallest:
        return replace(regress_pinned(x_N, ln_y_N, method, {**given, "E": smallest}, ln_S_ref), free_PF=free_PF)
    return regression_at(x_N, ln_y_N, theta_P, free_PF=free_PF)


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


def regression_at(
    x_N: Floats,
    ln_y_N: Floats,
    theta_P: Floats,
    weight_N: Floats | None = None,
    scale: float | None = None,
    free_PF: Floats | None = None,
) -> Regression:
    """Returns the regression at theta and checks that its gradient vanishes in the free directions."""
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
    """Returns ln y at each size, [..., N], for one set of parameters [P] or many [..., P]."""
    ln_power_N = theta_P[..., 0, None] - theta_P[..., 1, None] * x_N
    if theta_P.shape[-1] == 2:
        return np.asarray(ln_power_N)
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
        return np.asarray(np.logaddexp(ln_power_N, np.log(theta_P[..., 2, None])))


def jacobian(x_N: Floats, theta_P: Floats) -> Floats:
    """Returns the derivatives of `ln_law` by the parameters, [..., N, P]."""
    if theta_P.shape[-1] == 2:
        x_N = np.broadcast_to(x_N, (*theta_P.shape[:-1], len(x_N)))
        return np.stack([np.ones(x_N.shape), -x_N], axis=-1)
    ln_law_N = ln_law(x_N, theta_P)
    share_N = np.exp(theta_P[..., 0, None] - theta_P[..., 1, None] * x_N - ln_law_N)
    return np.stack([share_N, -x_N * share_N, np.exp(-ln_law_N)], axis=-1)


def line(x_N: Floats, ln_y_N: Floats, weight_N: Floats | None = None) -> tuple[float, float]:
    """Returns ln_C_ref and alpha of (weighted) least squares in closed form; x need not be centred."""
    weight_N = np.ones(len(x_N)) if weight_N is None else weight_N
    mean_x, mean_ln_y = np.average([x_N, ln_y_N], axis=1, weights=weight_N)
    about_N = weight_N * (x_N - mean_x)
    slope = float(about_N @ ln_y_N) / float(about_N @ (x_N - mean_x))
    return float(mean_ln_y - slope * mean_x), -slope


def _median_line(x_N: Floats, ln_y_N: Floats) -> Floats:
    """Theil and Sen's line: the median of the slopes of all pairs, the median of the residuals."""
    i, j = np.nonzero(np.triu(x_N[:, None] != x_N))  # models of one size have no slope
    slope = np.median((ln_y_N[j] - ln_y_N[i]) / (x_N[j] - x_N[i]))
    return np.array([np.median(ln_y_N - slope * x_N), -slope])


def _scale(residual_N: Floats) -> float:
    """Robust standard deviation about a line: 1.4826 times the median absolute residual, corrected by n / (n - 2)."""
    n = len(residual_N)
    return float(1.4826 * np.median(np.abs(residual_N)) * np.sqrt(n / (n - 2)))


def _offset_starts(x_N: Floats, ln_y_N: Floats) -> Floats:
    smallest = float(np.exp(ln_y_N.min()))
    starts = [(*line(x_N, np.log(np.exp(ln_y_N) - share * smallest)), share) for share in _SHARES_OF_OFFSET]
    return np.array([(ln_C, alpha, max(share, 1e-3) * smallest) for ln_C, alpha, share in starts])


def profile_offset(x_N: Floats, ln_y_N: Floats, theta_P: Floats, alpha_G: Floats) -> tuple[Floats, Floats]:
    """Fits the law with an offset at each of G fixed exponents.

    Returns:
        Parameters [G, P], NaN where the search did not converge, and the sum of squares [G].
    """
    # The slope at x = 0, alpha / (1 + E / C), hardly changes along the valley. Smaller exponents start at E = 0, those
    # of the other sign at a vanishing power law.
    C = float(np.exp(theta_P[0]))
    slope = theta_P[1] / (1 + theta_P[2] / C)
    with np.errstate(divide="ignore", invalid="ignore"):
        E_G = C * np.where(alpha_G * slope > 0, np.maximum(alpha_G / slope - 1, 0.0), np.inf)
    start_GP = np.column_stack([np.full(len(alpha_G), theta_P[0]), alpha_G, E_G])
    theta_GP = search_offsets(x_N, np.tile(ln_y_N, (len(alpha_G), 1)), start_GP, holds_alpha=True)
    return theta_GP, np.asarray((offset_residuals(x_N, ln_y_N, theta_GP) ** 2).sum(axis=1))


def _huber_weight(residual_N: Floats, scale: float) -> Floats:
    return np.asarray(HUBER * scale / np.maximum(np.abs(residual_N), HUBER * scale))


def _huber_lines(x_N: Floats, ln_y_BN: Floats, start_P: Floats, scale: float) -> Floats:
    """Lines under Huber's loss of one scale, [B, 2], by iteratively reweighted least squares from one start."""
    theta_BP = np.tile(start_P, (len(ln_y_BN), 1))
    for _ in range(100):
        before_BP, w_BN = theta_BP, _huber_weight(ln_y_BN - ln_law(x_N, theta_BP), scale)
        theta_BP = weighted_lines(x_N, ln_y_BN, w_BN)
        if float(np.abs(theta_BP - before_BP).max()) < 1e-10:
            break
    return theta_BP


def weighted_lines(x_N: Floats, ln_y_BN: Floats, w_BN: Floats) -> Floats:
    """Returns the least-squares line of each series with its own weights, [B, 2]."""
    mean_x, mean_y = ((w_BN * v).sum(1, keepdims=True) / w_BN.sum(1, keepdims=True) for v in (x_N, ln_y_BN))
    about_BN = x_N - mean_x
    slope_B = (w_BN * about_BN * ln_y_BN).sum(1) / (w_BN * about_BN**2).sum(1)
    return np.column_stack([mean_y[:, 0] - slope_B * mean_x[:, 0], -slope_B])
