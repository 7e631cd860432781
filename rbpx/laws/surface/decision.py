"""What draws of a surface say about the next run: the best of a budget, what another size loses, and serving.

All of it is over forms, bends and misfit (`rbpx.laws.surface.averaged.draw_over_forms`), with C = 6 S D. With serving,
T tokens at 2 S FLOPs each, asked for is the least 6 S D + 2 S T that reaches the loss of the best training run of a
budget, or the least loss where 6 S D + 2 S T is the budget.

Source:
    arXiv 2401.00448 (N. Sardana, J. Portes, S. Doubov, J. Frankle), eq. 3, for training and serving together.

Shapes: K draws, G sizes along a budget.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from rbpx.laws.intervals.estimate import TAILS, Estimate
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import BudgetTest, draw_over_forms, predict_over_forms
from rbpx.laws.surface.fit import SurfaceFit
from rbpx.laws.surface.runs import Runs, six_S

Size = TypeVar("Size", float, Floats)

HALF: Final = 2.0  # times smaller, with as many times the tokens
FIVEFOLD: Final = 5.0
_DRAWS: Final = 1000
_SIZES: Final = 61  # along a budget
_SERVABLE: Final = 0.999  # of the budget: what serving may cost of the largest size that is looked at
_AROUND: Final = 100.0  # times the sizes of the runs, to either side
_SERVED: Final = 25  # sizes, and tokens, where serving counts
_SMALLER: Final = 30.0  # times: the least size that is looked at where serving counts
_LONGER: Final = 300.0  # times the tokens
_ENDLESS: Final = 1e8  # times the largest S and D
INSIDE: Final = 0.95  # of the draws: where fewer have a best size within the grid, there is none


@dataclass(frozen=True)
class Best:
    """The best run of a budget; None where too few draws have one.

    Attributes:
        C: training FLOPs.
        S: its size.
        D: its tokens.
        y: what a new run of this size would show.
        half: how much larger y is, relative, with half the size and twice the tokens.
        fivefold: the same with five times the tokens and a fifth of the size.
        beyond: the factor by which C lies above that of all runs; 1 within.
    """

    C: float
    S: Estimate
    D: Estimate
    y: Estimate
    half: Estimate
    fivefold: Estimate
    beyond: float


@dataclass(frozen=True)
class Served:
    """The size and tokens that are best where a model is served, too.

    Attributes:
        C: training FLOPs of the best run whose loss is to be reached; those of training and serving `within` a budget.
        T: tokens to serve.
        S: size.
        D: tokens to train on.
        saved: share of all FLOPs that this saves beside the best training run and its serving; unknown `within`.
        ratio_beyond: the factor by which D / S lies above that of all runs; 1 within.
        y: what a new run of this size would show; unknown unless `within`.
        within: whether the budget pays for both, and the least loss is sought; else the least FLOPs to that loss.
    """

    C: float
    T: float
    S: Estimate
    D: Estimate
    saved: Estimate
    ratio_beyond: float
    y: Estimate
    within: bool


def best_of(fits: Sequence[SurfaceFit], C: float, budgets: Sequence[BudgetTest] = (), seed: int = 0) -> Best | None:
    """The best run of a budget, and what others lose.

    Args:
        fits: of the forms to the same runs.
        C: training FLOPs.
        budgets: backtests in compute, which widen the interval of y.
        seed: of the draws.

    Returns:
        The best; None where no form was fitted.
    """
    drawn = draws_of_budget(fits, C, seed)
    return None if drawn is None else best_among(fits, C, *drawn, budgets)


def draws_of_budget(
    fits: Sequence[SurfaceFit], C: float, seed: int = 0, T: float = 0.0
) -> tuple[Floats, Floats] | None:
    """Draws of ln y along a budget, 6 S D + 2 S T = C.

    Args:
        fits: of the forms to the same runs.
        C: FLOPs of training, and of serving T tokens.
        seed: of the draws.
        T: tokens to serve.

    Returns:
        Ln S of a hundredfold around the sizes of the runs [G], as far as the budget serves them, and the draws [K, G];
        None where no form was fitted.
    """
    runs = fits[0].runs
    least_S, most_S = runs.S_N.min() / _AROUND, runs.S_N.max() * _AROUND
    if T:
        most_S = min(most_S, _SERVABLE * C / (2 * T))
        least_S = min(least_S, most_S / HALF)
    ln_S_G = np.linspace(math.log(least_S), math.log(most_S), _SIZES)
    found = _draws(fits, ln_S_G, np.log(tokens_left(C, np.exp(ln_S_G), T)), seed)
    return None if found is None else (ln_S_G, found)


def tokens_left(C: float, S: Size, T: float) -> Size:
    """Tokens to train on where 6 S D + 2 S T = C."""
    return (C / S - 2 * T) / 6


def best_among(
    fits: Sequence[SurfaceFit], C: float, ln_S_G: Floats, found: Floats, budgets: Sequence[BudgetTest] = ()
) -> Best:
    """The best run of a budget, from draws along it (`draws_of_budget`)."""
    runs = fits[0].runs
    beyond = max(C / float((six_S(runs.S_N) * runs.D_N).max()), 1.0)
    ln_S_K, _ = least(ln_S_G, found)
    inner_K = np.isfinite(ln_S_K)
    if inner_K.mean() < INSIDE:
        return Best(C, Estimate(), Estimate(), Estimate(), Estimate(), Estimate(), beyond)
    S = of_draws(ln_S_K[inner_K])
    middle = float(np.median(ln_S_K[inner_K]))
    size = math.exp(middle)
    (answer,) = predict_over_forms(fits, [(size, C / 6 / size)], budgets)
    at_G = [middle, middle - math.log(HALF), middle - math.log(FIVEFOLD)]
    best_K, half_K, fivefold_K = (np.array([np.interp(at, ln_S_G, row) for row in found]) for at in at_G)
    D = Estimate(*(None if each is None else C / 6 / each for each in (S.value, S.hi, S.lo)))
    return Best(C, S, D, answer.y, of_draws(half_K - best_K, less=1.0), of_draws(fivefold_K - best_K, less=1.0), beyond)


def irreducible(fits: Sequence[SurfaceFit], seed: int = 0) -> Estimate:
    """What no size and no tokens get below, E: draws far beyond all runs, so that it is no constant of a single form.

    Args:
        fits: as in `best_of`.
        seed: of the draws.
    """
    runs = fits[0].runs
    at = Runs.of(np.array([runs.S_N.max() * _ENDLESS]), np.array([runs.D_N.max() * _ENDLESS]), np.ones(1))
    found = draw_over_forms(fits, at, _DRAWS, seed)
    return Estimate() if found is None else of_draws(found[0][:, 0])


def with_serving(fits: Sequence[SurfaceFit], C: float, T: float, seed: int = 0) -> Served | None:
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
    if training is None or training.S.value is None:
        return None
    runs, ln_S = fits[0].runs, math.log(training.S.value)
    ln_S_G = np.linspace(ln_S - math.log(_SMALLER), ln_S + math.log(3), _SERVED)
    ln_more_M = np.linspace(math.log(1 / 3), math.log(_LONGER), _SERVED)
    ln_D = math.log(C / 6) - ln_S
    ln_S_P, more_P = (each.ravel() for each in np.meshgrid(ln_S_G, ln_more_M, indexing="ij"))
    found = _draws(fits, np.append(ln_S_P, ln_S), np.append(ln_D + more_P, ln_D), seed)
    if found is None:
        return None
    wanted_K = found[:, -1]
    ln_y_KGM = found[:, :-1].reshape(len(found), _SERVED, _SERVED)
    ln_D_KG = np.full(ln_y_KGM.shape[:2], np.nan)
    for k, wanted in enumerate(wanted_K.tolist()):
        for g, ln_y_M in enumerate(ln_y_KGM[k]):
            if ln_y_M.min() <= wanted <= ln_y_M[0]:
                falling_M = np.minimum.accumulate(ln_y_M)
                ln_D_KG[k, g] = ln_D + np.interp(-wanted, -falling_M, ln_more_M)
    cost_KG = np.exp(ln_S_G) * (6 * np.exp(ln_D_KG) + 2 * T)
    usable_K = np.isfinite(cost_KG).any(axis=1)
    if usable_K.mean() < INSIDE:
        return Served(C, T, Estimate(), Estimate(), Estimate(), 1.0, Estimate(), within=False)
    cost_KG, ln_D_KG = cost_KG[usable_K], ln_D_KG[usable_K]
    best_K = np.nanargmin(cost_KG, axis=1)
    each_K = np.arange(len(best_K))
    plain = C + 2 * training.S.value * T
    S, D = of_draws(ln_S_G[best_K]), of_draws(ln_D_KG[each_K, best_K])
    saved = of_draws(np.log(cost_KG[each_K, best_K] / plain), less=1.0).times(-1.0)
    ratio = float(np.exp(np.median(ln_D_KG[each_K, best_K] - ln_S_G[best_K])))
    return Served(C, T, S, D, saved, max(ratio / float((runs.D_N / runs.S_N).max()), 1.0), Estimate(), within=False)


def within_total(
    fits: Sequence[SurfaceFit], C: float, T: float, budgets: Sequence[BudgetTest] = (), seed: int = 0
) -> Served | None:
    """The best run of which training and serving together cost a budget: the least loss at 6 S D + 2 S T = C.

    Args:
        fits: as in `best_of`.
        C: FLOPs of both.
        T: tokens to serve.
        budgets: backtests in compute, which widen the interval of y.
        seed: of the draws.

    Returns:
        The best, unknown where no size within a hundredfold of the runs' is; None where no form was fitted.
    """
    drawn = draws_of_budget(fits, C, seed, T)
    if drawn is None:
        return None
    runs, (ln_S_G, found) = fits[0].runs, drawn
    ln_S_K, _ = least(ln_S_G, found)
    inner_K = np.isfinite(ln_S_K)
    if inner_K.mean() < INSIDE:
        return Served(C, T, Estimate(), Estimate(), Estimate(), 1.0, Estimate(), within=True)
    S = of_draws(ln_S_K[inner_K])
    ends = [each and tokens_left(C, each, T) for each in (S.value, S.hi, S.lo)]
    size, D = math.exp(float(np.median(ln_S_K[inner_K]))), Estimate(*ends)
    (answer,) = predict_over_forms(fits, [(size, tokens_left(C, size, T))], budgets)
    ratio = tokens_left(C, size, T) / size / float((runs.D_N / runs.S_N).max())
    return Served(C, T, S, D, Estimate(), max(ratio, 1.0), answer.y, within=True)


def _draws(fits: Sequence[SurfaceFit], ln_S: Floats, ln_D: Floats, seed: int) -> Floats | None:
    """Draws of ln y of the surface at points."""
    drawn = draw_over_forms(fits, Runs.of(np.exp(ln_S), np.exp(ln_D), np.ones(len(ln_S))), _DRAWS, seed)
    return None if drawn is None else drawn[0]


def least(ln_S_G: Floats, ln_y_KG: Floats) -> tuple[Floats, Floats]:
    """Where each draw is least, and how much, by the parabola through its least place and both beside it.

    NaN where that is at an end.
    """
    at_K = ln_y_KG.argmin(axis=1)
    inner_K = (at_K > 0) & (at_K < len(ln_S_G) - 1)
    at_K = np.clip(at_K, 1, len(ln_S_G) - 2)
    each_K = np.arange(len(at_K))
    before_K, here_K, after_K = (ln_y_KG[each_K, at_K + step] for step in (-1, 0, 1))
    bend_K = before_K - 2 * here_K + after_K
    shift_K = np.where(bend_K > 0, (before_K - after_K) / (2 * np.where(bend_K > 0, bend_K, 1.0)), 0.0)
    ln_S_K = ln_S_G[at_K] + shift_K * (ln_S_G[1] - ln_S_G[0])
    ln_y_K = here_K - (before_K - after_K) * shift_K / 4
    return np.where(inner_K, ln_S_K, np.nan), np.where(inner_K, ln_y_K, np.nan)


def of_draws(ln_K: Floats, less: float = 0.0) -> Estimate:
    """Median and 95 % interval of exponentials of draws, less a number."""
    value, lo, hi = (np.exp(np.quantile(ln_K, (0.5, *TAILS))) - less).tolist()
    return Estimate(value, lo, hi)
