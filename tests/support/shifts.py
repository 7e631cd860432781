"""Drawn pairs of a baseline and a variant in size and tokens, with the true multiplier at any point."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from rbpx.laws.names import Axis
from rbpx.laws.surface.runs import Runs
from tests.support.surfaces import TRUE, ratios

Floats = NDArray[np.float64]
Law = Callable[[Floats, Floats], Floats]
SCATTER: Final = 0.003
SHARE: Final = {Axis.S: (1.0, 0.0), Axis.D: (0.0, 1.0), Axis.C: (0.5, 0.5)}  # of ln m that S and D get
WORLDS: Final = ("constant", "growing", "own", "kaplan", "bent", "bent apart")


@dataclass(frozen=True)
class Pair:
    """A drawn pair.

    Attributes:
        base: runs of the baseline.
        variant: of the variant.
        axis: of the multiplier.
        laws: the true losses of both.
    """

    base: Runs
    variant: Runs
    axis: Axis
    laws: tuple[Law, Law]

    def true_ln_m(self, S: float, D: float) -> float:
        """By a search along the baseline for the loss of the variant."""
        a, b = SHARE[self.axis]
        base, variant = self.laws
        aim = variant(np.array(S), np.array(D))
        return float(brentq(lambda u: base(S * np.exp(a * u), D * np.exp(b * u)) - aim, -12, 12, xtol=1e-12))


def draw_pair(world: str, axis: Axis, seed: int, scatter: float = SCATTER) -> Pair:
    """Draw a pair.

    Args:
        world: one of `WORLDS`. In `constant` and `growing` the variant is a shift of Chinchilla's form by .5 to 2.5, in
            `growing` with a slope of -.08 to .08 in ln C; in `kaplan` of Kaplan's form, in `bent` of one whose exponent
            of S falls by a third beyond a size that is drawn. In `own` the exponents of the variant differ by up to .02
            from the baseline's. In `bent apart` the variant has half the sizes and tokens, the smaller ones.
        axis: of the shift.
        seed: of the draw.
        scatter: of ln y.
    """
    rng = np.random.default_rng((WORLDS.index(world), list(Axis).index(axis), seed))
    S, D = ratios(8, 5)
    ln_m = rng.uniform(math.log(0.5), math.log(2.5))
    slope = rng.uniform(-0.08, 0.08) if world == "growing" else 0.0
    knee = math.log(1e7) + rng.uniform(0.5, 1.0) * math.log(10**2.5)
    a, b = SHARE[axis]

    def base(S: Floats, D: Floats) -> Floats:
        ln_S, ln_D = np.log(S), np.log(D)
        if world == "kaplan":
            return np.asarray((np.exp(0.076 / 0.095 * (32.0 - ln_S)) + np.exp(31.3 - ln_D)) ** 0.095)
        if world.startswith("bent"):
            ln_S = ln_S - np.logaddexp(0.0, (ln_S - knee) / 0.5) * 0.5 / 3
        return np.asarray(
            TRUE["E"] + TRUE["A"] * np.exp(-TRUE["alpha"] * ln_S) + TRUE["B"] * np.exp(-TRUE["beta"] * ln_D)
        )

    apart = rng.uniform(-0.02, 0.02, 2) if world == "own" else np.zeros(2)
    middle = float(np.log(S).mean()), float(np.log(D).mean())

    def variant(S: Floats, D: Floats) -> Floats:
        moved = ln_m + slope * (np.log(S * D) - sum(middle))
        ln_S, ln_D = np.log(S) + a * moved, np.log(D) + b * moved
        if world == "own":
            ln_S = ln_S + apart[0] / TRUE["alpha"] * (np.log(S) - middle[0])
            ln_D = ln_D + apart[1] / TRUE["beta"] * (np.log(D) - middle[1])
        return base(np.exp(ln_S), np.exp(ln_D))

    few = (S <= np.median(S)) & (D <= np.quantile(D, 0.7)) if world == "bent apart" else np.full(len(S), True)
    y = [
        law(S[of], D[of]) * np.exp(scatter * rng.standard_normal(of.sum()))
        for law, of in ((base, few | True), (variant, few))
    ]
    return Pair(Runs.of(S, D, y[0]), Runs.of(S[few], D[few], y[1]), axis, (base, variant))
