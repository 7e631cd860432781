"""What the runs of a design can tell apart, and which runs to train next: those that narrow most per FLOP.

The next runs are chosen by the information of the fit, linearised: with J the derivatives of ln y by the constants and
s the scatter of a run about the surface, the covariance of the constants is V = (sum J J' / s^2 + 1)^(-1), and a run at
J reduces the variance g'Vg of a number with derivatives g by (g'VJ)^2 / (s^2 + J'VJ). The 1 is a weak prior: each
number of theta is known to about 1, which matters only where the runs do not tell.

Shapes: N points, M candidates, P numbers of theta, T targets.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.numeric import Floats
from rbpx.laws.surface.runs import Runs, six_S
from rbpx.laws.surface.surface import Surface, search

_LEAST_APART: Final = 0.1  # of the residual sd of ln D on ln S: tokens are a function of size to 10 %
_LEAST_DIFFERENT: Final = 3
_ALIKE: Final = 0.01  # sizes, or tokens, that differ by less are the same


@dataclass(frozen=True)
class Design:
    """How the points lie.

    Attributes:
        n_S: different sizes.
        n_D: different numbers of tokens.
        sd_D: residual standard deviation of ln D on ln S; 0 where D is a power of S.
        sd_S: of ln S on ln D, which is small too where all sizes are nearly the same.
        along: the axis in which the points vary more, "S" or "D".
        slope: of the line in the other axis; 1 where D / S is fixed.
        intercept: of that line.
        condition: the condition number of the derivatives of ln y by the constants, each scaled to length 1; A and B
            are those at the mean of ln S and ln D. None where they are not known, or depend on each other exactly.
    """

    n_S: int
    n_D: int
    sd_D: float
    sd_S: float
    along: str
    slope: float
    intercept: float
    condition: float | None

    @property
    def sd(self) -> float:
        """The smaller of both deviations; 0 on a line."""
        return min(self.sd_D, self.sd_S)

    @property
    def is_line(self) -> bool:
        """Whether tokens are a function of size, or either hardly varies."""
        return self.sd < _LEAST_APART

    @property
    def is_collinear(self) -> bool:
        """Whether alpha cannot be told from beta: a line, or fewer than 3 different sizes or numbers of tokens."""
        return self.is_line or min(self.n_S, self.n_D) < _LEAST_DIFFERENT

    def away(self, S: float, D: float) -> float:
        """How far a point is from the line, in the logarithm of the axis that varies less."""
        along, other = (S, D) if self.along == "S" else (D, S)
        return abs(math.log(other) - self.intercept - self.slope * math.log(along))


def judge(S_N: Floats, D_N: Floats, J_PN: Floats | None = None) -> Design:
    """Judge at least one point, and the derivatives of ln y [P, N] where there are any."""
    ln_S_N, ln_D_N = np.log(S_N), np.log(D_N)
    along = "S" if ln_S_N.std() >= ln_D_N.std() else "D"
    on_S, on_D = _line(ln_S_N, ln_D_N), _line(ln_D_N, ln_S_N)
    slope, intercept, _ = on_S if along == "S" else on_D
    condition = None if J_PN is None else _condition(J_PN)
    return Design(n_different(ln_S_N), n_different(ln_D_N), on_S[2], on_D[2], along, slope, intercept, condition)


def _line(u_N: Floats, v_N: Floats) -> tuple[float, float, float]:
    """Slope, intercept and residual standard deviation of v on u; the slope is 0 where u does not vary."""
    about_N = u_N - u_N.mean()
    square = float(about_N @ about_N)
    slope = float(about_N @ v_N) / square if n_different(u_N) > 1 else 0.0
    left_N = v_N - v_N.mean() - slope * about_N
    return slope, float(v_N.mean() - slope * u_N.mean()), math.sqrt(float(left_N @ left_N) / max(len(u_N) - 2, 1))


def n_different(ln_N: Floats) -> int:
    """How many values differ by more than a hundredth from the next smaller one."""
    return 1 + int((np.diff(np.sort(ln_N)) > _ALIKE).sum()) if len(ln_N) else 0


def _condition(J_PN: Floats) -> float | None:
    length_P = np.linalg.norm(J_PN, axis=1)
    moving_PN = J_PN[length_P > 0] / length_P[length_P > 0, None]
    singular_P = np.linalg.svd(moving_PN, compute_uv=False)
    return float(singular_P[0] / singular_P[-1]) if singular_P[-1] > 0 else None


_PRIOR: Final = 1.0  # precision of each number of theta
_STEP: Final = 1e-4  # of theta, in the derivatives of an optimum


@dataclass(frozen=True)
class NextRun:
    """A run to train.

    Attributes:
        S: size.
        D: tokens.
        C: its training FLOPs.
        sd_before: standard deviation of what is asked for, with the runs that there are and those ranked above.
        sd_after: with this run too.
        narrowed: 1 - sd_after / sd_before.
        per_flop: by how much the variance falls, over C; by this runs are ranked.
    """

    S: float
    D: float
    C: float
    sd_before: float
    sd_after: float
    narrowed: float
    per_flop: float


def exponents(surface: Surface) -> Floats:
    """The derivatives [T, P] of all exponents: the sum of their variances is narrowed."""
    form = surface.form
    return np.eye(len(form.names))[[form.names.index(name) for name in form.exponents]]


def optimum_at(surface: Surface, C: float, flops_per_token: Callable[[Floats], Floats] = six_S) -> Floats:
    """The derivatives [1, P] of ln S at the optimum of a budget.

    Raises:
        ValueError: if the surface has no optimum there.
    """
    P = len(surface.theta_P)
    step_P = _STEP * np.maximum(np.abs(surface.theta_P), 0.1)
    both_BP = np.vstack([surface.theta_P + np.diag(step_P), surface.theta_P - np.diag(step_P)])
    ln_S_B = search(surface, both_BP, C, flops_per_token)
    if not np.isfinite(ln_S_B).all():
        raise ValueError(f"the surface has no optimum at C = {C}")
    return np.asarray(((ln_S_B[:P] - ln_S_B[P:]) / (2 * step_P))[None])


def prediction_at(surface: Surface, S: float, D: float, U: float | None = None) -> Floats:
    """The derivatives [1, P] of ln y at a point."""
    at = surface.x.at([S], [D], None if U is None else [U])
    return np.asarray(surface.form.evaluate(at, surface.theta_P[None])[1][0].T)


def covariance(surface: Surface, runs: Runs) -> tuple[Floats, float]:
    """The covariance [P, P] of theta by the information of the runs, and the variance s^2 of a run about the surface.

    The checkpoints of a run count together as one point, since they move together.
    """
    J_PN = surface.form.evaluate(surface.x, surface.theta_P[None])[1][0]
    share_N = 1 / np.bincount(runs.group_N)[runs.group_N]
    dof = max(runs.n_groups - surface.n_free, 1)
    variance = float(share_N @ surface.residual_N**2) / dof
    information_PP = (J_PN * share_N) @ J_PN.T
    return np.linalg.inv(information_PP / variance + _PRIOR * np.eye(len(J_PN))), variance


def candidates(runs: Runs, flops: float, per_axis: int = 12) -> tuple[Floats, Floats]:
    """S and D [M] of runs that could be trained: the rectangle of the runs and a factor of 4 beyond, up to `flops`."""
    S_N, D_N = (np.geomspace(each.min(), 4 * each.max(), per_axis) for each in (runs.S_N, runs.D_N))
    S_M, D_M = (each.ravel() for each in np.meshgrid(S_N, D_N))
    cheap_M = six_S(S_M) * D_M <= flops
    return S_M[cheap_M], D_M[cheap_M]


def next_runs(
    surface: Surface,
    runs: Runs,
    target_TP: Floats,
    S: ArrayLike,
    D: ArrayLike,
    n: int = 5,
    flops: float = math.inf,
    U: ArrayLike | None = None,
    flops_per_token: Callable[[Floats], Floats] = six_S,
) -> list[NextRun]:
    """Choose runs one after the other, each the one that narrows most per FLOP given those before it.

    Args:
        surface: fitted.
        runs: that it was fitted to.
        target_TP: what is asked for, by its derivatives: `exponents`, `optimum_at` or `prediction_at`.
        S: sizes of the candidates, [M].
        D: their tokens, [M].
        n: how many to choose; a candidate may be chosen again, as a run with another seed.
        flops: to spend on all of them.
        U: their unique tokens, [M]; None where all are.
        flops_per_token: of a size.

    Returns:
        At most n runs, in the order of the choice; fewer where `flops` allow no more.
    """
    S_M, D_M = np.asarray(S, np.float64), np.asarray(D, np.float64)
    C_M = flops_per_token(S_M) * D_M
    V_PP, variance = covariance(surface, runs)
    J_MP = surface.form.evaluate(surface.x.at(S_M, D_M, U), surface.theta_P[None])[1][0].T
    chosen: list[NextRun] = []
    left = flops
    for _ in range(n):
        affordable_M = left >= C_M
        if not affordable_M.any():
            break
        VJ_MP = J_MP @ V_PP
        own_M = variance + (VJ_MP * J_MP).sum(axis=1)
        gain_M = ((VJ_MP @ target_TP.T) ** 2).sum(axis=1) / own_M
        best = int(np.argmax(np.where(affordable_M, gain_M / C_M, -np.inf)))
        before = float(np.einsum("tp,pq,tq->", target_TP, V_PP, target_TP))
        V_PP = V_PP - np.outer(VJ_MP[best], VJ_MP[best]) / own_M[best]
        sd, sd_after = math.sqrt(before), math.sqrt(max(before - float(gain_M[best]), 0.0))
        C = float(C_M[best])
        left -= C
        chosen.append(
            NextRun(float(S_M[best]), float(D_M[best]), C, sd, sd_after, 1 - sd_after / sd, float(gain_M[best]) / C)
        )
    return chosen
