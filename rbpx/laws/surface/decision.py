"""The best run of a budget, the loss at other sizes, and the best run with serving, from draws of a surface.

Serving T tokens costs 2 S FLOPs each, so the best run minimises 6 S D + 2 S T at the loss of the best training run of a
budget, or the loss where that sum is the budget (arXiv 2401.00448, eq. 3). The search runs along R = D / S, where sizes
and costs are smooth.

Shapes: K draws, G places along a budget or a loss, M amounts of compute.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize.elementwise import find_root

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, estimate
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import BudgetTest, draw_averaged, predict_averaged
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.runs import Runs

_DRAWS: Final = 1000
_PLACES: Final = 61  # along a budget
_SERVABLE: Final = 0.999  # of the budget, for serving the largest size
_AROUND: Final = 100.0  # factor around the sizes of the runs
_SERVED: Final = math.log(10) * np.arange(-10, 21) / 5  # ln of R over that of the best training run
_COMPUTE: Final = 12  # amounts of compute at each R
_LESS: Final = math.log(30)  # ln of the largest saving of training FLOPs
_ENDLESS: Final = 1e8  # times the largest S and D
_INSIDE: Final = 0.95  # share of draws with a best size on the grid


@dataclass(frozen=True)
class BestRun:
    """The best run of a budget, of training alone or with serving; None where too few draws have one.

    Attributes:
        C: FLOPs of training, of training and serving for a common budget, or of the training run whose loss is reached.
        y: of a new run of this size; None where its loss is prescribed.
        half: relative increase of y with half the size and twice the tokens; fivefold with a fifth and five times.
        saved: share of all FLOPs saved, beside serving the best training run.
        beyond: extrapolation factor of its training FLOPs; `ratio_beyond` of D / S.
        widened: factor of backtests, of the interval of ln y.
    """

    C: float
    S: Estimate = NO_ESTIMATE
    D: Estimate = NO_ESTIMATE
    y: Estimate = NO_ESTIMATE
    half: Estimate = NO_ESTIMATE
    fivefold: Estimate = NO_ESTIMATE
    saved: Estimate = NO_ESTIMATE
    beyond: float = 1.0
    ratio_beyond: float = 1.0
    widened: float = 1.0


def best_run(
    fits: Sequence[Surface], C: float, budgets: Sequence[BudgetTest] = (), seed: int = 0, T: float = 0.0
) -> BestRun:
    """Finds the best run that costs a budget for training and serving T tokens, 6 S D + 2 S T = C.

    `budgets` widen the interval of y. There are no numbers where the best size is not within a factor of 100 of those
    of the runs, or size and tokens vary together.
    """
    runs = fits[0].runs
    if not fits[0].finds_best(C) or (T and fits[0].only_budget):
        return BestRun(C)
    most_S = min(float(runs.S_N.max()) * _AROUND, _SERVABLE * C / (2 * T) if T else math.inf)
    least_S = min(float(runs.S_N.min()) / _AROUND, most_S / 2)
    first, last = (math.log((C / S - 2 * T) / 6 / S) for S in ((most_S, least_S) if T else (least_S, most_S)))
    ln_R_G = np.linspace(first, last, _PLACES)
    ln_S_G = _ln_size(math.log(C), ln_R_G, T)
    found = _draws(fits, ln_S_G, ln_S_G + ln_R_G, seed)
    ln_R_K, _, inner_K = parabola_minimum(ln_R_G, found)
    if inner_K.mean() < _INSIDE:
        return BestRun(C, beyond=_beyond(runs.along(Axis.C), C))
    ln_R_K = ln_R_K[inner_K]
    S, middle = _estimate_of_draws(_ln_size(math.log(C), ln_R_K, T)), float(np.median(ln_R_K))
    size = math.exp(_ln_size(math.log(C), np.array(middle), T))
    D = S.through(lambda each: (C / each - 2 * T) / 6, falls=True)
    (answer,) = predict_averaged(fits, [(size, size * math.exp(middle))], budgets)
    beyond, longer = _beyond(runs.along(Axis.C), C - 2 * size * T), _beyond(runs.D_N / runs.S_N, math.exp(middle))
    best = BestRun(C, S, D, answer.y, beyond=beyond, ratio_beyond=longer, widened=answer.widened)
    if T:
        return best
    there = [middle, *(min(middle + 2 * math.log(times), ln_R_G[0]) for times in (2, 5))]
    at_best_K, *more = CubicSpline(-ln_R_G, found, axis=1)(-np.array(there)).T
    half, fivefold = (_estimate_of_draws(each_K - at_best_K, less=1.0) for each_K in more)
    return replace(best, half=half, fivefold=fivefold)


def best_run_with_serving(fits: Sequence[Surface], C: float, T: float, seed: int = 0) -> BestRun | None:
    """The run that serves T tokens at the loss of the best training run of C FLOPs at the least cost; None for none."""
    training = best_run(fits, C, seed=seed)
    if training.S.value is None or fits[0].only_budget:
        return None
    S_best, ln_C, runs = training.S.value, math.log(C), fits[0].runs
    ln_R_G = math.log(C / 6 / S_best**2) + _SERVED
    # More tokens at the size of the best training run reach its loss, and so does a larger size with its tokens.
    step_G = (_LESS + np.abs(_SERVED)) / (_COMPUTE - 2)
    ln_C_MG = ln_C - _LESS + np.arange(_COMPUTE)[:, None] * step_G
    ln_S_MG = _ln_size(ln_C_MG, ln_R_G, 0.0)
    ln_S_P, ln_D_P = ln_S_MG.ravel(), (ln_S_MG + ln_R_G).ravel()
    found = _draws(fits, np.append(ln_S_P, math.log(S_best)), np.append(ln_D_P, math.log(C / 6 / S_best)), seed)
    above_KMG = found[:, :-1].reshape(len(found), *ln_C_MG.shape) - found[:, -1, None, None]
    ln_C_KG = ln_C - _LESS + _first_root(above_KMG) * step_G
    ln_cost_KG = ln_C_KG + np.log1p(2 * T * np.exp(_ln_size(ln_C_KG, ln_R_G, 0.0) - ln_C_KG))
    ln_R_K, ln_cost_K, inner_K = parabola_minimum(ln_R_G, np.where(np.isfinite(ln_cost_KG), ln_cost_KG, np.inf))
    if inner_K.mean() < _INSIDE:
        return BestRun(C)
    ln_R_K, ln_cost_K = ln_R_K[inner_K], ln_cost_K[inner_K]
    ln_S_K = _ln_size(ln_cost_K, ln_R_K, T)
    saved = _estimate_of_draws(ln_cost_K - math.log(C + 2 * S_best * T), less=1.0).times(-1.0)
    longer = _beyond(runs.D_N / runs.S_N, math.exp(np.median(ln_R_K)))
    return BestRun(C, _estimate_of_draws(ln_S_K), _estimate_of_draws(ln_S_K + ln_R_K), saved=saved, ratio_beyond=longer)


def irreducible(fits: Sequence[Surface], seed: int = 0) -> Estimate:
    """The irreducible loss E under model averaging, from draws far beyond all runs; at most the least y."""
    ln_S, ln_D = (np.log([of_N.max() * _ENDLESS]) for of_N in (fits[0].runs.S_N, fits[0].runs.D_N))
    drawn, least_y = _estimate_of_draws(_draws(fits, ln_S, ln_D, seed)[:, 0]), float(fits[0].runs.y_N.min())
    return drawn.through(lambda each: min(each, least_y))


def parabola_minimum(x_G: Floats, y_KG: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The minimum of each draw by the parabola through its lowest point and both neighbours: place and value, [K].

    Then whether it is inside: not at an end, nor next to an infinite value.
    """
    at_K, each_K = y_KG.argmin(axis=1), np.arange(len(y_KG))
    inner_K = (at_K > 0) & (at_K < len(x_G) - 1)
    before_K, here_K, after_K = (y_KG[each_K, (at_K + step * inner_K)] for step in (-1, 0, 1))
    with np.errstate(invalid="ignore"):
        bend_K = before_K - 2 * here_K + after_K
        shift_K = np.where(bend_K > 0, (before_K - after_K) / (2 * np.where(bend_K > 0, bend_K, 1.0)), 0.0)
        y_K = here_K - (before_K - after_K) * shift_K / 4
    return x_G[at_K] + shift_K * (x_G[1] - x_G[0]), y_K, inner_K & np.isfinite(y_K)


def _estimate_of_draws(ln_K: Floats, less: float = 0.0) -> Estimate:
    ln = estimate(float(np.median(ln_K)), ln_K, None, Recipe.expanded)
    return ln.through(lambda each: math.exp(each) - less)


def _ln_size(ln_C: Floats | float, ln_R: Floats, T: float) -> Floats:
    C = np.exp(ln_C)
    return np.log(C / (T + np.sqrt(T**2 + 6 * np.exp(ln_R) * C)))


def _beyond(of_N: Floats, at: float) -> float:
    return max(at / float(of_N.max()), 1.0)


def _draws(fits: Sequence[Surface], ln_S: Floats, ln_D: Floats, seed: int) -> Floats:
    return draw_averaged(fits, Runs.of(np.exp(ln_S), np.exp(ln_D), np.ones(len(ln_S))), _DRAWS, seed)[0]


def _first_root(y_KMG: Floats) -> Floats:
    """Where y first falls to 0 along M, by cubic splines through places 0, 1, ...; NaN where it does not."""
    falls_KMG = (y_KMG[:, :-1] > 0) & (y_KMG[:, 1:] <= 0)
    at_KG, falls_KG = falls_KMG.argmax(axis=1), falls_KMG.any(axis=1)
    of_4MKG = CubicSpline(np.arange(y_KMG.shape[1]), y_KMG, axis=1).c
    of_4R = np.take_along_axis(of_4MKG, at_KG[None, None], axis=1)[:, 0, falls_KG]
    found_KG = np.full(at_KG.shape, np.nan)
    within_R = find_root(
        lambda x, *of_4: np.polyval(np.stack(of_4), x), (0.0, 1.0), args=tuple(of_4R), tolerances={"xatol": 1e-6}
    ).x
    found_KG[falls_KG] = at_KG[falls_KG] + within_R
    return found_KG
