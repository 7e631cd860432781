"""Finds runs that the others contradict: diverged, untuned, or with a wrong entry in their table.

As several outliers mask each other, suspects are removed first, the farthest from the robust law and those with the
worst deleted studentised residuals; they return one by one, the nearest first, until one is too far. The level is
divided among runs and steps (Sidak), and a run is named only if model averaging over the others excludes it too.

The largest runs may err together, as where schedules were cut short. Their common shift is one more constant of the
law, tested by its t, for the two, three, ... runs of most compute, up to a third of all, and for those of the largest
size.

Sources:
    A. Hadi and J. Simonoff, Journal of the American Statistical Association 88 (1993) 1264, for the way back.
    Z. Sidak, ibid. 62 (1967) 626.

Shapes: N points, G runs (several checkpoints count by their mean), P numbers of theta.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.prediction.calibration import error_in_sd
from rbpx.laws.surface.averaged import draw_averaged, forms_to_mix, predict_averaged, thin_checkpoints
from rbpx.laws.surface.design import judge_design
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import SurfaceParameters

LEVEL: Final = 0.01  # share of clean sets with a named run, at most; low, as questions ask some five quantities
_OF_SETS: Final = 0.05  # share of clean sets with a run at `farthest_of`
_TOGETHER: Final = 0.02  # share of clean sets with a common shift, at most
_SAME: Final = 0.01  # of the logarithm of an axis; closer runs are equally large
_SHARE: Final = 3  # at most one run in three has the common shift
_DRAWS: Final = 4000  # of the mean of the largest
_SUSPECT: Final = 8  # one run in eight leaves, by either rule
_FEWEST: Final = 2  # degrees of freedom, without the suspects
_DEPENDENT: Final = 1e-9  # of the largest singular value; smaller ones are 0


@dataclass(frozen=True)
class Outlier:
    """A run that the others contradict.

    Attributes:
        run: its number in `Runs.group_N`.
        share: y over its predicted median, minus 1; the median over checkpoints.
        in_sd: distance in standard deviations of a new run.
        p: probability that a clean set of runs has one this far out.
    """

    run: int
    share: float
    in_sd: float
    p: float


@dataclass(frozen=True)
class CommonShift:
    """The largest runs, which deviate together from the prediction of the others; numbers of their mean."""

    runs: tuple[int, ...]
    share: float
    in_sd: float
    p: float


def outliers(runs: Runs) -> tuple[Outlier, ...]:
    """The runs that the others contradict; none where these leave too few degrees of freedom, or are collinear."""
    if not runs.n_groups or judge_design(runs.S_N, runs.D_N).is_collinear:
        return ()
    suspects = _suspects(runs)
    out_N = np.isin(runs.group_N, list(suspects))
    if not out_N.any():
        return ()
    rest, at_T = runs.only(~out_N), np.flatnonzero(out_N)
    fits = [fit_surface(rest, form, n_replicates=0) for form in forms_to_mix(rest)]
    points = list(zip(runs.S_N[at_T].tolist(), runs.D_N[at_T].tolist(), strict=True))
    of: dict[int, list[tuple[float, float, float]]] = {run: [] for run in suspects}
    for at, answer in zip(at_T.tolist(), predict_averaged(fits, points, ()), strict=True):
        y, middle, mixture = float(runs.y_N[at]), answer.y.value, answer.mixture
        away = error_in_sd(answer.y, y)
        if middle is None or mixture is None or away is None:
            return ()
        below = float(mixture.below(math.log(y)))
        of[int(runs.group_N[at])].append((y / middle - 1, away, _of_several(2 * min(below, 1 - below), runs.n_groups)))
    named = []
    for run, each in of.items():
        share, away, p = np.median(each, axis=0).tolist()
        if (p := max(p, suspects[run])) < LEVEL:
            named.append(Outlier(run, share, away, p))
    return tuple(sorted(named, key=lambda each: -abs(each.in_sd)))


def common_shift(runs: Runs) -> CommonShift | None:
    """The largest runs if they deviate together from the others at a level of 2 %; call it without outliers."""
    sets = _largest_sets(runs)
    surface = fit_surface(runs, _form(runs), n_replicates=0).surface if sets else None
    if surface is None:
        return None
    off_G, J_GP = _about(surface, runs)
    p, of_G = min(((_p_of_shift(off_G, J_GP, of_G), of_G) for of_G in sets), key=lambda each: each[0])
    if (p := _of_several(p, len(sets))) >= _TOGETHER:
        return None
    rest, there = (runs.only(in_G[runs.group_N]) for in_G in (~of_G, of_G))
    there = there.only(thin_checkpoints(there))
    fits = [fit_surface(rest, form, n_replicates=0) for form in forms_to_mix(rest)]
    if all(fit.surface is None for fit in fits):
        return None
    weight_T = 1 / np.bincount(there.group_N)[there.group_N] / there.n_groups
    ln_y_KT, scatter_K = draw_averaged(fits, there, _DRAWS)
    own_K = scatter_K * np.random.default_rng(0).standard_normal(_DRAWS) / math.sqrt(there.n_groups)
    off_K = np.log(there.y_N) @ weight_T - ln_y_KT @ weight_T - own_K
    p = max(p, 2 * min(float((off_K > 0).mean()), float((off_K < 0).mean())))
    if p >= _TOGETHER:
        return None
    numbers = tuple(np.flatnonzero(of_G).tolist())
    return CommonShift(numbers, math.expm1(np.median(off_K)), float(off_K.mean() / off_K.std()), p)


def _largest_sets(runs: Runs) -> list[NDArray[np.bool_]]:
    G, sets = runs.n_groups, list[NDArray[np.bool_]]()
    ln_C_G, ln_S_G = (np.full(G, -np.inf) for _ in range(2))
    for ln_G, axis in ((ln_C_G, Axis.C), (ln_S_G, Axis.S)):
        np.maximum.at(ln_G, runs.group_N, np.log(runs.along(axis)))
    falling_G = -np.sort(-ln_C_G)
    sets += [
        ln_C_G > (falling_G[m - 1] + falling_G[m]) / 2
        for m in range(2, G // _SHARE + 1)
        if falling_G[m - 1] - falling_G[m] > _SAME
    ]
    sets.append(ln_S_G >= ln_S_G.max(initial=-np.inf) - _SAME)

    def leaves(of_G: NDArray[np.bool_]) -> bool:
        in_N = ~of_G[runs.group_N]
        return 2 <= of_G.sum() <= G // _SHARE and not judge_design(runs.S_N[in_N], runs.D_N[in_N]).is_collinear

    return [of_G for of_G in sets if leaves(of_G)]


def _p_of_shift(off_G: Floats, J_GP: Floats, of_G: NDArray[np.bool_]) -> float:
    left_GK, singular_K, _ = np.linalg.svd(J_GP, full_matrices=False)
    left_GK = left_GK[:, singular_K > _DEPENDENT * singular_K[0]]
    rest_G, shift_G = (each_G - left_GK @ (left_GK.T @ each_G) for each_G in (off_G, of_G.astype(np.float64)))
    dof, square = len(off_G) - left_GK.shape[1] - 1, float(shift_G @ shift_G)
    if len(off_G) - of_G.sum() - left_GK.shape[1] < _FEWEST or square < _DEPENDENT:
        return 1.0
    by = float(shift_G @ rest_G) / square
    variance = max(float(rest_G @ rest_G) - by**2 * square, np.finfo(float).tiny) / dof
    return 2 * float(stdtr(dof, -abs(by) * math.sqrt(square / variance)))


def farthest_of(n: int) -> float:
    """The distance in standard deviations that the farthest of n reaches in one of twenty clean sets."""
    return float(-ndtri(-math.expm1(math.log1p(-_OF_SETS) / n) / 2))


def _of_several(p: float, n: int) -> float:
    return -math.expm1(n * math.log1p(-min(p, 1 - 1e-16)))


def _form(runs: Runs) -> str:
    return "data_constrained" if runs.repeats else "chinchilla"


def _suspects(runs: Runs) -> dict[int, float]:
    form, G = _form(runs), runs.n_groups
    surface = fit_surface(runs, form, n_replicates=0).surface
    if surface is None:
        return {}
    off_G, J_GP = _about(surface, runs)
    most = min(max(G // _SUSPECT, 1), G - np.linalg.matrix_rank(J_GP) - _FEWEST)
    if most < 1:
        return {}
    in_G = np.ones(G, np.bool_)
    for _ in range(most):
        in_G[np.argmax(np.where(in_G, np.abs(_deleted(off_G, J_GP, in_G)[0]), -1))] = False
    out = list(dict.fromkeys([*np.flatnonzero(~in_G), *np.argsort(-np.abs(off_G))[:most]]))
    in_G = ~np.isin(np.arange(G), out[: G - np.linalg.matrix_rank(J_GP) - _FEWEST])
    without = fit_surface(runs.only(in_G[runs.group_N]), form, n_replicates=0).surface
    off_G, J_GP = _about(without or surface, runs)
    steps, n_steps = list[tuple[int, float]](), int((~in_G).sum())
    while not in_G.all():
        t_G, dof_G = _deleted(off_G, J_GP, in_G)
        nearest = int(np.argmin(np.where(in_G, np.inf, np.abs(t_G))))
        p = 2 * float(stdtr(dof_G[nearest], -abs(t_G[nearest])))
        steps.append((nearest, _of_several(p, G * n_steps)))
        in_G[nearest] = True
    far = next((at for at, (_, p) in enumerate(steps) if p < LEVEL), n_steps)
    return {run: steps[far][1] for run, _ in steps[far:]}  # those farther out have no larger p


def _about(surface: SurfaceParameters, runs: Runs) -> tuple[Floats, Floats]:
    """By run, means of ln y minus the law, [G], and of its derivatives by the free constants, each scaled."""
    x = runs.places.about(surface.x.ln_S_ref, surface.x.ln_D_ref)
    ln_y_1N, J_1PN = surface.form.evaluate(x, surface.theta_P[None])
    of_run_GN = np.equal.outer(np.arange(runs.n_groups), runs.group_N) * (
        1.0 if runs.weight_N is None else runs.weight_N
    )
    of_run_GN /= of_run_GN.sum(axis=1, keepdims=True)
    J_GP = of_run_GN @ J_1PN[0][~surface.fixed_P].T
    off_N = np.log(runs.y_N) - ln_y_1N[0] - math.log(surface.form.y_ref)
    return of_run_GN @ off_N, J_GP / np.maximum(np.linalg.norm(J_GP, axis=0), np.finfo(float).tiny)


def _deleted(off_G: Floats, J_GP: Floats, in_G: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Deleted studentised residuals, 0 where any law goes through the run, and their degrees of freedom."""
    left_KP, singular_P, right_PP = np.linalg.svd(J_GP[in_G], full_matrices=False)
    free_P = singular_P > _DEPENDENT * singular_P[0]
    of_law_GP = (J_GP @ right_PP.T)[:, free_P] / singular_P[free_P]
    rest_G = off_G - of_law_GP @ (left_KP[:, free_P].T @ off_G[in_G])
    share_G = 1 + np.where(in_G, -1, 1) * (of_law_GP**2).sum(axis=1)  # of the variance of a run
    square_G = np.where(share_G > _DEPENDENT, rest_G**2 / np.maximum(share_G, _DEPENDENT), 0.0)
    dof_G = in_G.sum() - free_P.sum() - in_G
    variance_G = ((rest_G[in_G] ** 2).sum() - np.where(in_G, square_G, 0.0)) / dof_G
    tiny = np.finfo(float).tiny
    return np.sign(rest_G) * np.sqrt(square_G / np.maximum(variance_G, tiny)), dof_G.astype(float)
