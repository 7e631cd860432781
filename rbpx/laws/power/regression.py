"""Regression of ln y on ln S for a law in size, of the points and of all their replicates at once.

Shapes: N sizes, P parameters in the order of `NAMES` (E only for `offset`), B replicates of the documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.offset import offset_residuals, search_offsets

if TYPE_CHECKING:
    from lmfit.minimizer import MinimizerResult

NAMES: Final = ("ln_C_ref", "alpha", "E")
HUBER: Final = 1.345  # in units of the scale: 95 % of the efficiency of least squares on normal residuals
TOLERANCES: Final[dict[str, Any]] = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
_GRADIENT_TOLERANCE: Final = 1e-6  # of the largest product of a column of the Jacobian with the values to explain
_WORST_CONDITION: Final = 1e8  # of the Jacobian: beyond it half of the digits of a parameter are noise
SHARES_OF_OFFSET: Final = (0.0, 0.3, 0.6, 0.9)  # of the smallest y, where the search for an offset starts
AT_BOUND: Final = 1e-7  # of the smallest y: an offset below it is 0


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
        theta_P: ln_C_ref, alpha and, for `offset`, E (in the unit of y; 0 where it is at its bound).
        jacobian_NP: derivatives of ln y at theta; a parameter at its bound has a column of zeros.
        weight_N: the weight of each squared residual.
        residual_N: ln y, measured minus fitted.
        scale: of Huber's loss, in ln y; None for the other methods.
        at_bound: E is fixed at 0.
        converged: the gradient vanishes, checked here.
        gradient_P: of half the sum of weighted squares, at theta.
        starts: where the search began.
        weighs_variances: the weights are one over the variances of the points.
        free_PF: the directions in which theta was free; None where every parameter was.
    """

    theta_P: Floats
    jacobian_NP: Floats
    weight_N: Floats
    residual_N: Floats
    scale: float | None
    at_bound: bool
    converged: bool
    gradient_P: Floats
    starts: tuple[tuple[float, ...], ...]
    weighs_variances: bool = False
    free_PF: Floats | None = None

    @property
    def free_jacobian_NP(self) -> Floats:
        """The derivatives by the numbers that the data decided."""
        if self.free_PF is not None:
            return self.jacobian_NP @ self.free_PF
        return self.jacobian_NP[:, np.any(self.jacobian_NP != 0, axis=0)]

    @property
    def dof(self) -> int:
        """Degrees of freedom of the residuals; an E at its bound takes one."""
        return len(self.residual_N) - (len(self.theta_P) if self.free_PF is None else self.free_PF.shape[1])

    def is_linear(self, method: Method) -> bool:
        """Whether refits are linear in ln y: Huber's weights, an offset and given constants are not."""
        if self.free_PF is not None:
            return False
        return method in (Method.ols, Method.weighted) or (method is Method.robust and not self.scale)

    @cached_property
    def sensitivity_PN(self) -> Floats:
        """Change of each parameter for a change of each ln y: (J' W J)^-1 J' W over the free parameters."""
        free_PF = self.free_PF
        if free_PF is None:
            free_PF = np.eye(len(self.theta_P))[:, : len(self.theta_P) - int(self.at_bound)]
        J = self.jacobian_NP @ free_PF
        return np.asarray(free_PF @ np.linalg.solve((J.T * self.weight_N) @ J, J.T * self.weight_N))


def regress(x_N: Floats, ln_y_N: Floats, method: Method, sigma_N: Floats | None = None) -> Regression:
    """Fit ln y = ln(E + exp(ln_C_ref - alpha x)), E = 0 unless the method is `offset`.

    Args:
        x_N: ln(S / S_ref), centred.
        ln_y_N: logarithms of the values.
        method: how.
        sigma_N: standard deviation of each ln y, for `weighted` only.

    Returns:
        The regression: a line in closed form, an offset by the batch solver, Huber's loss by lmfit. Its
        gradient is checked here, since lmfit reports success too easily.

    Raises:
        ValueError: `weighted` without sigma_N.
    """
    if method is Method.weighted:
        if sigma_N is None:
            raise ValueError("a weighted regression needs the standard deviation of each ln y")
        through, weight_N = line(x_N, ln_y_N, 1 / sigma_N**2), 1 / sigma_N**2
        return replace(
            regression_at(x_N, ln_y_N, np.array(through), weight_N, starts=(through,)), weighs_variances=True
        )
    if method is Method.offset:
        starts = tuple(_offset_starts(x_N, ln_y_N))
        end_P = _best_offset(x_N, ln_y_N, np.array(starts))
        if end_P[2] > AT_BOUND * float(np.exp(ln_y_N.min())):
            return regression_at(x_N, ln_y_N, end_P, np.ones(len(x_N)), starts=starts)
        plain = regression_at(x_N, ln_y_N, np.array(line(x_N, ln_y_N)), np.ones(len(x_N)))  # the same with E fixed at 0
        return replace(
            plain,
            theta_P=np.append(plain.theta_P, 0.0),
            jacobian_NP=np.column_stack([plain.jacobian_NP, np.zeros(len(x_N))]),
            gradient_P=np.append(plain.gradient_P, 0.0),
            at_bound=True,
            starts=starts,
        )
    if method is Method.robust:
        start = _median_line(x_N, ln_y_N)
        return _search(x_N, ln_y_N, start, _scale(x_N, ln_y_N, start))
    through = line(x_N, ln_y_N)
    return regression_at(x_N, ln_y_N, np.array(through), np.ones(len(x_N)), starts=(through,))


def _search(x_N: Floats, ln_y_N: Floats, start: tuple[float, ...], scale: float) -> Regression:
    """Search by lmfit from one start under Huber's loss; its scale is 0 where most points lie on one line."""
    loss: dict[str, Any] = {"loss": "huber", "f_scale": HUBER * scale} if scale else {}
    found = by_lmfit(x_N, ln_y_N, start, np.ones(len(x_N)), calc_covar=False, **loss)
    theta_P = np.array(list(found.params.valuesdict().values()))
    weight_N = huber_weight(ln_y_N - ln_law(x_N, theta_P), scale)
    return regression_at(x_N, ln_y_N, theta_P, weight_N, scale, (start,), bool(found.success))


def by_lmfit(
    x_N: Floats, ln_y_N: Floats, start: Sequence[float], weight_N: Floats, calc_covar: bool = True, **options: Any
) -> "MinimizerResult":
    """What lmfit finds from one start: `NAMES` are its parameters, E is at least 0.

    Args:
        x_N: ln(S / S_ref).
        ln_y_N: logarithms of the values.
        start: of each parameter.
        weight_N: of each squared residual.
        calc_covar: whether to work out standard errors and correlations.
        options: of `scipy.optimize.least_squares`.
    """
    import lmfit  # a second, which most laws do without

    parameters, root_N1 = lmfit.Parameters(), np.sqrt(weight_N)[:, None]
    for name, value in zip(NAMES, start, strict=False):
        parameters.add(name, value=float(value), min=0.0 if name == "E" else -np.inf)

    def theta(of: lmfit.Parameters) -> Floats:
        return np.array([each.value for each in of.values()])

    minimizer = lmfit.Minimizer(lambda of: (ln_law(x_N, theta(of)) - ln_y_N) * root_N1[:, 0], parameters)
    minimizer.calc_covar = calc_covar
    with np.errstate(all="ignore"):  # a step too far is not taken
        return minimizer.least_squares(
            jac=lambda of: jacobian(x_N, theta(of)) * root_N1, x_scale="jac", **TOLERANCES, **options
        )


def regression_at(
    x_N: Floats,
    ln_y_N: Floats,
    theta_P: Floats,
    weight_N: Floats,
    scale: float | None = None,
    starts: tuple[tuple[float, ...], ...] = (),
    ended: bool = True,
    free_PF: Floats | None = None,
) -> Regression:
    """The regression at these parameters, and whether its gradient vanishes where they are free."""
    residual_N, jacobian_NP = ln_y_N - ln_law(x_N, theta_P), jacobian(x_N, theta_P)
    J_NF = jacobian_NP if free_PF is None else jacobian_NP @ free_PF
    gradient_F = J_NF.T @ (weight_N * residual_N)
    reach_F = np.abs(J_NF).T @ (weight_N * np.abs(ln_y_N - ln_y_N.mean()))
    converged = ended and bool(np.all(np.abs(gradient_F) <= _GRADIENT_TOLERANCE * reach_F)) and is_identified(J_NF)
    return Regression(
        theta_P, jacobian_NP, weight_N, residual_N, scale, False, converged, gradient_F, starts, free_PF=free_PF
    )


def is_identified(jacobian_NP: Floats) -> bool:
    """Whether the points decide every parameter; those of a step between two sizes decide an offset and little else."""
    length_P = np.linalg.norm(jacobian_NP, axis=0)
    if not len(length_P):
        return True
    if not length_P.all():
        return False
    stretch_P = np.linalg.svd(jacobian_NP / length_P, compute_uv=False)
    return bool(stretch_P[0] < _WORST_CONDITION * stretch_P[-1])


def ln_law(x_N: Floats, theta_P: Floats) -> Floats:
    """Ln y at each size, [..., N], of one set of parameters [P] or of many [..., P]."""
    ln_power_N = theta_P[..., 0, None] - theta_P[..., 1, None] * x_N
    if theta_P.shape[-1] == 2:
        return np.asarray(ln_power_N)
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
        return np.asarray(np.logaddexp(ln_power_N, np.log(theta_P[..., 2, None])))


def jacobian(x_N: Floats, theta_P: Floats) -> Floats:
    """Its derivatives by the parameters, [..., N, P]."""
    if theta_P.shape[-1] == 2:
        x_N = np.broadcast_to(x_N, (*theta_P.shape[:-1], len(x_N)))
        return np.stack([np.ones(x_N.shape), -x_N], axis=-1)
    ln_law_N = ln_law(x_N, theta_P)
    share_N = np.exp(theta_P[..., 0, None] - theta_P[..., 1, None] * x_N - ln_law_N)
    return np.stack([share_N, -x_N * share_N, np.exp(-ln_law_N)], axis=-1)


def line(x_N: Floats, ln_y_N: Floats, weight_N: Floats | None = None) -> tuple[float, float]:
    """The closed form of (weighted) least squares: ln_C_ref and alpha, x being centred or not."""
    mean_x = x_N.mean() if weight_N is None else np.average(x_N, weights=weight_N)
    mean_ln_y = ln_y_N.mean() if weight_N is None else np.average(ln_y_N, weights=weight_N)
    about_N = x_N - mean_x
    of_N = about_N if weight_N is None else weight_N * about_N
    slope = float(of_N @ ln_y_N) / float(of_N @ about_N)
    return float(mean_ln_y - slope * mean_x), -slope


def _median_line(x_N: Floats, ln_y_N: Floats) -> tuple[float, float]:
    """Theil and Sen's line: the median of the slopes of all pairs, the median of the residuals."""
    i, j = np.nonzero(np.triu(x_N[:, None] != x_N))  # replicates of one size have no slope
    slope = float(np.median((ln_y_N[j] - ln_y_N[i]) / (x_N[j] - x_N[i])))
    return float(np.median(ln_y_N - slope * x_N)), -slope


def _scale(x_N: Floats, ln_y_N: Floats, line: tuple[float, float]) -> float:
    """Robust standard deviation about a line: 1.4826 times the median of the absolute residuals, n / (n - 2) freed."""
    residual_N = np.abs(ln_y_N - line[0] + line[1] * x_N)
    return float(1.4826 * np.median(residual_N) * np.sqrt(len(x_N) / (len(x_N) - 2)))


def _offset_starts(x_N: Floats, ln_y_N: Floats) -> list[tuple[float, float, float]]:
    smallest = float(np.exp(ln_y_N.min()))
    starts = []
    for share in SHARES_OF_OFFSET:
        E = share * smallest
        starts.append((*line(x_N, np.log(np.exp(ln_y_N) - E)), max(E, 1e-3 * smallest)))
    return starts


def _best_offset(x_N: Floats, ln_y_N: Floats, start_GP: Floats) -> Floats:
    """The best result of the searches from all starts; one that did not converge is replaced by its start."""
    end_GP = search_offsets(x_N, np.tile(ln_y_N, (len(start_GP), 1)), start_GP)
    end_GP = np.where(np.isnan(end_GP), start_GP, end_GP)
    return np.asarray(end_GP[np.argmin((offset_residuals(x_N, ln_y_N, end_GP) ** 2).sum(axis=1))])


# ------------------------------------------------------------------------------------------------------- replicates


def refit(regression: Regression, method: Method, x_N: Floats, ln_y_BN: Floats) -> Floats:
    """The same regression on each replicate, all at once; starts at the fit and keeps its weights and its scale.

    Returns:
        Parameters, shape [B, P]. NaN where the search for an offset did not end.
    """
    if regression.is_linear(method):
        return np.asarray(ln_y_BN @ regression.sensitivity_PN.T)  # so this is exact
    if regression.scale:
        return huber_lines(x_N, ln_y_BN, regression.theta_P, regression.scale)
    start_P = regression.theta_P.copy()
    if regression.at_bound:  # a replicate may need an offset where the data did not
        start_P[2] = 0.1 * float(np.exp(ln_y_BN.min()))
    return search_offsets(x_N, ln_y_BN, np.tile(start_P, (len(ln_y_BN), 1)))


def profile_offset(x_N: Floats, ln_y_N: Floats, theta_P: Floats, alpha_G: Floats) -> tuple[Floats, Floats]:
    """The best law of `offset` for each of G exponents.

    Returns:
        Parameters [G, P], NaN where the search did not end, and the sum of squares [G].
    """
    # The slope at x = 0, alpha / (1 + E / C), hardly changes along the valley. With an exponent below it no E >= 0 has
    # that slope, with one of the other sign no law of any E, and the best has no power law.
    C = float(np.exp(theta_P[0]))
    slope = theta_P[1] / (1 + theta_P[2] / C)
    with np.errstate(divide="ignore", invalid="ignore"):
        E_G = C * np.where(alpha_G * slope > 0, np.maximum(alpha_G / slope - 1, 0.0), np.inf)
    start_GP = np.column_stack([np.full(len(alpha_G), theta_P[0]), alpha_G, E_G])
    theta_GP = search_offsets(x_N, np.tile(ln_y_N, (len(alpha_G), 1)), start_GP, holds_alpha=True)
    return theta_GP, np.asarray((offset_residuals(x_N, ln_y_N, theta_GP) ** 2).sum(axis=1))


def huber_weight(residual_N: Floats, scale: float | None) -> Floats:
    """What each squared residual counts under Huber's loss."""
    if scale is None or scale == 0.0:  # more than half of the points lie on one line: nothing to bend
        return np.ones_like(residual_N)
    limit = HUBER * scale
    return np.asarray(limit / np.maximum(np.abs(residual_N), limit))


def huber_lines(x_N: Floats, ln_y_BN: Floats, start_P: Floats, scale: float) -> Floats:
    """Lines under Huber's loss of one scale, by iteratively reweighted least squares from one start; shape [B, 2]."""
    theta_BP = np.tile(start_P, (len(ln_y_BN), 1))
    for _ in range(100):
        residual_BN = ln_y_BN - theta_BP[:, :1] + theta_BP[:, 1:] * x_N
        w_BN = huber_weight(residual_BN, scale)
        mean_x, mean_y = ((w_BN * v).sum(1, keepdims=True) / w_BN.sum(1, keepdims=True) for v in (x_N, ln_y_BN))
        about_BN = x_N - mean_x
        slope_B = (w_BN * about_BN * ln_y_BN).sum(1) / (w_BN * about_BN**2).sum(1)
        new_BP = np.column_stack([mean_y[:, 0] - slope_B * mean_x[:, 0], -slope_B])
        moved = float(np.abs(new_BP - theta_BP).max())
        theta_BP = new_BP
        if moved < 1e-10:
            break
    return theta_BP
