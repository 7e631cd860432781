"""Fits surfaces with fixed parameters or priors, and tests these values against the runs.

The surface is fitted with each value of a prior (`rbpx.laws.priors`) fixed, weighted by prior times likelihood, in
which a run counts as one point. A value is tested by the increase of the objective, compared with 199 draws in which it
is true, whose residuals have a random sign for each run (wild bootstrap; C. Wu, Annals of Statistics 14 (1986) 1261).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from scipy.special import softmax

from rbpx.laws.intervals.estimate import LEVEL
from rbpx.laws.names import Objective
from rbpx.laws.numeric import Floats
from rbpx.laws.power.fixed_parameters import TINY, value_combinations
from rbpx.laws.power.law import FixedParameter
from rbpx.laws.priors import FixedValues, ImpossiblePrior, Priors
from rbpx.laws.surface.equations import STEEPEST, Kaplan
from rbpx.laws.surface.fit import FORMS, Surface, fit_surface
from rbpx.laws.surface.loss import REPLICATE, Loss
from rbpx.laws.surface.runs import Runs

_DRAWS: Final = 199


def has_constants(form: str, pins: Priors) -> bool:
    """Whether a form has all fixed parameters and priors."""
    return set(pins) <= set(FORMS[form].names)


def fit_surface_with_priors(
    runs: Runs, form: str, pins: Priors, n_replicates: int = 200, is_tested: bool = True, **options: Any
) -> Surface:
    """Fits a form with fixed parameters or priors (not for N_c and D_c), and tests them; raises ImpossiblePrior."""
    if not pins:
        return fit_surface(runs, form, n_replicates=n_replicates, **options)
    wide = [name for name, pin in pins.items() if pin.sd and name in Kaplan.logarithmic]
    if wide:
        raise ImpossiblePrior(f"{wide[0]}={pins[wide[0]]} is a prior; {wide[0]} can be pinned to a value")
    free = fit_surface(runs, form, n_replicates=n_replicates if is_tested else 0, **options)
    if free.surface is None:
        return free
    chosen = _values(pins, free)
    fits = [fit_surface(runs, form, n_replicates=n_replicates, given=given.values, **options) for given in chosen]
    if any(fit.surface is None for fit in fits):
        return next(fit for fit in fits if fit.surface is None)
    fit, pinned = _together(fits, _weights(fits, chosen), [given.prior for given in chosen]), []
    for name, pin in pins.items():
        p = None
        if is_tested and n_replicates:
            p = _p(free, fit_surface(runs, form, n_replicates=0, given={name: pin.value}, **options))
        pinned.append(FixedParameter(name, pin, p, free.constants[name], fit.constants[name]))
    return replace(fit, pinned=tuple(pinned))


def _values(pins: Priors, free: Surface) -> list[FixedValues]:
    kind = FORMS[free.form]
    bounds = {name: (0.0, math.inf) for name in kind.names} | {name: (TINY, math.inf) for name in kind.logarithmic}
    bounds |= {name: (0.0, STEEPEST) for name in kind.exponents}
    return value_combinations(pins, free.runs.y_N, free.constants, bounds)


def _weights(fits: Sequence[Surface], chosen: Sequence[FixedValues]) -> Floats:
    """Prior times likelihood of each value, a run counting once; a fit without BIC is exact."""
    bic_V = np.array([-math.inf if fit.bic is None else fit.bic for fit in fits])
    if not np.all(np.isfinite(bic_V)):
        return np.asarray(np.isinf(bic_V) / np.isinf(bic_V).sum())
    a_run = fits[0].n_runs / fits[0].n_points
    return np.asarray(softmax(np.log([given.prior for given in chosen]) - a_run * bic_V / 2))


def _together(fits: Sequence[Surface], weights: Floats, prior: Sequence[float]) -> Surface:
    best = fits[int(np.argmax(weights))]
    surfaces = [fit.surface for fit in fits if fit.surface is not None]
    ways = tuple(zip(surfaces, prior, strict=True))
    if len(fits) == 1 or best.surface is None:
        return replace(best, ways=ways)
    B = len(best.surface.theta_BP)
    from_V = np.searchsorted(np.cumsum(weights), (np.arange(B) + 0.5) / max(B, 1) * weights.sum())
    theta_VBP = np.array([surface.theta_BP for surface in surfaces])
    middle_P = np.average([surface.theta_P for surface in surfaces], axis=0, weights=weights)
    surface = replace(best.surface, theta_P=middle_P, theta_BP=theta_VBP[from_V, np.arange(B)])
    whole = replace(best, surface=surface, ways=ways)
    return replace(whole, constants=whole.constants_at(1 - LEVEL))


def _p(free: Surface, at: Surface) -> float | None:
    if free.surface is None or at.surface is None or not free.objective or at.objective is None:
        return None
    surface, runs, objective = at.surface, free.runs, free.objective_name
    ln_fit_N = surface.form.evaluate(surface.x, surface.theta_P[None])[0][0]
    sign_BG = np.random.default_rng(0).choice([-1.0, 1.0], size=(_DRAWS, runs.n_groups))
    ln_y_BN = ln_fit_N - sign_BG[:, runs.group_N] * surface.residual_N
    delta = free.delta / (1.0 if objective is Objective.log_huber else surface.form.y_ref)
    drawn = []
    for of in (surface, free.surface):
        whole = Loss(of.form, of.x, objective, delta, ln_y_BN, np.ones((1, len(runs.y_N))), of.fixed_P)
        drawn.append(whole.minimise(np.tile(of.theta_P, (_DRAWS, 1)), REPLICATE).value_B)
    here, *drawn_B = np.log(np.maximum(np.column_stack([[at.objective, free.objective], drawn]), TINY)).T @ [1, -1]
    return float((1 + (np.array(drawn_B) >= here - TINY).sum()) / (1 + _DRAWS))
