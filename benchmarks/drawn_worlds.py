"""Ladders drawn where a law along one axis holds, and where it fails, with one more model ten times the largest.

ln S is 0 at the smallest size. Where it holds, the law is one of the forms of the prediction; where it fails, the
points or the model that is predicted depart from a power law, with exponent ALPHA where nothing else is said.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]
Law = Callable[[Floats, np.random.Generator], Floats]

ALPHA: Final = 0.12
DECADE: Final = math.log(10)
RATIOS: Final = {0.25: 1, 0.35: 2, 0.5: 4, 0.65: 4, 0.8: 4, 1.25: 4, 1.5: 3, 1.8: 2, 2.2: 1}  # prior of a bend
LEVEL: Final = 0.05


@dataclass(frozen=True)
class World:
    """Where ladders are drawn from.

    Attributes:
        name: of the world.
        ln_law: ln y at all sizes, the new one last, but for the scatter; some of it may be drawn.
        decades: decades that the sizes span.
        reach: decades from the largest to the new one.
        grows: exponent of S by which the sd of the scatter grows.
        tokens: training tokens a parameter of the two largest sizes over those of all others.
    """

    name: str
    ln_law: Law
    decades: float = 2.0
    reach: float = 1.0
    grows: float = 0.0
    tokens: tuple[float, float] = (1.0, 1.0)

    def ln_S(self, n: int) -> Floats:
        """All sizes, the new one last."""
        x_N = np.linspace(0, self.decades * DECADE, n)
        return np.append(x_N, x_N[-1] + self.reach * DECADE)

    def draw(self, n: int, scatter: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw one ladder.

        Returns:
            S, and y at each, of n models and of the new one.
        """
        x_N = self.ln_S(n)
        ln_y_N = self.ln_law(x_N, rng) + scatter * np.exp(self.grows * x_N) * rng.standard_normal(n + 1)
        return 1e6 * np.exp(x_N), 4 * np.exp(ln_y_N)

    def tokens_of(self, n: int) -> list[float]:
        """Training tokens of the n models."""
        return [20 * S * more for S, more in zip(np.exp(self.ln_S(n)), [1.0] * (n - 2) + [*self.tokens], strict=False)]

    def oracle(self, n: int, scatter: float, rng: np.random.Generator, draws: int = 400) -> float:
        """The power, at 5 %, of who knows what departs and the scatter, but neither level nor exponent of the law.

        The likelihood ratio of what the points are beside a power law, and of a power law.
        """
        x_N = self.ln_S(n)[:n]
        rest_QN = np.linalg.svd(np.column_stack([np.ones(n), x_N]))[0][:, 2:].T
        if not self.grows:
            law_BN = np.array([self.ln_law(self.ln_S(n), rng)[:n] for _ in range(draws)])
            apart_B = np.linalg.norm(law_BN @ rest_QN.T, axis=1) / scatter
            return float(ndtr(apart_B - ndtri(1 - LEVEL)).mean())
        own_QQ = rest_QN @ np.diag(np.exp(2 * self.grows * x_N)) @ rest_QN.T
        more_QQ = np.eye(n - 2) - np.linalg.inv(own_QQ)
        null_BQ, own_BQ = (rng.standard_normal((10 * draws, n - 2)) @ R for R in (np.eye(n - 2), _root(own_QQ)))
        null_B, own_B = (np.einsum("bq,qr,br->b", w_BQ, more_QQ, w_BQ) for w_BQ in (null_BQ, own_BQ))
        return float((own_B > np.quantile(null_B, 1 - LEVEL)).mean())


def _root(R_QQ: Floats) -> Floats:
    return np.asarray(np.linalg.cholesky(R_QQ).T)


def _soft(x_N: Floats, at: float, width: float = 0.5) -> Floats:
    """0 below a size and x - at above it, rounded."""
    return np.asarray(width * np.logaddexp(0.0, (x_N - at) / width))


def _offset(drops: float) -> Law:
    def law(x_N: Floats, _: np.random.Generator) -> Floats:
        power_N = np.exp(-ALPHA * x_N)
        return np.asarray(np.log(drops * (power_N[0] - power_N[-2]) + power_N))

    return law


def _bend(x_N: Floats, rng: np.random.Generator) -> Floats:
    chances = np.array([*RATIOS.values()], np.float64)
    ratio, at = rng.choice([*RATIOS], p=chances / chances.sum()), rng.choice(np.quantile(x_N[:-1], [0.25, 0.5, 0.75]))
    return np.asarray(-ALPHA * (x_N + (ratio - 1) * _soft(x_N, at)))


def _off(*last: float) -> Law:
    """The largest sizes lie above the law by these shares."""

    def law(x_N: Floats, _: np.random.Generator) -> Floats:
        ln_y_N = -ALPHA * x_N
        ln_y_N[-1 - len(last) : -1] += np.log1p(last)
        return np.asarray(ln_y_N)

    return law


def _power(x_N: Floats, _: np.random.Generator) -> Floats:
    return np.asarray(-ALPHA * x_N)


def _kink(x_N: Floats, _: np.random.Generator) -> Floats:
    return np.asarray(-ALPHA * (x_N - 0.6 * np.maximum(x_N - x_N[-2], 0)))


def _slow_then_fast(x_N: Floats, _: np.random.Generator) -> Floats:
    return np.asarray(-ALPHA * (0.5 * x_N + _soft(x_N, 0.75 * x_N[-2], 0.5 * DECADE)))


def _waves(x_N: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(-ALPHA * x_N + 0.02 * np.sin(2 * math.pi * (x_N / (2 * DECADE) + rng.uniform())))


TRUE: Final = (
    World("power law", _power),
    World("offset of .3 drops", _offset(0.3)),
    World("offset of 1 drop", _offset(1.0)),
    World("bend", _bend),
)
FAILING: Final = (
    World("kink beyond the range", _kink),
    World("last run 5 % off", _off(0.05)),
    World("two largest undertrained", _off(0.01, 0.03), tokens=(0.85, 0.7)),
    World("large sizes noisier", _power, grows=0.5),
    World("L = a - b ln S", lambda x_N, _: np.asarray(np.log(5 - 0.25 * x_N))),
    World("slow then fast", _slow_then_fast),
    World("log-periodic", _waves, decades=3.0),
)
