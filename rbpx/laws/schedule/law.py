"""Fits the loss of runs under any schedule of the learning rate: L = E + A x^-alpha - C a.

x is progress, the sum over steps of (rate / highest rate)^0.6 in 10,000 steps. a is annealing, the sum of the falls of
rate / highest rate, each fading in with a time constant of 200 steps. With the power 1 this is the law of Tissue et al.
2024, arXiv 2408.11029; the seven constants of Luo et al. 2025, arXiv 2503.12811, fit the public runs no better.

Shapes: T steps of a plan, N states of a run, B bins of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from rbpx.laws.arguments import real
from rbpx.laws.intervals.estimate import LEVEL, Estimate, document_t
from rbpx.laws.numeric import Floats
from rbpx.status import Doubted, Status

POWER: Final = 0.6  # of a rate in progress
ANNEALED: Final = 0.05  # fall of the rate, as a share of the highest, that tells what annealing gives
SD: Final = 2.0  # standard deviations in half of an interval
_FADE: Final = 200  # steps
_UNIT: Final = 1e4  # steps
_RISE: Final = 0.01  # of the highest rate; less is rounding
_WARM_UPS, _SHARE = 1.5, 0.1  # of the warm-up and of the plan, whose states are left out
_BINS: Final = 40
_SCATTER, _INDEPENDENT = 0.003, 10  # nats, and how many independent states the states of a run are worth
_TYPICAL = np.array([0.0, np.log(0.1), 0.5, np.log(0.03)])  # A and C as shares of the loss
_UNSURE = np.array([10.0, 0.7, 0.15, 0.7])  # standard deviations of what is known of any run


@dataclass(frozen=True, eq=False)
class Training:
    """A run: its learning rates of steps 1 to T, the end of its plan, and the losses of its states, nats."""

    rate_T: Floats
    step_N: Floats
    loss_N: Floats
    S: float | None = None

    @classmethod
    def of(cls, rates: ArrayLike, losses: ArrayLike = ()) -> "Training":
        """A run by the rates of all steps and the losses of the first ones, NaN where unknown.

        Raises:
            ValueError: rates are no list of numbers from 0 up, one of them above 0, or a step has a loss without one.
        """
        rate_T, loss_T = real("rates", rates), real("losses", losses)
        wrong_T = rate_T[~((rate_T >= 0) & np.isfinite(rate_T))]
        if rate_T.ndim != 1 or len(wrong_T) or not np.any(rate_T):
            got = wrong_T[0] if len(wrong_T) else f"{rate_T.tolist()}"[:40]
            raise ValueError(f"rates of a run are numbers from 0 up, above 0 at a step; got {got}")
        if loss_T.ndim != 1 or len(loss_T) > len(rate_T):
            each = f"losses {list(loss_T.shape)} but rates {list(rate_T.shape)}"
            raise ValueError(f"a run has {each}; give a rate for each step")
        known_N = np.flatnonzero(np.isfinite(loss_T))
        return cls(rate_T, np.asarray(known_N + 1, np.float64), loss_T[known_N])

    @cached_property
    def peak(self) -> float:
        """The highest rate."""
        return float(self.rate_T.max())

    @cached_property
    def warm_up(self) -> int:
        """Steps before the highest rate."""
        return int(np.argmax(self.rate_T >= self.peak * (1 - 1e-6)))

    @property
    def begin(self) -> float:
        """The step after which states count: the warm-up and half of it, at least a tenth of the plan."""
        return max(_WARM_UPS * self.warm_up, _SHARE * len(self.rate_T))

    @property
    def rises(self) -> bool:
        """Whether the rate rises after the warm-up, as it does at a warm restart."""
        rate_T = self.rate_T[self.warm_up :]
        return bool(np.any(rate_T > np.minimum.accumulate(rate_T) + _RISE * self.peak))

    @property
    def n_states(self) -> int:
        """Number of states that count."""
        return int(np.sum(self.step_N > self.begin))

    @cached_property
    def _own_clocks(self) -> tuple[Floats, Floats]:
        from scipy.signal import lfilter  # imports scipy.stats: a second, which only plans need

        r_T = self.rate_T / self.peak
        fall_T = -np.diff(r_T, prepend=r_T[0])
        fall_T[: self.warm_up + 1] = 0
        return np.cumsum(r_T**POWER) / _UNIT, np.cumsum(
            np.asarray(lfilter([1.0], [1.0, 1 / _FADE - 1], fall_T))
        ) / _FADE

    def clocks(self, peak: float, step: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Progress x and annealing a at steps, or at all; in terms of any highest rate."""
        x_T, a_T = self._own_clocks
        ratio, at = self.peak / peak, slice(None) if step is None else np.asarray(step, int) - 1
        return x_T[at] * ratio**POWER, a_T[at] * ratio

    def until(self, step: float) -> "Training":
        """The run when it was at a step."""
        seen = self.step_N <= step
        return replace(self, step_N=self.step_N[seen], loss_N=self.loss_N[seen])

    def annealed(self) -> float:
        """Annealing by the last state; 0 without any."""
        return float(self.clocks(self.peak, self.step_N[-1])[1]) if len(self.step_N) else 0.0

    def binned(self, peak: float) -> tuple[Floats, Floats, Floats, Floats]:
        """x, a, loss and its scatter, each [B], in bins of equal ln x: a spike moves no median, no part crowds out."""
        counts = self.step_N > self.begin
        (x_N, a_N), loss_N = self.clocks(peak, self.step_N[counts]), self.loss_N[counts]
        if not len(x_N):
            return x_N, a_N, loss_N, loss_N
        ln_N = np.log(x_N)
        bin_N = np.minimum((ln_N - ln_N[0]) / (max(float(np.ptp(ln_N)), 1e-9) / _BINS), _BINS - 1).astype(int)
        each = [bin_N == b for b in np.unique(bin_N)]
        scatter = _SCATTER * np.sqrt(max(1.0, len(each) / _INDEPENDENT))
        x_B, a_B = (np.array([of_N[in_N].mean() for in_N in each]) for of_N in (x_N, a_N))
        return x_B, a_B, np.array([np.median(loss_N[in_N]) for in_N in each]), np.full(len(each), scatter)


@dataclass(frozen=True)
class ConstantsPrior:
    """What is known of the constants beforehand: their mean, [4], and covariance, [4, 4]."""

    mean: Floats
    cov: Floats


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleLaw(Doubted):
    """L = E + A x^-alpha - C a, by maximum a posteriori.

    Attributes:
        at: E, ln A, alpha and ln C with their covariance; None without a law.
        peak: the highest rate, in terms of which x and a are.
        level: of the intervals, at .95 of two standard deviations.
    """

    at: ConstantsPrior | None
    peak: float
    reasons: tuple[Status, ...] = ()
    level: float = LEVEL

    def __repr__(self) -> str:
        known = ", ".join(f"{name} {each}" for name, each in self.constants.items() if each.value is not None)
        return f"L = E + A x^-alpha - C a: {known or 'no numbers'}: {self.status.label}"

    @property
    def constants(self) -> dict[str, Estimate]:
        """E (nats), A, alpha and C, each with its interval."""
        if self.at is None:
            return dict.fromkeys(("E", "A", "alpha", "C"), Estimate())
        sd = SD * document_t(None, 1 - self.level) / document_t(None)
        half = sd * np.sqrt(np.diag(self.at.cov))
        E, A, alpha, C = (
            Estimate(float(mean), float(mean - h), float(mean + h)) for mean, h in zip(self.at.mean, half, strict=True)
        )
        return {"E": E, "A": A.exp(), "alpha": alpha, "C": C.exp()}

    def predict(self, rates: ArrayLike) -> Floats:
        """The loss in nats at each step of a plan of learning rates, from step 1."""
        return self.loss(*Training.of(rates).clocks(self.peak))

    def loss(self, x: Floats, a: Floats) -> Floats:
        """The loss at progress x and annealing a; NaN without a law."""
        return np.full(np.shape(x), np.nan) if self.at is None else _loss(self.at.mean, x, a)

    def sd(self, x: float, a: float) -> float:
        """Its standard deviation there, by the posterior."""
        assert self.at is not None
        j_4 = _slopes(self.at.mean, np.array([x]), np.array([a]))[0]
        return float(np.sqrt(j_4 @ self.at.cov @ j_4))


def fit_trainings(
    runs: Sequence[Training], prior: ConstantsPrior | None = None, peak: float | None = None
) -> ScheduleLaw:
    """Fits one law to the states of runs of one size and recipe, with a prior, wide where None."""
    peak = peak or max(run.peak for run in runs)
    if any(run.rises for run in runs):
        return ScheduleLaw(None, peak, (Status.rate_rises,))
    bins = [bins for run in runs if len((bins := run.binned(peak))[0])]
    if sum(len(x_B) for x_B, *_ in bins) < (len(_TYPICAL) + 2 if prior is None else 1):
        return ScheduleLaw(None, peak, (Status.too_early,))
    x_B, a_B, loss_B, scatter_B = (np.concatenate(each) for each in zip(*bins, strict=True))
    level = float(np.mean([of_run[2][-1] for of_run in bins]))
    if level <= 0:
        return ScheduleLaw(None, peak, (Status.not_positive,))
    known = prior or ConstantsPrior(_TYPICAL + np.log(level) * np.array([0, 1, 0, 1]), np.diag(_UNSURE**2))
    root, start = np.linalg.inv(np.linalg.cholesky(known.cov)), known.mean.copy()
    if known.cov[0, 0] > 1:  # E is free
        start[0] = np.median(loss_B - _loss(np.r_[0.0, start[1:]], x_B, a_B))

    def residuals(at: Floats) -> Floats:
        return np.concatenate([(_loss(at, x_B, a_B) - loss_B) / scatter_B, root @ (at - known.mean)])

    def slopes(at: Floats) -> Floats:
        return np.concatenate([_slopes(at, x_B, a_B) / scatter_B[:, None], root])

    best = np.asarray(least_squares(residuals, start, jac=slopes).x)
    reasons = () if max(map(Training.annealed, runs)) > ANNEALED else (Status.no_decay_seen,)
    cov = np.asarray(np.linalg.inv(slopes(best).T @ slopes(best)), np.float64)
    return ScheduleLaw(ConstantsPrior(best, cov), peak, reasons)


def _loss(at: Floats, x: Floats, a: Floats) -> Floats:
    E, ln_A, alpha, ln_C = at
    return np.asarray(E + np.exp(ln_A) * x**-alpha - np.exp(ln_C) * a)


def _slopes(at: Floats, x_B: Floats, a_B: Floats) -> Floats:
    """Derivatives of the loss by each constant, [B, 4]."""
    falling_B = np.exp(at[1]) * x_B ** -at[2]
    return np.stack([np.ones_like(x_B), falling_B, -falling_B * np.log(x_B), -np.exp(at[3]) * a_B], axis=1)
