"""Sigmoids of the losses of single tokens: kinds, the spectrum of times, and slopes rebuilt at points left out.

Shapes: M tokens, T points, D documents, B resamples, G gaps beside left-out points, H bins of times.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.learning.curves import FEWEST, Sigmoids, drawn_smooth, fit_powers, fit_sigmoids
from rbpx.laws.learning.kinds import Kind, kinds
from rbpx.laws.learning.rebuilt import CURVES, LeftOut, explained, left_out, slopes_beside
from rbpx.laws.numeric import Floats
from rbpx.questions.learning.tokens import Tokens

MEASURED: Final = "measured"
DRAWN: Final = "drawn"


@dataclass(frozen=True)
class KindShare:
    """The tokens of one kind.

    Attributes:
        n_tokens: how many there are.
        share: of all tokens.
        first_nats: their mean loss at the first point; None without any.
        last_nats: at the last.
        of_fall: their share of the fall of the mean loss from the first to the last point; those of all kinds sum to 1.
    """

    kind: Kind
    n_tokens: int
    share: float
    first_nats: float | None
    last_nats: float | None
    of_fall: Estimate


@dataclass(frozen=True)
class Bin:
    """Tokens whose time lies between two points, before the first (lo is None) or after the last (hi is None).

    Attributes:
        lo: x in its own unit, D and not ln D.
        hi: the same.
        n_tokens: tokens with a sigmoid.
        nats: what they fall in sum within the range of the points, a token of the text.
        width: the median of their widths, weighted by their falls, in ln x; None without a fall.
        sharp: share of these falls with the least width that there is, hidden in one gap.
    """

    lo: float | None
    hi: float | None
    n_tokens: int
    nats: Estimate
    width: float | None
    sharp: float | None


@dataclass(frozen=True)
class Gap:
    """The slope of the mean loss, nats per unit of ln x, between a left-out point and a neighbour.

    Attributes:
        lo: x of the one that is less.
        hi: x of the other.
        out: x of the one that is left out.
        measured: the slope there.
        rebuilt: by `CURVES`.
        error: of the sigmoids, rebuilt minus measured.
    """

    lo: float
    hi: float
    out: float
    measured: Estimate
    rebuilt: dict[str, float]
    error: Estimate


@dataclass(frozen=True)
class World:
    """How well single tokens rebuild the slope and the losses at left-out points, measured or in a drawn world.

    Attributes:
        name: measured, or drawn: every token falls as its own smooth power law.
        r2: of the slopes beside left-out points, by curve.
        in_fit_r2: the same of sigmoids fitted to all points: near 1 by construction.
        mse: mean squared error of single losses at left-out points, by curve, nats^2.
        beats: share of tokens whose sigmoid is nearer at their left-out points than their power law.
    """

    name: str
    r2: dict[str, Estimate]
    in_fit_r2: float
    mse: dict[str, Estimate]
    beats: Estimate


@dataclass(frozen=True, eq=False)
class Losses:
    """What sigmoids say of the tokens of one group."""

    sigmoids: Sigmoids
    kind_M: NDArray[np.int8]
    kinds: tuple[KindShare, ...]
    bins: tuple[Bin, ...]
    gaps: tuple[Gap, ...]
    worlds: tuple[World, ...]


def losses_of(tokens: Tokens, weights_BD: Floats, n_resampled: int, seed: int) -> Losses | None:
    """Fit all tokens; None where there are fewer points than four numbers need."""
    if len(tokens.x_T) < FEWEST or not len(tokens.doc_M):
        return None
    over = Over(tokens, weights_BD, n_resampled)
    sigmoids, powers = fit_sigmoids(tokens.x_T, tokens.nats_MT), fit_powers(tokens.x_T, tokens.nats_MT)
    kind_M = kinds(sigmoids, tokens.nats_MT)
    gaps, measured = _rebuilt(over, MEASURED, tokens.nats_MT, sigmoids)
    smooth_MT = drawn_smooth(powers, tokens.nats_MT, seed).astype(np.float32)
    _, drawn = _rebuilt(over, DRAWN, smooth_MT, fit_sigmoids(tokens.x_T, smooth_MT))
    of_kinds, bins = _kinds(over, kind_M), _spectrum(over, sigmoids)
    return Losses(sigmoids, kind_M, tuple(of_kinds), tuple(bins), tuple(gaps), (measured, drawn))


@dataclass(frozen=True, eq=False)
class Over:
    """Means over the tokens of a text and under resamples of its documents."""

    tokens: Tokens
    weights_BD: Floats
    n_resampled: int

    def means(self, values_MX: NDArray[np.floating]) -> tuple[Floats, Floats]:
        """Means [X], and of each resample [B, X]."""
        sums_DX, n_D = self.tokens.by_document(values_MX), self.tokens.counts()
        with np.errstate(divide="ignore", invalid="ignore"):
            return sums_DX.sum(axis=0) / n_D.sum(), (self.weights_BD @ sums_DX) / (self.weights_BD @ n_D)[:, None]

    def estimate(self, value: float, of_B: Floats, recipe: Recipe = Recipe.normal) -> Estimate:
        """A number with its interval over documents."""
        return estimate(value, of_B, self.n_resampled, recipe)

    def mean(self, value_M: NDArray[np.floating]) -> Estimate:
        """A mean over tokens."""
        value_X, of_BX = self.means(value_M[:, None])
        return self.estimate(float(value_X[0]), of_BX[:, 0], Recipe.uncentred)

    def shares(self, values_MX: NDArray[np.floating]) -> list[Estimate]:
        """The share that each column has in the sum of all."""
        value_X, of_BX = self.means(values_MX)
        with np.errstate(divide="ignore", invalid="ignore"):
            share_X, share_BX = value_X / value_X.sum(), of_BX / of_BX.sum(axis=1, keepdims=True)
        return [self.estimate(float(share_X[at]), share_BX[:, at], Recipe.uncentred) for at in range(len(share_X))]


def _kinds(over: Over, kind_M: NDArray[np.int8]) -> list[KindShare]:
    nats_MT = over.tokens.nats_MT
    is_MK = kind_M[:, None] == np.array([*Kind])
    fall_M = nats_MT[:, 0] - nats_MT[:, -1]
    shares = over.shares(is_MK * fall_M[:, None])
    found = []
    for kind, is_M, of_fall in zip(Kind, is_MK.T, shares, strict=True):
        first, last = (float(nats_MT[is_M, at].mean()) if is_M.any() else None for at in (0, -1))
        found.append(KindShare(kind, int(is_M.sum()), float(is_M.mean()), first, last, of_fall))
    return found


def _spectrum(over: Over, sigmoids: Sigmoids) -> list[Bin]:
    x_T, time_M, width_M = over.tokens.x_T, sigmoids.time_M, sigmoids.width_M
    fall_M2 = sigmoids.at(x_T[[0, -1]])
    fall_M = fall_M2[:, 0] - fall_M2[:, 1]
    bin_M = np.searchsorted(x_T, time_M)
    is_MH = bin_M[:, None] == np.arange(len(x_T) + 1)
    nats_H, nats_BH = over.means(is_MH * fall_M[:, None])
    edges: Sequence[float | None] = [None, *np.exp(x_T).tolist(), None]
    found = []
    for at in range(len(x_T) + 1):
        is_M = is_MH[:, at] & (fall_M > 0)
        weight, sharp = fall_M[is_M], sigmoids.is_sharpest_M[is_M]
        total = float(weight.sum())
        width = _weighted_median(width_M[is_M], weight) if total > 0 else None
        nats = over.estimate(float(nats_H[at]), nats_BH[:, at], Recipe.uncentred)
        share = float(weight[sharp].sum()) / total if total > 0 else None
        found.append(Bin(edges[at], edges[at + 1], int(is_MH[:, at].sum()), nats, width, share))
    return found


def _weighted_median(value_M: Floats, weight_M: Floats) -> float:
    order = np.argsort(value_M, kind="stable")
    upto_M = np.cumsum(weight_M[order])
    return float(value_M[order][np.searchsorted(upto_M, upto_M[-1] / 2)])


def _rebuilt(over: Over, name: str, y_MT: NDArray[np.float32], sigmoids: Sigmoids) -> tuple[list[Gap], World]:
    x_T, J = over.tokens.x_T, len(over.tokens.x_T) - 2
    out = left_out(x_T, y_MT)
    three = np.arange(J)[:, None] + np.arange(3)
    measured_MX = y_MT[:, three].reshape(len(y_MT), -1)
    both = [_slopes(over, measured_MX), *(_slopes(over, each.reshape(len(y_MT), -1)) for each in out.around_CMJ3)]
    (measured_G, measured_BG), *by_curve = both
    in_fit_G, _ = _slopes(over, sigmoids.at(x_T)[:, three].reshape(len(y_MT), -1))
    gaps = []
    x = np.exp(x_T)
    for at in range(2 * J):
        j, after = divmod(at, 2)
        lo, hi, slope = x[j + after], x[j + after + 1], measured_G[at]
        error_B = by_curve[0][1][:, at] - measured_BG[:, at]
        error = over.estimate(float(by_curve[0][0][at] - slope), error_B, Recipe.uncentred)
        rebuilt = {curve: float(found[0][at]) for curve, found in zip(CURVES, by_curve, strict=True)}
        of_gap = over.estimate(float(slope), measured_BG[:, at], Recipe.uncentred)
        gaps.append(Gap(float(lo), float(hi), float(x[j + 1]), of_gap, rebuilt, error))
    r2 = {}
    for curve, (rebuilt_G, rebuilt_BG) in zip(CURVES, by_curve, strict=True):
        value = float(explained(measured_G[None], rebuilt_G[None])[0])
        r2[curve] = over.estimate(value, explained(measured_BG, rebuilt_BG), Recipe.percentile)
    in_fit = float(explained(measured_G[None], in_fit_G[None])[0])
    squares = {curve: _squares(out, at, y_MT) for at, curve in enumerate(CURVES)}
    mse = {curve: over.mean(each_M / J) for curve, each_M in squares.items()}
    beats = over.mean((squares["sigmoid"] < squares["power"]) + 0.5 * (squares["sigmoid"] == squares["power"]))
    return gaps, World(name, r2, in_fit, mse, beats)


def _slopes(over: Over, levels_MX: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """The slopes of the mean losses beside each left-out point, [G], and under resamples, [B, G]."""
    level_X, level_BX = over.means(levels_MX)
    shape = (-1, len(level_X) // 3, 3)
    x_T = over.tokens.x_T
    return slopes_beside(x_T, level_X.reshape(shape))[0], slopes_beside(x_T, level_BX.reshape(shape))


def _squares(out: LeftOut, curve: int, y_MT: NDArray[np.float32]) -> Floats:
    """The sum of squared errors of each token at its left-out points, [M]."""
    error_MJ = (out.around_CMJ3[curve, :, :, 1] - y_MT[:, out.at_J]).astype(np.float64)
    return np.asarray((error_MJ**2).sum(axis=1))
