"""Regression of a law in size: ln S and ln y in, parameters and what reproduces them out; and again for resamples.

Shapes: N sizes, P parameters in the order of `NAMES` (E only for `offset`), B resamples of the documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import lmfit
import numpy as np
from numpy.typing import NDArray

from rbpx.laws.names import Method

__all__ = ["EQUATIONS", "NAMES", "TOLERANCES", "Regression", "profile_offset", "refit", "regress"]

Floats = NDArray[np.float64]

NAMES: Final = ("ln_C_ref", "alpha", "E")
HUBER: Final = 1.345  # in units of the scale: 95 % of the efficiency of least squares on normal residuals
TOLERANCES: Final = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
_GRADIENT_TOLERANCE: Final = 1e-6  # of the largest product of a column of the Jacobian with the values to explain
_WORST_CONDITION: Final = 1e8  # of the Jacobian: beyond it half of the digits of a parameter are noise
_SHARES_OF_OFFSET: Final = (0.0, 0.3, 0.6, 0.9)  # of the smallest y, where the search for an offset starts
_AT_BOUND: Final = 1e-7  # of the smallest y: an offset below it is 0


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
        theta_P: ln_C_ref, alpha and, for `offset`, E (in the unit of y; 0 where the bound holds it).
        jacobian_NP: derivatives of ln y at theta; a parameter held by its bound has a column of zeros.
        weight_N: what each squared residual counts.
        residual_N: ln y measured less fitted.
        scale: of Huber's loss, in ln y; None for the other methods.
        at_bound: E is held at 0.
        converged: the gradient vanishes, by our own check.
        gradient_P: of half the sum of weighted squares, at theta.
        starts: where the search began.
        weighs_variances: the weights are one over the variances of the points.
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

    @property
    def n_free(self) -> int:
        """Number of parameters that the data decided."""
        return len(self.theta_P) - int(self.at_bound)

    @property
    def sensitivity_PN(self) -> Floats:
        """Change of each parameter for a change of each ln y: (J' W J)^-1 J' W over the free parameters."""
        free = slice(0, self.n_free)
        J = self.jacobian_NP[:, free]
        out_PN = np.zeros(self.jacobian_NP.T.shape)
        out_PN[free] = np.linalg.solve((J.T * self.weight_N) @ J, J.T * self.weight_N)
        return out_PN


def regress(x_N: Floats, ln_y_N: Floats, method: Method, sigma_N: Floats | None = None) -> Regression:
    """Fit ln y = ln(E + exp(ln_C_ref - alpha x)), E = 0 unless the method is `offset`.

    Args:
        x_N: ln(S / S_ref), centred.
        ln_y_N: logarithms of the values.
        method: how.
        sigma_N: standard deviation of each ln y, for `weighted` only.

    Returns:
        The regression of lmfit, its gradient checked here: lmfit reports success too easily.

    Raises:
        ValueError: `weighted` without sigma_N.
    """
    if method is Method.weighted:
        if sigma_N is None:
            raise ValueError("a weighted regression needs the standard deviation of each ln y")
        return _with(_minimise(x_N, ln_y_N, 1 / sigma_N**2, [_line(x_N, ln_y_N)]), weighs_variances=True)
    ones_N = np.ones(len(x_N))
    if method is Method.offset:
        starts = tuple(_offset_starts(x_N, ln_y_N))
        best = _minimise(x_N, ln_y_N, ones_N, [_best_offset(x_N, ln_y_N, np.array(starts))])
        if best.theta_P[2] > _AT_BOUND * float(np.exp(ln_y_N.min())):
            return _with(best, starts=starts)
        plain = _minimise(x_N, ln_y_N, ones_N, [_line(x_N, ln_y_N)])
        return _with(
            plain,
            theta_P=np.append(plain.theta_P, 0.0),
            jacobian_NP=np.column_stack([plain.jacobian_NP, np.zeros(len(x_N))]),
            gradient_P=np.append(plain.gradient_P, 0.0),
            at_bound=True,
            starts=starts,
        )
    if method is Method.robust:
        start = _median_line(x_N, ln_y_N)
        return _minimise(x_N, ln_y_N, ones_N, [start], scale=_scale(x_N, ln_y_N, start))
    return _minimise(x_N, ln_y_N, ones_N, [_line(x_N, ln_y_N)])


def _with(regression: Regression, **changes: Any) -> Regression:
    return Regression(**{**vars(regression), **changes})


def _minimise(
    x_N: Floats, ln_y_N: Floats, weight_N: Floats, starts: Sequence[tuple[float, ...]], scale: float | None = None
) -> Regression:
    start = starts[0]
    root_N = np.sqrt(weight_N)

    def residual(parameters: lmfit.Parameters) -> Any:
        return root_N * (_ln_law(x_N, np.array(list(parameters.valuesdict().values()))) - ln_y_N)

    def jacobian(parameters: lmfit.Parameters) -> Any:
        return root_N[:, None] * _jacobian(x_N, np.array(list(parameters.valuesdict().values())))

    parameters = lmfit.Parameters()
    for name, value in zip(NAMES, start, strict=False):
        parameters.add(name, value=value, min=0.0 if name == "E" else -np.inf)
    bent = {} if scale in (None, 0.0) else {"loss": "huber", "f_scale": HUBER * float(scale or 0.0)}
    with np.errstate(invalid="ignore", divide="ignore"):  # lmfit divides by variances of 0 where a fit is exact
        result = lmfit.minimize(
            residual, parameters, method="least_squares", jac=jacobian, x_scale="jac", **TOLERANCES, **bent
        )
    theta_P = np.array([result.params[name].value for name in NAMES[: len(start)]])
    residual_N, jacobian_NP = ln_y_N - _ln_law(x_N, theta_P), _jacobian(x_N, theta_P)
    weight_N = weight_N * _huber_weight(residual_N, scale)
    gradient_P = jacobian_NP.T @ (weight_N * residual_N)
    spread = np.abs(ln_y_N - ln_y_N.mean())
    reach_P = np.abs(jacobian_NP).T @ (weight_N * spread)
    converged = bool(result.success) and bool(np.all(np.abs(gradient_P) <= _GRADIENT_TOLERANCE * reach_P))
    converged = converged and _tells_apart(jacobian_NP)
    return Regression(
        theta_P, jacobian_NP, weight_N, residual_N, scale, False, converged, gradient_P, tuple(map(tuple, starts))
    )


def _tells_apart(jacobian_NP: Floats) -> bool:
    """Whether the points decide every parameter; those of a step between two sizes decide an offset and little else."""
    length_P = np.linalg.norm(jacobian_NP, axis=0)
    return bool(np.all(length_P > 0)) and bool(np.linalg.cond(jacobian_NP / length_P) < _WORST_CONDITION)


def _ln_law(x_N: Floats, theta_P: Floats) -> Floats:
    ln_power_N = theta_P[0] - theta_P[1] * x_N
    if len(theta_P) == 2:
        return np.asarray(ln_power_N)
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the neutral element of logaddexp
        return np.asarray(np.logaddexp(ln_power_N, np.log(theta_P[2])))


def _jacobian(x_N: Floats, theta_P: Floats) -> Floats:
    if len(theta_P) == 2:
        return np.column_stack([np.ones(len(x_N)), -x_N])
    ln_law_N = _ln_law(x_N, theta_P)
    share_N = np.exp(theta_P[0] - theta_P[1] * x_N - ln_law_N)
    return np.column_stack([share_N, -x_N * share_N, np.exp(-ln_law_N)])


def _line(x_N: Floats, ln_y_N: Floats) -> tuple[float, float]:
    """The closed form of least squares, x being centred or not."""
    about_N = x_N - x_N.mean()
    slope = float(about_N @ ln_y_N) / float(about_N @ about_N)
    return float(ln_y_N.mean() - slope * x_N.mean()), -slope


def _median_line(x_N: Floats, ln_y_N: Floats) -> tuple[float, float]:
    """Theil and Sen's line: the median of the slopes of all pairs, the median of what is left."""
    i, j = np.triu_indices(len(x_N), 1)
    slope = float(np.median((ln_y_N[j] - ln_y_N[i]) / (x_N[j] - x_N[i])))
    return float(np.median(ln_y_N - slope * x_N)), -slope


def _scale(x_N: Floats, ln_y_N: Floats, line: tuple[float, float]) -> float:
    """Robust standard deviation about a line: 1.4826 times the median of the absolute residuals, n / (n - 2) freed."""
    residual_N = np.abs(ln_y_N - line[0] + line[1] * x_N)
    return float(1.4826 * np.median(residual_N) * np.sqrt(len(x_N) / (len(x_N) - 2)))


def _huber_weight(residual_N: Floats, scale: float | None) -> Floats:
    if scale is None or scale == 0.0:  # more than half of the points lie on one line: nothing to bend
        return np.ones_like(residual_N)
    limit = HUBER * scale
    return np.asarray(limit / np.maximum(np.abs(residual_N), limit))


def _offset_starts(x_N: Floats, ln_y_N: Floats) -> list[tuple[float, float, float]]:
    smallest = float(np.exp(ln_y_N.min()))
    starts = []
    for share in _SHARES_OF_OFFSET:
        E = share * smallest
        starts.append((*_line(x_N, np.log(np.exp(ln_y_N) - E)), max(E, 1e-3 * smallest)))
    return starts


def _best_offset(x_N: Floats, ln_y_N: Floats, start_GP: Floats) -> tuple[float, ...]:
    """The lowest of the ends of the searches from all starts; one that did not end counts as it began."""
    ln_y_GN = np.tile(ln_y_N, (len(start_GP), 1))
    end_GP = _refit_offset(x_N, ln_y_GN, start_GP)
    end_GP = np.where(np.isnan(end_GP), start_GP, end_GP)
    best = int(np.argmin(_offset_step(x_N, ln_y_GN, end_GP, np.ones(3))[0]))
    return tuple(end_GP[best].tolist())


# ------------------------------------------------------------------------------------------------------- resamples


def refit(regression: Regression, method: Method, x_N: Floats, ln_y_BN: Floats) -> Floats:
    """The same regression on each resample, all at once; starts at the fit and keeps its weights and its scale.

    Returns:
        Parameters, shape [B, P]. NaN where the search for an offset did not end.
    """
    if method is Method.robust and regression.scale:
        return _refit_robust(x_N, ln_y_BN, regression)
    if method is Method.offset:
        start_P = regression.theta_P.copy()
        if regression.at_bound:  # a resample may want what the data did not
            start_P[2] = 0.1 * float(np.exp(ln_y_BN.min()))
        return _refit_offset(x_N, ln_y_BN, np.tile(start_P, (len(ln_y_BN), 1)))
    return np.asarray(ln_y_BN @ regression.sensitivity_PN.T)  # linear in ln y, so this is exact


def _refit_robust(x_N: Floats, ln_y_BN: Floats, regression: Regression) -> Floats:
    """Iteratively reweighted least squares."""
    theta_BP = np.tile(regression.theta_P, (len(ln_y_BN), 1))
    for _ in range(100):
        residual_BN = ln_y_BN - theta_BP[:, :1] + theta_BP[:, 1:] * x_N
        w_BN = _huber_weight(residual_BN, regression.scale)
        mean_x, mean_y = ((w_BN * v).sum(1, keepdims=True) / w_BN.sum(1, keepdims=True) for v in (x_N, ln_y_BN))
        about_BN = x_N - mean_x
        slope_B = (w_BN * about_BN * ln_y_BN).sum(1) / (w_BN * about_BN**2).sum(1)
        new_BP = np.column_stack([mean_y[:, 0] - slope_B * mean_x[:, 0], -slope_B])
        moved = float(np.abs(new_BP - theta_BP).max())
        theta_BP = new_BP
        if moved < 1e-10:
            break
    return theta_BP


def profile_offset(x_N: Floats, ln_y_N: Floats, theta_P: Floats, alpha_G: Floats) -> tuple[Floats, Floats]:
    """The best law of `offset` for each of G exponents.

    Returns:
        Parameters [G, P], NaN where the search did not end, and the sum of squares [G].
    """
    start_GP = np.tile(theta_P, (len(alpha_G), 1))
    start_GP[:, 1] = alpha_G
    if theta_P[2] == 0:
        start_GP[:, 2] = 0.1 * float(np.exp(ln_y_N.min()))
    ln_y_GN = np.tile(ln_y_N, (len(alpha_G), 1))
    theta_GP = _refit_offset(x_N, ln_y_GN, start_GP, holds_alpha=True)
    residual_GN = _offset_step(x_N, ln_y_GN, theta_GP, np.ones(3))[1]
    return theta_GP, np.asarray((residual_GN**2).sum(axis=1))


def _refit_offset(x_N: Floats, ln_y_BN: Floats, start_BP: Floats, holds_alpha: bool = False) -> Floats:
    """Levenberg and Marquardt's steps in (ln_C_ref, alpha, E / E_start), E held at 0 where it wants to be negative.

    A resample whose steps have become small is done and leaves, for a few take ten times the steps of the others.
    """
    unit_P = np.array([1.0, 1.0, start_BP[0, 2]])
    found_BP = np.full(start_BP.shape, np.nan)
    left_B, u_BP, damping_B = np.arange(len(ln_y_BN)), start_BP / unit_P, np.full(len(ln_y_BN), 1e-3)
    cost_B, r_BN, J_BPN = _offset_step(x_N, ln_y_BN, u_BP * unit_P, unit_P)
    diagonal = np.arange(3)
    for _ in range(300):
        g_BP = (J_BPN @ r_BN[:, :, None])[:, :, 0]
        A_BPP = J_BPN @ J_BPN.transpose(0, 2, 1)
        held_B = (u_BP[:, 2] == 0) & (g_BP[:, 2] <= 0)
        held_BP = np.column_stack([np.zeros_like(held_B), np.full_like(held_B, holds_alpha), held_B])
        g_BP[held_BP] = 0
        A_BPP[held_BP[:, :, None] | held_BP[:, None, :]] = 0
        A_BPP[:, diagonal, diagonal] = A_BPP[:, diagonal, diagonal] * (1 + damping_B[:, None]) + held_BP
        A_BPP[:, diagonal, diagonal] += 1e-6 * damping_B[:, None]  # far out a parameter may not matter at all
        new_BP = u_BP + np.linalg.solve(A_BPP, g_BP[..., None])[..., 0]
        new_BP[:, 2] = np.maximum(new_BP[:, 2], 0)
        new_cost_B, new_r_BN, new_J_BPN = _offset_step(x_N, ln_y_BN, new_BP * unit_P, unit_P)
        better_B = new_cost_B <= cost_B
        done_B = np.all(np.abs(new_BP - u_BP) <= 1e-9 * (1 + np.abs(u_BP)), axis=1)
        # A free step that gains nothing: at the foot of the valley, or where a parameter has stopped to matter.
        done_B |= better_B & (damping_B <= 1e-2) & (cost_B - new_cost_B <= 1e-14 * cost_B)
        u_BP[better_B], cost_B[better_B] = new_BP[better_B], new_cost_B[better_B]
        r_BN[better_B], J_BPN[better_B] = new_r_BN[better_B], new_J_BPN[better_B]
        damping_B = np.clip(np.where(better_B, damping_B / 5, damping_B * 5), 1e-6, 1e8)
        if done_B.any():
            found_BP[left_B[done_B]] = u_BP[done_B] * unit_P
            rest_B = ~done_B
            left_B, u_BP, damping_B, cost_B = left_B[rest_B], u_BP[rest_B], damping_B[rest_B], cost_B[rest_B]
            ln_y_BN, r_BN, J_BPN = ln_y_BN[rest_B], r_BN[rest_B], J_BPN[rest_B]
        if len(left_B) == 0:
            break
    return found_BP


def _offset_step(x_N: Floats, ln_y_BN: Floats, theta_BP: Floats, unit_P: Floats) -> tuple[Floats, Floats, Floats]:
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a step too far has no cost, and is not taken
        power_BN = np.exp(theta_BP[:, :1] - theta_BP[:, 1:2] * x_N)
        law_BN = power_BN + theta_BP[:, 2:]
        share_BN = power_BN / law_BN
        r_BN = ln_y_BN - np.log(law_BN)
        J_BPN = np.stack([share_BN, -x_N * share_BN, unit_P[2] / law_BN], axis=1)
        return (r_BN**2).sum(1), r_BN, J_BPN
