"""An equation for y(S, D): its constants, ln y and its derivatives at many sets of them, and where a search starts.

A search moves theta, numbers of the order of 1: constants at the reference point of the coordinates with y in units of
its geometric mean. `constants` turns them into what a source prints. For given exponents y is linear in the constants,
so the best of them are found without any search (`non_negative`). Shapes: B sets of constants or of exponents, N
points, P numbers, T terms.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final

import numpy as np

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.surface.runs import Coordinates

STEEPEST: Final = 4.0  # of an exponent

_STEP: Final = 1e-6  # of differences of derivatives; their error only slows a search


@dataclass(frozen=True)
class Form(ABC):
    """An equation y(S, D).

    Attributes:
        y_ref: the unit of y in which theta is counted.
    """

    y_ref: float

    name: ClassVar[str]
    equation: ClassVar[str]
    source: ClassVar[str]
    names: ClassVar[tuple[str, ...]]  # of its constants, as sources print them
    exponents: ClassVar[tuple[str, ...]]  # those of S and D
    logarithmic: ClassVar[tuple[str, ...]]  # those whose logarithm has a symmetric interval
    saturating: ClassVar[tuple[str, ...]] = ()  # those of which 1 / (1 + R) has one
    lower_P: ClassVar[Floats]  # the least value of each number of theta
    upper_P: ClassVar[Floats]  # the greatest; an exponent beyond `STEEPEST` is a step between two sizes, no power law

    @abstractmethod
    def evaluate(self, x: Coordinates, theta_BP: Floats) -> tuple[Floats, Floats]:
        """Ln y at each point, [B, N], and its derivatives by theta, [B, P, N]; y in units of y_ref."""

    @abstractmethod
    def starts(self, x: Coordinates, ln_y_N: Floats) -> Floats:
        """Where searches start, [B, P]; where there are hundreds, the most promising first."""

    @abstractmethod
    def constants(self, x: Coordinates, theta_BP: Floats) -> dict[str, Floats]:
        """Each constant in the units of its source, [B]; not finite where it has no value."""

    def bounded(self, theta_P: Floats) -> tuple[str, ...]:
        """The constants that lie at their bounds, by name."""
        at_P = (theta_P <= self.lower_P) | (theta_P >= self.upper_P)
        return tuple(name for name, at in zip(self.names, at_P, strict=True) if at)

    def unidentified(self, x: Coordinates, theta_P: Floats) -> tuple[str, ...]:
        """The constants on which no point depends, by name."""
        return ()

    def bend(self, x: Coordinates, theta_BP: Floats, J_BPN: Floats, pull_BN: Floats) -> Floats:
        """The sum over points of pull times the second derivatives of ln y, [B, P, P], by differences of J."""
        P = theta_BP.shape[1]
        bend_BPP = np.empty((len(theta_BP), P, P))
        g_BP = (J_BPN @ pull_BN[..., None])[..., 0]
        for p in range(P):
            step_BP = np.zeros_like(theta_BP)
            step_BP[:, p] = np.where(theta_BP[:, p] + _STEP > self.upper_P[p], -_STEP, _STEP)
            moved_BP = (self.evaluate(x, theta_BP + step_BP)[1] @ pull_BN[..., None])[..., 0]
            bend_BPP[:, p] = (moved_BP - g_BP) / step_BP[:, p, None]
        return (bend_BPP + bend_BPP.swapaxes(1, 2)) / 2


def non_negative(terms_BTN: Floats, y_N: Floats) -> Floats:
    """The coefficients >= 0 [B, T] of the sum of terms that is closest to y, each point relative to its y.

    Every choice of terms that may count is solved; of those without a negative coefficient the closest is taken.
    """
    B, T, N = terms_BTN.shape
    relative_BTN = terms_BTN / y_N
    gram_BTT = relative_BTN @ relative_BTN.swapaxes(1, 2)
    sum_BT = relative_BTN.sum(axis=2)
    best_BT, best_B = np.zeros((B, T)), np.full(B, float(N))
    for n_terms in range(1, T + 1):
        for chosen in combinations(range(T), n_terms):
            gram = gram_BTT[:, chosen][:, :, chosen]
            usable_B = np.linalg.cond(gram) < 1e13
            coefficient = np.zeros((B, n_terms))
            coefficient[usable_B] = np.linalg.solve(gram[usable_B], sum_BT[usable_B][:, chosen, None])[..., 0]
            squares_B = N - (coefficient * sum_BT[:, chosen]).sum(axis=1)
            better_B = usable_B & (coefficient >= 0).all(axis=1) & (squares_B < best_B)
            best_B = np.where(better_B, squares_B, best_B)
            filled = np.zeros((B, T))
            filled[:, chosen] = coefficient
            best_BT = np.where(better_B[:, None], filled, best_BT)
    return best_BT
