"""What draws of a surface say about the next run: the best of a budget, what another size loses, and serving.

All of it is over forms, bends and misfit (`rbpx.laws.surface.averaged.draw_over_forms`), with C = 6 S D. With serving,
T tokens at 2 S FLOPs each, asked for is the least 6 S D + 2 S T that reaches the loss of the best training run of a
budget, or the least loss where 6 S D + 2 S T is the budget. Both are looked for along the tokens per parameter,
R = D / S: the size of a budget and the compute that reaches a loss are smooth in ln R, while along S tokens fall to 0
where serving takes the whole budget, and have no end where a size never reaches the loss.

Source:
    arXiv 2401.00448 (N. Sardana, J. Portes, S. Doubov, J. Frankle), eq. 3, for training and serving together.

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
from rbpx.laws.surface.averaged import BudgetTest, draw_over_forms, predict_over_forms
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.runs import Runs

_DRAWS: Final = 1000
_PLACES: Final = 61  # along a budget
_SERVABLE: Final = 0.999  # of the budget: what serving may cost of the largest size that is looked at
_AROUND: Final = 100.0  # times the sizes of the runs, to either side
_SERVED: Final = math.log(10) * np.arange(-10, 21) / 5  # of R, where serving counts, beside the best training run's
_COMPUTE: Final = 12  # amounts, at each of them
_LESS: Final = math.log(30)  # of C: how much less may reach the loss
_ENDLESS: Final = 1e8  # times the largest S and D
_INSIDE: Final = 0.95  # of the draws: where fewer have a best size within the grid, there is none


@dataclass(frozen=True)
class Best:
    """The best run of a budget, of training alone or with serving; None where too few draws have one.

    Attributes:
        C: FLOPs: of training and, `within` a budget for both, of serving; else of the best run whose loss is reached.
        S: its size.
        D: its tokens.
        y: what a new run of this size would show; unknown where only its loss is to be reached.
        half: how much larger y is, relative, with half the size and twice the tokens.
        fivefold: the same with five times the tokens and a fifth of the size.
        saved: share of all FLOPs that this saves beside the best training run and its serving.
        beyond: the factor by which its training lies above that of all runs; 1 within.
        ratio_beyond: the factor by which D / S lies above that of all runs; 1 within.
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


def best_of(
    fits: Sequence[Surface], C: float, budgets: Sequence[BudgetTest] = (), seed: int = 0, T: float = 0.0
) -> Best:
    """The best run of which training and serving together cost a budget, 6 S D + 2 S T = C, and what others lose.

    Args:
        fits: of the forms to the same runs, at least one with a surface.
        C: FLOPs.
        budgets: backtests in compute, which widen the interval of y.
        seed: of the draws.
        T: tokens to serve.

    Returns:
        The best, unknown where no size within a hundredfold of the runs' is.
    """
    runs = fits[0].runs
    most_S = min(float(runs.S_N.max()) * _AROUND, _SERVABLE * C / (2 * T) if T else math.inf)
    least_S = min(float(runs.S_N.min()) / _AROUND, most_S / 2)
    first, last = (math.log((C / S - 2 * T) / 6 / S) for S in ((most_S, least_S) if T else (least_S, most_S)))
    ln_R_G = np.linspace(first, last, _PLACES)
    ln_S_G = _ln_size(math.log(C), ln_R_G, T)
    found = _draws(fits, ln_S_G, ln_S_G + ln_R_G, seed)
    ln_R_K, _, inner_K = least(ln_R_G, found)
    if inner_K.mean() < _INSIDE:
        return Best(C, beyond=_beyond(runs.along(Axis.C), C))
    ln_R_K = ln_R_K[inner_K]
    S, middle = of_draws(_ln_size(math.log(C), ln_R_K, T)), float(np.median(ln_R_K))
    size = math.exp(_ln_size(math.log(C), np.array(middle), T))
    D = S.through(lambda each: (C / each - 2 * T) / 6, falls=True)
    (answer,) = predict_over_forms(fits, [(size, size * math.exp(middle))], budgets)
    beyond, longer = _beyond(runs.along(Axis.C), C - 2 * size * T), _beyond(runs.D_N / runs.S_N, math.exp(middle))
    best = Best(C, S, D, answer.y, beyond=beyond, ratio_beyond=longer)
    if T:
        return best
    there = [middle, *(min(middle + 2 * math.log(times), ln_R_G[0]) for times in (2, 5))]
    at_best_K, *more = CubicSpline(-ln_R_G, found, axis=1)(-np.array(there)).T
    half, fivefold = (of_draws(each_K - at_best_K, less=1.0) for each_K in more)
    return replace(best, half=half, fivefold=fivefold)


def with_serving(fits: Sequence[Surface], C: float, T: float, seed: int = 0) -> Best | None:
    """The size and tokens that serve T tokens at the loss of the best run of a budget with the fewest FLOPs.

    Args:
        fits: as in `best_of`.
        C: training FLOPs of the best run whose loss is to be reached.
        T: tokens to serve.
        seed: of the draws.

    Returns:
        The best; None where there is no best run of the budget.
    """
    training = best_of(fits, C, seed=seed)
    if training.S.value is None:
        return None
    S_best, ln_C, runs = training.S.value, math.log(C), fits[0].runs
    ln_R_G = math.log(C / 6 / S_best**2) + _SERVED
    # The size of the best training run with more tokens, or its tokens with a larger size, reach its loss.
    step_G = (_LESS + np.abs(_SERVED)) / (_COMPUTE - 2)
    ln_C_MG = ln_C - _LESS + np.arange(_COMPUTE)[:, None] * step_G
    ln_S_MG = _ln_size(ln_C_MG, ln_R_G, 0.0)
    ln_S_P, ln_D_P = ln_S_MG.ravel(), (ln_S_MG + ln_R_G).ravel()
    found = _draws(fits, np.append(ln_S_P, math.log(S_best)), np.append(ln_D_P, math.log(C / 6 / S_best)), seed)
    above_KMG = found[:, :-1].reshape(len(found), *ln_C_MG.shape) - found[:, -1, None, None]
    ln_C_KG = ln_C - _LESS + _first_root(above_KMG) * step_G
    ln_cost_KG = ln_C_KG + np.log1p(2 * T * np.exp(_ln_size(ln_C_KG, ln_R_G, 0.0) - ln_C_KG))
    ln_R_K, ln_cost_K, inner_K = least(ln_R_G, np.where(np.isfinite(ln_cost_KG), ln_cost_KG, np.inf))
    if inner_K.mean() < _INSIDE:
        return Best(C)
    ln_R_K, ln_cost_K = ln_R_K[inner_K], ln_cost_K[inner_K]
    ln_S_K = _ln_size(ln_cost_K, ln_R_K, T)
    saved = of_draws(ln_cost_K - math.log(C + 2 * S_best * T), less=1.0).times(-1.0)
    longer = _beyond(runs.D_N / runs.S_N, math.exp(np.median(ln_R_K)))
    return Best(C, of_draws(ln_S_K), of_draws(ln_S_K + ln_R_K), saved=saved, ratio_beyond=longer)


def irreducible(fits: Sequence[Surface], seed: int = 0) -> Estimate:
    """What no size and no tokens get below, E: draws far beyond all runs, so that it is no constant of a single form.

    Args:
        fits: as in `best_of`.
        seed: of the draws.
    """
    ln_S, ln_D = (np.log([of_N.max() * _ENDLESS]) for of_N in (fits[0].runs.S_N, fits[0].runs.D_N))
    return of_draws(_draws(fits, ln_S, ln_D, seed)[:, 0])


def least(x_G: Floats, y_KG: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Where each draw is least, and how much, by the parabola through its least place and both beside it.

    Returns:
        The place and the value, [K] both, and whether the place is inside: else it is the end where the draw is least,
        or lies beside a place that is infinite.
    """
    at_K, each_K = y_KG.argmin(axis=1), np.arange(len(y_KG))
    inner_K = (at_K > 0) & (at_K < len(x_G) - 1)
    before_K, here_K, after_K = (y_KG[each_K, (at_K + step * inner_K)] for step in (-1, 0, 1))
    with np.errstate(invalid="ignore"):
        bend_K = before_K - 2 * here_K + after_K
        shift_K = np.where(bend_K > 0, (before_K - after_K) / (2 * np.where(bend_K > 0, bend_K, 1.0)), 0.0)
        y_K = here_K - (before_K - after_K) * shift_K / 4
    return x_G[at_K] + shift_K * (x_G[1] - x_G[0]), y_K, inner_K & np.isfinite(y_K)


def of_draws(ln_K: Floats, less: float = 0.0) -> Estimate:
    """Median and 95 % interval of exponentials of draws, less a number."""
    ln = estimate(float(np.median(ln_K)), ln_K, None, Recipe.expanded)
    return ln.through(lambda each: math.exp(each) - less)


def _ln_size(ln_C: Floats | float, ln_R: Floats, T: float) -> Floats:
    """Ln S where 6 S D + 2 S T = C and D = R S."""
    C = np.exp(ln_C)
    return np.log(C / (T + np.sqrt(T**2 + 6 * np.exp(ln_R) * C)))


def _beyond(of_N: Floats, at: float) -> float:
    return max(at / float(of_N.max()), 1.0)


def _draws(fits: Sequence[Surface], ln_S: Floats, ln_D: Floats, seed: int) -> Floats:
    """Draws of ln y of the surface at points."""
    return draw_over_forms(fits, Runs.of(np.exp(ln_S), np.exp(ln_D), np.ones(len(ln_S))), _DRAWS, seed)[0]


def _first_root(y_KMG: Floats) -> Floats:
    """Where y first falls to 0 along M, by cubic splines through its places 0, 1, ...; NaN where it does not."""
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
