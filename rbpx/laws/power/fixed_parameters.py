"""Fits power laws with fixed parameters or priors, and tests these values against the points.

The law is fitted with each value of a prior (`rbpx.laws.priors`) fixed, weighted by prior * SSE^(-dof / 2); estimates
are quantiles of the mixture.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc, softmax

from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import TAILS, Estimate, Replicates, Z
from rbpx.laws.names import Method
from rbpx.laws.power.law import FixedParameter, PowerLaw, fit_power_law
from rbpx.laws.priors import FixedValues, Priors, fixed_values

TINY: Final = 1e-12
NO_BOUNDS: Final[Mapping[str, tuple[float, float]]] = {}
_LONG: Final = 10_000  # degrees of freedom of a component that counts as normal


def fit_law_with_priors(
    S: ArrayLike,
    y: ArrayLike,
    y_replicates: Replicates | None,
    method: Method,
    pins: Priors,
    signed: bool = False,
) -> PowerLaw:
    """Fits a power law with fixed parameters or priors.

    Raises:
        ImpossiblePrior: E is not below every y, or C is not positive.
    """
    free = fit_power_law(S, y, y_replicates, method, signed=signed)
    if free.regression is None:
        return free
    free_estimates = {"E": free.E, "alpha": free.alpha, "C": free.C}
    chosen = value_combinations(pins, free.y, free_estimates)
    laws = [fit_power_law(S, y, y_replicates, method, signed=signed, given=each.values) for each in chosen]
    for law in laws:
        if law.regression is None:
            return law
    regressions = [law.regression for law in laws if law.regression is not None]
    weights = posterior_weights([_squares(law) for law in laws], regressions[0].dof, chosen)
    best = laws[int(np.argmax(weights))]
    alpha = mixture_estimate([law.alpha for law in laws], weights)
    C = mixture_estimate([law.C.ln() for law in laws], weights).exp()
    now = {"E": best.E, "alpha": alpha, "C": C}
    if "E" in pins and pins["E"].sd:
        values = [each.values["E"] for each in chosen]
        step = float(np.diff(sorted(set(values))).mean())
        smallest = float(np.min(np.abs(free.y)))
        now["E"] = mixture_estimate([Estimate(E) for E in values], weights, step).through(lambda E: min(E, smallest))
    about = []
    for name, pin in pins.items():
        at = fit_power_law(S, y, None, method, False, signed, {name: pin.value})
        p = None if at.regression is None else f_test_p(_squares(free), _squares(at), free.regression.dof)
        about.append(FixedParameter(name, pin, p, free_estimates[name], now[name]))
    return replace(best, C=C, alpha=replace(alpha, stderr=best.alpha.stderr), E=now["E"], pinned=tuple(about))


def _squares(law: PowerLaw) -> float:
    return float(np.sum(np.square(law.residuals_ln)))


def value_combinations(
    pins: Priors,
    y: ArrayLike,
    free_estimates: Mapping[str, Estimate],
    bounds: Mapping[str, tuple[float, float]] = NO_BOUNDS,
) -> list[FixedValues]:
    """The combinations of values that fixed parameters and priors allow; E lies below every y.

    Raises:
        ImpossiblePrior: a value is outside its bounds.
    """
    smallest = float(np.min(np.abs(y)))
    spread = {name: known for name, each in free_estimates.items() if (known := _spread(each)) is not None}
    return fixed_values(pins, {**bounds, "E": (0.0, smallest), "C": (TINY, math.inf)}, spread)


def f_test_p(free: float, given: float, dof: int) -> float | None:
    """The p value of F, from the sums of squares with the parameter free and fixed; None without scatter."""
    return float(fdtrc(1, dof, max(given - free, 0.0) / (free / dof))) if dof > 0 and free > 0 else None


def mixture_estimate(of: Sequence[Estimate], weights: Sequence[float], step: float = 0.0) -> Estimate:
    """Averages an estimate over values of a parameter, `step` apart where it is that parameter, with its interval."""
    if len(of) == 1 or any(each.value is None for each in of):
        return of[0] if len(of) == 1 else Estimate()
    ends = [each.ends for each in of]
    half = [step / math.sqrt(12) if both is None else (both[1] - both[0]) / 2 / Z for both in ends]
    mixture = TMixture(np.array([each.value for each in of]), np.array(half), np.array(weights), _LONG)
    value, lo, hi = mixture.quantiles((0.5, *TAILS)).tolist()
    return Estimate(value, lo, hi) if step or None not in ends else Estimate(value)


def _spread(of: Estimate) -> tuple[float, float] | None:
    return None if of.value is None or of.ends is None else (of.value, max((of.ends[1] - of.ends[0]) / 2 / Z, TINY))


def posterior_weights(squares: Sequence[float], dof: int, chosen: Sequence[FixedValues]) -> list[float]:
    """Normalised weights, prior * SSE^(-dof / 2); all exact laws count by their prior alone."""
    ln_V = np.log([each.prior for each in chosen]) - dof / 2 * np.log(np.maximum(squares, TINY**2))
    return [float(each) for each in softmax(ln_V)]
