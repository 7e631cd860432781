"""Which runs to train next: by how much each would narrow what is asked for, per FLOP.

By the information of the fit, linearised: with J the derivatives of ln y by the constants and s the scatter of a run
about the surface, the covariance of the constants is V = (sum J J' / s^2 + 1)^(-1), and a run at J reduces the variance
g'Vg of a number with derivatives g by (g'VJ)^2 / (s^2 + J'VJ). The 1 is a weak prior: each number of theta is known to
about 1, which matters only where the runs do not tell. Shapes: N points, M candidates, P numbers of theta, T targets.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.surface.optimum import search
from rbpx.laws.surface.runs import Runs, six_S
from rbpx.laws.surface.surface import Surface

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
