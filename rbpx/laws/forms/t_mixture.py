"""Mixtures of Student's t: quantiles, and probabilities below a value.

Shapes: G components; dots are any number of mixtures.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from rbpx.laws.numeric import Floats

_NEGLIGIBLE: Final = 1e-10  # of the greatest weight
_STEPS: Final = 100  # at most; some ten are usual
_CLOSE: Final = 1e-13  # of a quantile
_ROUGH: Final = 1e-5  # of one that starts a search
_LONG: Final = 160  # degrees of freedom; a sum in sines has half as many terms
_MAIN: Final = 1e-2  # of the greatest weight, of components whose quantiles start a search
_NEAR: Final = 1e-3  # in probability


@dataclass(frozen=True, eq=False)
class TMixture:
    """Mixtures whose components have the same degrees of freedom; the last axis are the components.

    Attributes:
        scale: 0 for a point.
        weight: with sum 1.
    """

    centre: Floats
    scale: Floats
    weight: Floats
    dof: int

    def only(self, mask_G: NDArray[np.bool_]) -> "TMixture":
        """The mixture of some of the components."""
        weight = self.weight[..., mask_G]
        weight = weight / weight.sum(axis=-1, keepdims=True)
        return TMixture(self.centre[..., mask_G], self.scale[..., mask_G], weight, self.dof)

    def at(self, place: int) -> "TMixture":
        """One of the mixtures of the first axis."""
        return TMixture(self.centre[place], self.scale[place], self.weight[place], self.dof)

    def widened(self, factor: Floats, about: Floats) -> "TMixture":
        """The mixtures with all distances from `about` multiplied by `factor`, both of shape [...]."""
        factor, about = factor[..., None], about[..., None]
        return TMixture(about + factor * (self.centre - about), factor * self.scale, self.weight, self.dof)

    def below(self, value: ArrayLike) -> Floats:
        """The probability below a value, [...], to an absolute error of 2e-15."""
        away = np.asarray(value, dtype=np.float64)[..., None] - self.centre
        return np.asarray((self.weight * _nearly_below(away, self.scale, self.dof)).sum(axis=-1))

    def quantiles(self, tails: ArrayLike) -> Floats:
        """The quantiles, [..., Q], at Q probabilities."""
        tail_Q = np.asarray(tails, dtype=np.float64)
        at_R: Floats | None = None
        # Few components have most of the weight; their quantiles start the search of all.
        for least, close in ((_MAIN, _ROUGH), (_NEGLIGIBLE, _CLOSE)):
            some = self._heavier(least)
            *before, n_G = np.broadcast_shapes(some.centre.shape, some.scale.shape, some.weight.shape)
            centre, scale, weight = (
                np.broadcast_to(part[..., None, :], (*before, len(tail_Q), n_G)).reshape(-1, n_G)
                for part in (some.centre, some.scale, some.weight)
            )
            tail_R = np.broadcast_to(tail_Q, (*before, len(tail_Q))).reshape(-1)
            at_R = _quantiles(centre, scale, weight, tail_R, self.dof, close, at_R)
        return np.asarray(at_R).reshape(*before, len(tail_Q))

    def _heavier(self, least: float) -> "TMixture":
        heavier = self.weight > least * self.weight.max(axis=-1, keepdims=True)
        return self.only(np.any(heavier, axis=tuple(range(self.weight.ndim - 1))))


def _quantiles(
    centre: Floats, scale: Floats, weight: Floats, tail: Floats, dof: int, close: float, start: Floats | None
) -> Floats:
    """Quantiles of R mixtures [R, G] at one probability each [R], by Newton steps in a bracket."""
    t = stdtrit(dof, tail)
    # Each lies between the extreme quantiles of the components.
    of_component = np.where(weight > 0, centre + scale * t[:, None], np.nan)
    lo, hi = np.nanmin(of_component, axis=-1), np.nanmax(of_component, axis=-1)
    at = np.nansum(weight * of_component, axis=-1) if start is None else np.clip(start, lo, hi)
    step, ends, left = hi - lo, at.copy(), np.arange(len(tail))
    for _ in range(_STEPS):
        away = at[:, None] - centre
        below = (weight * _nearly_below(away, scale, dof)).sum(axis=-1)
        lo, hi = np.where(below < tail, at, lo), np.where(below < tail, hi, at)
        of_t = stdtrit(dof, below)
        with np.errstate(divide="ignore", invalid="ignore"):  # without density the bracket is halved
            density = (weight * _density(away, scale, dof)).sum(axis=-1)
            # Far away use the scale of Student's t, where a single component is linear.
            far = (of_t - t) * _density(of_t, np.ones(()), dof) / density
            newton = at - np.where(np.abs(below - tail) < _NEAR, (below - tail) / density, far)
        # Newton's step if it stays in the bracket and at most half as long as the last, or of rounding; else bisection.
        least = close * np.maximum(np.abs(at), 1)
        shrinks = (lo <= newton) & (newton <= hi) & (np.abs(newton - at) <= np.abs(step) / 2)
        following = np.where(shrinks | (np.abs(newton - at) <= least), newton, (lo + hi) / 2)
        step, at = following - at, following
        ends[left] = at
        moves = np.abs(step) > least
        if not moves.any():
            break
        left, lo, hi, at, step, tail, t = (part[moves] for part in (left, lo, hi, at, step, tail, t))
        centre, scale, weight = (part[moves] for part in (centre, scale, weight))
    return np.asarray(ends)


def _density(away: Floats, scale: Floats, dof: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        density = _height(dof) / scale * (1 + (away / scale) ** 2 / dof) ** (-(dof + 1) / 2)
    return np.asarray(np.where(scale > 0, density, 0.0))


def _height(dof: int) -> float:
    return math.exp(math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2)) / math.sqrt(dof * math.pi)


def _below(away: Floats, scale: Floats, dof: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(stdtr(dof, np.where(away == 0, 0.0, away / scale)))


def _nearly_below(away: Floats, scale: Floats, dof: int) -> Floats:
    return _below(away, scale, dof) if dof > _LONG else _below_in_sines(away, scale, dof)


def _below_in_sines(away: Floats, scale: Floats, dof: int) -> Floats:
    """`_below` with rounding of small values, in a tenth of the time of the incomplete beta function.

    Source: Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    # The tangent of an angle; infinite for a point.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        slope = np.where(away == 0, 0.0, away / (scale * math.sqrt(dof)))
        cosine2 = 1 / (1 + slope**2)
        cosine = np.sqrt(cosine2)
        sine = np.where(cosine2 == 0, np.sign(slope), slope * cosine)
    # Horner's scheme of 1 + cosine2 first / (first + 1) (1 + cosine2 (first + 2) / (first + 3) (...)), in place.
    is_odd = dof % 2 == 1
    terms = np.ones_like(sine) if dof > 1 else np.zeros_like(sine)
    for j in range((dof - 3) // 2 if is_odd else (dof - 2) // 2, 0, -1):
        terms *= cosine2
        terms *= (2 * j) / (2 * j + 1) if is_odd else (2 * j - 1) / (2 * j)
        terms += 1
    if is_odd:
        return np.asarray(0.5 + (np.arctan(slope) + sine * cosine * terms) / math.pi)
    return np.asarray(0.5 + sine * terms / 2)
