"""The power law of points with constants that are given, pinned or with a prior, and how the points speak of these.

A prior is several values (`rbpx.laws.priors`): the law is fitted with each of them held, weighed by
prior * SSE^(-dof / 2), and its numbers are those of the mixture. A given value is tested by the squares with it and
without it, all other constants free.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc

from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import TAILS, Estimate, Replicates, Z
from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.parameters import FixedParameter
from rbpx.laws.priors import FixedValues, Priors, fixed_values

_TINY: Final = 1e-12
_LONG: Final = 10_000  # degrees of freedom of a component that is taken as normal


def fit_pinned_law(
    S: ArrayLike,
    y: ArrayLike,
    y_replicates: Replicates | None,
    method: Method,
    pins: Priors,
    backtests: bool = True,
    signed: bool = False,
) -> PowerLaw:
    """Fit a power law with given constants.

    Args:
        S: as all that follow but pins in `rbpx.laws.power.law.fit_power_law`.
        y: there.
        y_replicates: there.
        method: ols or offset.
        pins: constants of the method, `rbpx.laws.power.parameters.PINNABLE`.
        backtests: there.
        signed: there.

    Returns:
        The law; where there is none without given constants, that one with its status.

    Raises:
        ImpossiblePrior: a constant cannot be what is given: an E that is not below every y, a C that is not positive.
    """
    free = fit_power_law(S, y, y_replicates, method, backtests, signed)
    if free.regression is None:
        return free
    told = {"E": free.E, "alpha": free.alpha, "C": free.C}
    chosen = values_of(pins, free.y, told)
    laws = [fit_power_law(S, y, y_replicates, method, backtests, signed, each.values) for each in chosen]
    for law in laws:
        if law.regression is None:
            return law
    regressions = [law.regression for law in laws if law.regression is not None]
    weights = weights_of([_squares(law) for law in laws], regressions[0].dof, chosen)
    best = laws[int(np.argmax(weights))]
    alpha = mixed([law.alpha for law in laws], weights)
    C = mapped(math.exp, mixed([mapped(math.log, law.C) for law in laws], weights))
    now = {"E": best.E, "alpha": alpha, "C": C}
    if "E" in pins and pins["E"].sd:
        values = [each.values["E"] for each in chosen]
        step = float(np.diff(sorted(set(values))).mean())
        now["E"] = mixed([Estimate(E) for E in values], weights, step)
    about = []
    for name, pin in pins.items():
        at = fit_power_law(S, y, None, method, False, signed, {name: pin.value})
        p = None if at.regression is None else p_of_squares(_squares(free), _squares(at), free.regression.dof)
        about.append(FixedParameter(name, pin, p, told[name], now[name]))
    return replace(best, C=C, alpha=replace(alpha, stderr=best.alpha.stderr), E=now["E"], pinned=tuple(about))


def _squares(law: PowerLaw) -> float:
    return float(np.sum(np.square(law.residuals_ln)))


def values_of(pins: Priors, y: ArrayLike, told: Mapping[str, Estimate]) -> list[FixedValues]:
    """The values that given constants of a law may have together.

    Args:
        pins: given.
        y: the points' values, all of one sign.
        told: what the points say of each constant without.

    Raises:
        ImpossiblePrior: as in `fit_pinned_law`.
    """
    smallest = float(np.min(np.abs(y)))
    spread = {name: known for name, each in told.items() if (known := _spread(each)) is not None}
    return fixed_values(pins, {"E": (0.0, smallest), "C": (_TINY, math.inf)}, spread)


def p_of_squares(free: float, given: float, dof: int) -> float | None:
    """How often a law with a given constant would be as far from its points; None where nothing says.

    F of the sums of squares without the constant given and with it, and the degrees of freedom without.
    """
    return float(fdtrc(1, dof, max(given - free, 0.0) / (free / dof))) if dof > 0 and free > 0 else None


def mixed(of: Sequence[Estimate], weights: Sequence[float], step: float = 0.0) -> Estimate:
    """A number with its 95 % interval over several values of a constant.

    Args:
        of: the number with each.
        weights: of each; they sum to 1.
        step: between the values, where they are the number.
    """
    if len(of) == 1 or any(each.value is None for each in of):
        return of[0] if len(of) == 1 else Estimate()
    ends = [each.ends for each in of]
    half = [step / math.sqrt(12) if both is None else (both[1] - both[0]) / 2 / Z for both in ends]
    mixture = TMixture(np.array([each.value for each in of]), np.array(half), np.array(weights), _LONG)
    value, lo, hi = mixture.quantiles((0.5, *TAILS)).tolist()
    return Estimate(value, lo, hi) if step or None not in ends else Estimate(value)


def mapped(function: Callable[[float], float], number: Estimate) -> Estimate:
    """An increasing function of a number and of its ends; None where it has no value."""
    known = (number.value, number.lo, number.hi)
    return Estimate(
        *(None if each is None or (function is math.log and each <= 0) else function(each) for each in known)
    )


def _spread(of: Estimate) -> tuple[float, float] | None:
    """A number and the standard deviation that its interval stands for; None without one."""
    return None if of.value is None or of.ends is None else (of.value, max((of.ends[1] - of.ends[0]) / 2 / Z, _TINY))


def weights_of(squares: Sequence[float], dof: int, chosen: Sequence[FixedValues]) -> list[float]:
    """Prior * SSE^(-dof / 2) of each; of laws that are exact all that counts is that they are."""
    ln_V = np.log([each.prior for each in chosen]) - dof / 2 * np.log(np.maximum(squares, _TINY**2))
    weight_V = np.exp(ln_V - ln_V.max())
    return [float(each) for each in weight_V / weight_V.sum()]
