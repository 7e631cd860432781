"""Compute-optimal sizes without a form: parabolas through the runs of each budget, and the lower envelope of all runs.

Where budgets do not line up, each size is interpolated in ln C.

Shapes: N points, M sizes of one budget.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import (
    MOST_LEFT_OUT,
    NO_ESTIMATE,
    Estimate,
    Recipe,
    document_weights,
    estimate,
    extended_to,
    fieller,
    student_t,
)
from rbpx.laws.intervals.lack_of_fit import coefficient
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.surface.runs import Runs, six_S
from rbpx.status import Status

Curves = dict[float, tuple[Floats, Floats]]

_LEAST_SIZES: Final = 4
_SAME: Final = 0.01  # of ln C; a run this near to a budget has it
_BUDGETS: Final = 30  # evenly spaced in ln C


@dataclass(frozen=True)
class BudgetOptimum:
    """The optimum of one budget of C training FLOPs.

    Attributes:
        S: size at the minimum of the parabola of ln y in ln S, with a 95 % Fieller interval.
        y: value of the parabola there.
        sizes: with runs, or neighbours in ln C, at this budget.
        n_interpolated: number of sizes between two runs.
        status: ok, too_few_sizes (below 4), or not_straddled (no minimum between the sizes).
    """

    C: float
    S: Estimate
    D: Estimate
    y: float | None
    sizes: tuple[float, ...]
    y_of_sizes: tuple[float, ...]
    n_interpolated: int
    status: Status


@dataclass(frozen=True)
class ComputeLaw:
    """At the optimum S = S_ref (C / C_ref)^a and D ~ C^(1 - a); C_ref is the geometric mean of the budgets."""

    a: Estimate
    C_ref: float
    S_ref: Estimate
    n_budgets: int


@dataclass(frozen=True)
class IsoFlop:
    """The optimum of each budget, and the law through them; None below 3 optima."""

    budgets: tuple[BudgetOptimum, ...]
    law: ComputeLaw | None


@dataclass(frozen=True)
class Envelope:
    """The best size at each budget that at least two sizes reach, and the law through them, with intervals over runs.

    Only trained sizes can be the best, so the law is biased where sizes are far apart; it is None below 3 different
    ones.
    """

    C: tuple[float, ...]
    S: tuple[float, ...]
    law: ComputeLaw | None


def isoflop(
    runs: Runs,
    budgets: Sequence[float],
    flops_per_token: Callable[[Floats], Floats] = six_S,
    C_N: Floats | None = None,
) -> IsoFlop:
    """Fits a parabola of ln y in ln S to each budget, and a power law to the minima.

    C_N None stands for tokens times `flops_per_token`. Points with the same S and C are averaged in ln y.
    """
    C_N = runs.D_N * flops_per_token(runs.S_N) if C_N is None else C_N
    curves = _curves(runs, np.log(C_N), np.ones(len(runs.y_N)))
    found = tuple(_budget(curves, C, flops_per_token) for C in budgets)
    best = [(each.C, each.S.value) for each in found if each.S.value is not None]
    if len(best) < 3:
        return IsoFlop(found, None)
    ln_C, ln_S = np.log(best).T
    middle = float(ln_C.mean())
    level, a = (coefficient(np.column_stack([np.ones(len(ln_C)), ln_C - middle]), ln_S, at) for at in (0, 1))
    return IsoFlop(found, ComputeLaw(a, math.exp(middle), level.exp(), len(ln_C)))


def shared_budgets(runs: Runs, C_N: Floats | None = None) -> tuple[float, ...]:
    """Returns the budgets where at least 2 sizes have runs, within 1 %; none where most runs are at no such budget."""
    ln_C_N = np.log(runs.along(Axis.C) if C_N is None else C_N)
    order_N = np.argsort(ln_C_N)
    together = np.split(order_N, np.flatnonzero(np.diff(ln_C_N[order_N]) > _SAME) + 1)
    budgets = [of for of in together if np.ptp(ln_C_N[of]) <= _SAME and len(np.unique(runs.S_N[of])) > 1]
    if 2 * sum(map(len, budgets)) < len(ln_C_N):
        return ()
    return tuple(math.exp(float(np.median(ln_C_N[of]))) for of in budgets)


def reached_budgets(runs: Runs, n: int = 5, C_N: Floats | None = None) -> tuple[float, ...]:
    """Returns at most n budgets, evenly spaced in ln C, that at least 4 sizes reach, for runs that do not line up."""
    ln_C_N = np.log(runs.along(Axis.C) if C_N is None else C_N)
    # Their own C is included: between budgets that line up, few sizes have runs on both sides.
    ln_C_G = np.unique(np.concatenate([ln_C_N, np.linspace(ln_C_N.min(), ln_C_N.max(), 10 * _BUDGETS)]))
    ln_y_MG, _ = _at_budgets(_curves(runs, ln_C_N, np.ones(len(runs.y_N))), ln_C_G)
    usable_G = ln_C_G[np.isfinite(ln_y_MG).sum(axis=0) >= _LEAST_SIZES]
    if len(usable_G) == 0:
        return ()
    wanted = np.linspace(usable_G[0], usable_G[-1], n)
    nearest = {float(usable_G[np.argmin(np.abs(usable_G - each))]) for each in wanted}
    return tuple(math.exp(each) for each in sorted(nearest))


def envelope(runs: Runs, n_replicates: int = 200, seed: int = 0, C_N: Floats | None = None) -> Envelope:
    """Fits a power law in C to the best sizes on the lower envelope, each size interpolated between its runs.

    `n_replicates` of the runs is at least 1; `C_N` None stands for 6 S D.

    Source:
        arXiv 2203.15556, approach 1.
    """
    ln_C_N = np.log(runs.along(Axis.C) if C_N is None else C_N)
    ln_C_G = np.linspace(ln_C_N.min(), ln_C_N.max(), _BUDGETS)
    at_G, ln_S_G = _best(_curves(runs, ln_C_N, np.ones(len(runs.y_N))), ln_C_G)
    law, middle = None, float(at_G.mean()) if len(at_G) else 0.0

    def slope_and_level(at_G: Floats, ln_S_G: Floats) -> Floats:
        return np.polyfit(at_G - middle, ln_S_G, 1) if len(np.unique(ln_S_G)) >= 3 else np.full(2, np.nan)

    value = slope_and_level(at_G, ln_S_G)
    if np.isfinite(value).all():
        weight_BN = document_weights(runs.n_groups, n_replicates, seed)[:, runs.group_N]
        of_B2 = np.array([slope_and_level(*_best(_curves(runs, ln_C_N, each_N), ln_C_G)) for each_N in weight_BN])
        a, S_ref = (_over_runs(float(each), of_B, runs.n_groups) for each, of_B in zip(value, of_B2.T, strict=True))
        law = ComputeLaw(a, math.exp(middle), S_ref.exp(), len(at_G))
    return Envelope(tuple(np.exp(at_G).tolist()), tuple(np.exp(ln_S_G).tolist()), law)


def _over_runs(value: float, replicate_B: Floats, n_runs: int) -> Estimate:
    if np.isfinite(replicate_B).sum() < (1 - MOST_LEFT_OUT) * len(replicate_B):
        return Estimate(value)
    found = estimate(value, replicate_B, n_runs, Recipe.percentile)
    return found if found.ends is None else Estimate(value, *extended_to(value, found.ends))


def _curves(runs: Runs, ln_C_N: Floats, weight_N: Floats) -> Curves:
    curves = {}
    for S in np.unique(runs.S_N):
        of_size_N = (runs.S_N == S) & (weight_N > 0)
        ln_C, place = np.unique(ln_C_N[of_size_N], return_inverse=True)
        weight, ln_y = weight_N[of_size_N], np.log(runs.y_N[of_size_N])
        if len(ln_C):
            curves[math.log(S)] = (ln_C, np.bincount(place, weight * ln_y) / np.bincount(place, weight))
    return curves


def _at_budgets(curves: Curves, ln_C_G: Floats) -> tuple[Floats, Floats]:
    """Ln y, NaN where the runs of a size do not reach a budget, and the distance to the nearest run, [M, G] both."""
    shape = len(curves), len(ln_C_G)
    ln_y_MG, away_MG = np.full(shape, np.nan), np.empty(shape)
    for (ln_C, ln_y), ln_y_G, away_G in zip(curves.values(), ln_y_MG, away_MG, strict=True):
        apart = np.abs(ln_C[:, None] - ln_C_G)
        nearest_G = np.argmin(apart, axis=0)
        away_G[:] = apart.min(axis=0)
        inside_G = (ln_C[0] < ln_C_G) & (ln_C_G < ln_C[-1])
        ln_y_G[away_G <= _SAME] = ln_y[nearest_G[away_G <= _SAME]]
        ln_y_G[inside_G] = np.interp(ln_C_G[inside_G], ln_C, ln_y)
    return ln_y_MG, away_MG


def _best(curves: Curves, ln_C_G: Floats) -> tuple[Floats, Floats]:
    ln_y_MG = _at_budgets(curves, ln_C_G)[0]
    reached_G = np.isfinite(ln_y_MG).sum(axis=0) >= 2
    low_MG = np.where(np.isfinite(ln_y_MG), ln_y_MG, np.inf)[:, reached_G]
    return ln_C_G[reached_G], np.array(list(curves))[np.argmin(low_MG, axis=0)]


def _budget(curves: Curves, C: float, flops_per_token: Callable[[Floats], Floats]) -> BudgetOptimum:
    of_all_M, away_M = (each_M1[:, 0] for each_M1 in _at_budgets(curves, np.log([C])))
    there_M = np.isfinite(of_all_M)
    ln_S_M, ln_y_M = np.array(list(curves))[there_M], of_all_M[there_M]
    sizes, values = tuple(np.exp(ln_S_M).tolist()), tuple(np.exp(ln_y_M).tolist())
    seen = sizes, values, int((away_M[there_M] > _SAME).sum())
    if len(ln_S_M) < _LEAST_SIZES:
        return BudgetOptimum(C, NO_ESTIMATE, NO_ESTIMATE, None, *seen, Status.too_few_sizes)
    middle = float(ln_S_M.mean())
    u_M = ln_S_M - middle
    X_M3 = np.stack([np.ones_like(u_M), u_M, u_M**2], axis=1)
    of_3 = np.linalg.lstsq(X_M3, ln_y_M)[0]
    at = -of_3[1] / (2 * of_3[2]) if of_3[2] > 0 else math.nan
    if not u_M.min() < at < u_M.max():
        return BudgetOptimum(C, NO_ESTIMATE, NO_ESTIMATE, None, *seen, Status.not_straddled)
    residual_M, dof = ln_y_M - X_M3 @ of_3, len(u_M) - 3
    covariance_33 = np.linalg.inv(X_M3.T @ X_M3) * float(residual_M @ residual_M) / dof
    # The minimum, where slope + 2 curvature u = 0, is a ratio of two normal numbers.
    turn_23 = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 2.0]])
    height, slope = turn_23 @ of_3
    ends = fieller(float(height), float(slope), turn_23 @ covariance_33 @ turn_23.T * student_t(dof) ** 2)
    S = Estimate(at, *ends).through(lambda u: exp_or_none(middle + u))
    D = S.through(lambda size: C / float(flops_per_token(np.array([size]))[0]), falls=True)
    return BudgetOptimum(C, S, D, math.exp(float(of_3 @ [1.0, at, at**2])), *seen, Status.ok)
