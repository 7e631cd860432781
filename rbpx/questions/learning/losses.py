"""Sigmoids of the losses of single tokens: kinds, the spectrum of times, and slopes rebuilt at points left out.

Shapes: M tokens, T points, D documents, B resamples, G gaps beside left-out points, H bins of times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import Estimate, Recipe, by_name, estimate, flat
from rbpx.laws.learning.curves import FEWEST, Sigmoids, drawn_smooth, fit_powers, fit_sigmoids
from rbpx.laws.learning.kinds import Kind, kinds
from rbpx.laws.learning.rebuilt import CURVES, LeftOut, explained, left_out, slopes_beside
from rbpx.laws.numeric import Floats
from rbpx.questions.learning.tokens import Tokens
from rbpx.store.store import Record


def losses(over: "Over", seed: int) -> list[Record]:
    """What sigmoids of all tokens say: kinds, the spectrum, slopes, worlds; none with fewer points than they need."""
    tokens = over.tokens
    if len(tokens.x_T) < FEWEST:
        return []
    sigmoids, powers = fit_sigmoids(tokens.x_T, tokens.nats_MT), fit_powers(tokens.x_T, tokens.nats_MT)
    smooth_MT = drawn_smooth(powers, tokens.nats_MT, seed).astype(np.float32)
    gaps, measured = _rebuilt(over, "measured", tokens.nats_MT, sigmoids)
    _, drawn = _rebuilt(over, "drawn", smooth_MT, fit_sigmoids(tokens.x_T, smooth_MT))
    of_kinds = _kinds(over, kinds(sigmoids, tokens.nats_MT))
    return [*of_kinds, *_spectrum(over, sigmoids), *gaps, measured, drawn]


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


def _kinds(over: Over, kind_M: NDArray[np.int8]) -> Iterator[Record]:
    """The tokens of each kind: their number and share, mean losses at the first and the last point (None without any).

    of_fall is their share of the fall of the mean loss from the first to the last point; those of all kinds sum to 1.
    """
    nats_MT = over.tokens.nats_MT
    is_MK = kind_M[:, None] == np.array([*Kind])
    fall_M = nats_MT[:, 0] - nats_MT[:, -1]
    shares = over.shares(is_MK * fall_M[:, None])
    for kind, is_M, of_fall in zip(Kind, is_MK.T, shares, strict=True):
        first, last = (float(nats_MT[is_M, at].mean()) if is_M.any() else None for at in (0, -1))
        row = {"kind": "kind", "name": kind.name, "n_tokens": int(is_M.sum()), "share": float(is_M.mean())}
        yield row | {"first_nats": first, "last_nats": last, **by_name(of_fall=of_fall)}


def _spectrum(over: Over, sigmoids: Sigmoids) -> Iterator[Record]:
    """The tokens whose time lies between two points, before the first (lo is None), or after the last (hi is None).

    lo, hi: x in its own unit, D and not ln D.
    nats: what their sigmoids fall in sum within the range of the points, a token of the text.
    width: the median of their widths, weighted by their falls, in ln x; None without a fall.
    sharp: share of these falls with the least width that there is, hidden in one gap.
    """
    x_T = over.tokens.x_T
    fall_M2 = sigmoids.at(x_T[[0, -1]])
    fall_M = fall_M2[:, 0] - fall_M2[:, 1]
    is_MH = np.searchsorted(x_T, sigmoids.time_M)[:, None] == np.arange(len(x_T) + 1)
    nats_H, nats_BH = over.means(is_MH * fall_M[:, None])
    edges: Sequence[float | None] = [None, *np.exp(x_T).tolist(), None]
    for at, (lo, hi) in enumerate(pairwise(edges)):
        is_M = is_MH[:, at] & (fall_M > 0)
        weight_M, row = fall_M[is_M], {"kind": "bin", "lo": lo, "hi": hi, "n_tokens": int(is_MH[:, at].sum())}
        row |= by_name(nats=over.estimate(float(nats_H[at]), nats_BH[:, at], Recipe.uncentred))
        total = float(weight_M.sum())
        row["width"] = _weighted_median(sigmoids.width_M[is_M], weight_M) if total > 0 else None
        yield row | {"sharp": float(weight_M[sigmoids.is_sharpest_M[is_M]].sum()) / total if total > 0 else None}


def _weighted_median(value_M: Floats, weight_M: Floats) -> float:
    order = np.argsort(value_M, kind="stable")
    upto_M = np.cumsum(weight_M[order])
    return float(value_M[order][np.searchsorted(upto_M, upto_M[-1] / 2)])


def _rebuilt(over: Over, name: str, y_MT: NDArray[np.float32], sigmoids: Sigmoids) -> tuple[list[Record], Record]:
    """How well single tokens rebuild the slope and the losses at points left out, measured or drawn as smooth powers.

    Of each gap beside a point: lo and hi, x of both; out, x of the one that is left out; measured, the slope of the
    mean loss there, nats per unit of ln x; rebuilt, by `CURVES`; error, of the sigmoids, rebuilt minus measured.

    Of all: r2 of these slopes by curve; in_fit_r2, the same of sigmoids fitted to all points, near 1 by construction;
    mse by curve, of single losses at points left out, nats^2; beats, share of tokens whose sigmoid is nearer there than
    their power law.
    """
    x_T, J = over.tokens.x_T, len(over.tokens.x_T) - 2
    out = left_out(x_T, y_MT)
    three = np.arange(J)[:, None] + np.arange(3)
    measured_G, measured_BG = _slopes(over, y_MT[:, three])
    rebuilt = {curve: _slopes(over, around) for curve, around in zip(CURVES, out.around_CMJ3, strict=True)}
    in_fit_G, _ = _slopes(over, sigmoids.at(x_T)[:, three])
    gaps, x = [], np.exp(x_T)
    for at in range(2 * J):
        j, after = divmod(at, 2)
        slope, (of_sigmoid_G, of_sigmoid_BG) = measured_G[at], rebuilt["sigmoid"]
        measured = over.estimate(float(slope), measured_BG[:, at], Recipe.uncentred)
        error_B = of_sigmoid_BG[:, at] - measured_BG[:, at]
        error = over.estimate(float(of_sigmoid_G[at] - slope), error_B, Recipe.uncentred)
        row = {"kind": "slope", "lo": float(x[j + after]), "hi": float(x[j + after + 1]), "out": float(x[j + 1])}
        by_curve = {f"rebuilt_{curve}": float(of_G[at]) for curve, (of_G, _) in rebuilt.items()}
        gaps.append(row | by_name(measured=measured) | by_curve | by_name(error=error))
    world: dict[str, Any] = {"kind": "world", "name": name}
    world["in_fit_r2"] = float(explained(measured_G[None], in_fit_G[None])[0])
    for curve, (of_G, of_BG) in rebuilt.items():
        r2 = float(explained(measured_G[None], of_G[None])[0])
        world[f"r2_{curve}"] = over.estimate(r2, explained(measured_BG, of_BG), Recipe.percentile)
    squares = {curve: _squares(out, at, y_MT) for at, curve in enumerate(CURVES)}
    world |= {f"mse_{curve}": over.mean(each_M / J) for curve, each_M in squares.items()}
    beats_M = (squares["sigmoid"] < squares["power"]) + 0.5 * (squares["sigmoid"] == squares["power"])
    return gaps, flat(world | {"beats": over.mean(beats_M)})


def _slopes(over: Over, levels_MJ3: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """The slopes of the mean losses beside each left-out point, [G], and under resamples, [B, G]."""
    level_X, level_BX = over.means(levels_MJ3.reshape(len(levels_MJ3), -1))
    shape = (-1, len(level_X) // 3, 3)
    x_T = over.tokens.x_T
    return slopes_beside(x_T, level_X.reshape(shape))[0], slopes_beside(x_T, level_BX.reshape(shape))


def _squares(out: LeftOut, curve: int, y_MT: NDArray[np.float32]) -> Floats:
    """The sum of squared errors of each token at its left-out points, [M]."""
    error_MJ = (out.around_CMJ3[curve, :, :, 1] - y_MT[:, out.at_J]).astype(np.float64)
    return np.asarray((error_MJ**2).sum(axis=1))
