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
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize.elementwise import find_root

from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import BudgetTest, draw_over_forms, predict_over_forms
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.runs import Runs, six_S

Size = TypeVar("Size", float, Floats)

HALF: Final = 2.0  # times smaller, with as many times the tokens
FIVEFOLD: Final = 5.0
_DRAWS: Final = 1000
_SIZES: Final = 61  # along a budget
_SERVABLE: Final = 0.999  # of the budget: what serving may cost of the largest size that is looked at
_AROUND: Final = 100.0  # times the sizes of the runs, to either side
_SERVED: Final = math.log(10) * np.arange(-10, 21) / 5  # of R, where serving counts, beside the best training run's
_COMPUTE: Final = 12  # amounts, at each of them
_LESS: Final = math.log(30)  # of C: how much less may reach the loss
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


def best_of(fits: Sequence[Surface], C: float, budgets: Sequence[BudgetTest] = (), seed: int = 0) -> Best | None:
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


def draws_of_budget(fits: Sequence[Surface], C: float, seed: int = 0) -> tuple[Floats, Floats] | None:
    """Draws of ln y along a budget, 6 S D = C.

    Args:
        fits: of the forms to the same runs.
        C: training FLOPs.
        seed: of the draws.

    Returns:
        Ln S of a hundredfold around the sizes of the runs [G], and the draws [K, G]; None where no form was fitted.
    """
    runs = fits[0].runs
    ln_S_G = np.linspace(math.log(runs.S_N.min() / _AROUND), math.log(runs.S_N.max() * _AROUND), _SIZES)
    found = _draws(fits, ln_S_G, np.log(tokens_left(C, np.exp(ln_S_G), 0.0)), seed)
    return None if found is None else (ln_S_G, found)


def tokens_left(C: float, S: Size, T: float) -> Size:
    """Tokens to train on where 6 S D + 2 S T = C."""
    return (C / S - 2 * T) / 6


def _ln_size(ln_C: Floats | float, ln_R: Floats, T: float) -> Floats:
    """Ln S where 6 S D + 2 S T = C and D = R S."""
    C = np.exp(ln_C)
    return np.log(C / (T + np.sqrt(T**2 + 6 * np.exp(ln_R) * C)))


def best_among(
    fits: Sequence[Surface], C: float, ln_S_G: Floats, found: Floats, budgets: Sequence[BudgetTest] = ()
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
    wanted = [middle, middle - math.log(HALF), max(middle - math.log(FIVEFOLD), float(ln_S_G[0]))]
    best_K, half_K, fivefold_K = CubicSpline(ln_S_G, found, axis=1)(wanted).T
    D = S.through(lambda each: C / 6 / each, falls=True)
    return Best(C, S, D, answer.y, of_draws(half_K - best_K, less=1.0), of_draws(fivefold_K - best_K, less=1.0), beyond)


def irreducible(fits: Sequence[Surface], seed: int = 0) -> Estimate:
    """What no size and no tokens get below, E: draws far beyond all runs, so that it is no constant of a single form.

    Args:
        fits: as in `best_of`.
        seed: of the draws.
    """
    runs = fits[0].runs
    at = Runs.of(np.array([runs.S_N.max() * _ENDLESS]), np.array([runs.D_N.max() * _ENDLESS]), np.ones(1))
    found = draw_over_forms(fits, at, _DRAWS, seed)
    return Estimate() if found is None else of_draws(found[0][:, 0])


def with_serving(fits: Sequence[Surface], C: float, T: float, seed: int = 0) -> Served | None:
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
    S_best, ln_C = training.S.value, math.log(C)
    ln_R_G = math.log(C / 6 / S_best**2) + _SERVED
    # The size of the best training run with more tokens, or its tokens with a larger size, reach its loss.
    step_G = (_LESS + np.abs(_SERVED)) / (_COMPUTE - 2)
    ln_C_MG = ln_C - _LESS + np.arange(_COMPUTE)[:, None] * step_G
    ln_S_MG = _ln_size(ln_C_MG, ln_R_G, 0.0)
    ln_S_P, ln_D_P = ln_S_MG.ravel(), (ln_S_MG + ln_R_G).ravel()
    found = _draws(fits, np.append(ln_S_P, math.log(S_best)), np.append(ln_D_P, math.log(C / 6 / S_best)), seed)
    if found is None:
        return None
    above_KMG = found[:, :-1].reshape(len(found), *ln_C_MG.shape) - found[:, -1, None, None]
    ln_C_KG = ln_C - _LESS + _first_root(above_KMG) * step_G
    ln_cost_KG = ln_C_KG + np.log1p(2 * T * np.exp(_ln_size(ln_C_KG, ln_R_G, 0.0) - ln_C_KG))
    ln_R_K, ln_cost_K = least(ln_R_G, np.where(np.isfinite(ln_cost_KG), ln_cost_KG, np.inf))
    inner_K = np.isfinite(ln_R_K)
    if inner_K.mean() < INSIDE:
        return Served(C, T, Estimate(), Estimate(), Estimate(), 1.0, Estimate(), within=False)
    ln_R_K, ln_cost_K = ln_R_K[inner_K], ln_cost_K[inner_K]
    ln_S_K = _ln_size(ln_cost_K, ln_R_K, T)
    saved = of_draws(ln_cost_K - math.log(C + 2 * S_best * T), less=1.0).times(-1.0)
    beyond = max(math.exp(np.median(ln_R_K)) / _most_per_parameter(fits[0].runs), 1.0)
    return Served(C, T, of_draws(ln_S_K), of_draws(ln_S_K + ln_R_K), saved, beyond, Estimate(), within=False)


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


def _most_per_parameter(runs: Runs) -> float:
    return float((runs.D_N / runs.S_N).max())


def within_total(
    fits: Sequence[Surface], C: float, T: float, budgets: Sequence[BudgetTest] = (), seed: int = 0
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
    runs = fits[0].runs
    most_S = min(float(runs.S_N.max()) * _AROUND, _SERVABLE * C / (2 * T))
    least_S = min(float(runs.S_N.min()) / _AROUND, most_S / HALF)
    fewest, most = (math.log(tokens_left(C, at, T) / at) for at in (most_S, least_S))
    ln_R_G = np.linspace(fewest, most, _SIZES)
    ln_S_G = _ln_size(math.log(C), ln_R_G, T)
    found = _draws(fits, ln_S_G, ln_S_G + ln_R_G, seed)
    if found is None:
        return None
    ln_R_K, _ = least(ln_R_G, found)
    inner_K = np.isfinite(ln_R_K)
    if inner_K.mean() < INSIDE:
        return Served(C, T, Estimate(), Estimate(), Estimate(), 1.0, Estimate(), within=True)
    ln_S_K = _ln_size(math.log(C), ln_R_K[inner_K], T)
    S = of_draws(ln_S_K)
    size, D = math.exp(float(np.median(ln_S_K))), S.through(lambda each: tokens_left(C, each, T), falls=True)
    (answer,) = predict_over_forms(fits, [(size, tokens_left(C, size, T))], budgets)
    beyond = max(tokens_left(C, size, T) / size / _most_per_parameter(runs), 1.0)
    return Served(C, T, S, D, Estimate(), beyond, answer.y, within=True)


def _draws(fits: Sequence[Surface], ln_S: Floats, ln_D: Floats, seed: int) -> Floats | None:
    """Draws of ln y of the surface at points."""
    drawn = draw_over_forms(fits, Runs.of(np.exp(ln_S), np.exp(ln_D), np.ones(len(ln_S))), _DRAWS, seed)
    return None if drawn is None else drawn[0]


def least(ln_S_G: Floats, ln_y_KG: Floats) -> tuple[Floats, Floats]:
    """Where each draw is least, and how much, by the parabola through its least place and both beside it.

    NaN where that is at an end, or beside a place that is infinite.
    """
    at_K = ln_y_KG.argmin(axis=1)
    inner_K = (at_K > 0) & (at_K < len(ln_S_G) - 1)
    at_K = np.clip(at_K, 1, len(ln_S_G) - 2)
    each_K = np.arange(len(at_K))
    before_K, here_K, after_K = (ln_y_KG[each_K, at_K + step] for step in (-1, 0, 1))
    with np.errstate(invalid="ignore"):
        bend_K = before_K - 2 * here_K + after_K
        shift_K = np.where(bend_K > 0, (before_K - after_K) / (2 * np.where(bend_K > 0, bend_K, 1.0)), 0.0)
        ln_S_K = ln_S_G[at_K] + shift_K * (ln_S_G[1] - ln_S_G[0])
        ln_y_K = here_K - (before_K - after_K) * shift_K / 4
    return np.where(inner_K, ln_S_K, np.nan), np.where(inner_K, ln_y_K, np.nan)


def of_draws(ln_K: Floats, less: float = 0.0) -> Estimate:
    """Median and 95 % interval of exponentials of draws, less a number."""
    ln = estimate(float(np.median(ln_K)), ln_K, None, Recipe.expanded)
    return ln.through(lambda each: math.exp(each) - less)
