"""Sigmoids of the losses of single tokens: kinds, the spectrum of times, and slopes rebuilt at held-out points.

Shapes: M tokens, T points, B replicates, J held-out points, G = 2 J gaps next to them, H bins of times.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import Recipe, by_name, flat
from rbpx.laws.learning.curves import FEWEST, Curves, fit_powers, fit_sigmoids, simulate_power_laws
from rbpx.laws.learning.kinds import Kind, kinds
from rbpx.laws.learning.reconstruction import CURVES, cross_validated_losses, neighbour_slopes, r_squared
from rbpx.laws.numeric import Floats
from rbpx.runs.tokens import Tokens
from rbpx.store.store import Record


def losses(tokens: Tokens, seed: int) -> list[Record]:
    """Returns the rows of kinds, spectrum, slopes and worlds; empty with fewer points than sigmoids need."""
    x_T, nats_MT = tokens.x_T, tokens.nats_MT
    if len(x_T) < FEWEST:
        return []
    sigmoids = fit_sigmoids(x_T, nats_MT)
    smooth_MT = simulate_power_laws(fit_powers(x_T, nats_MT), x_T, seed).astype(np.float32)
    *gaps, measured = _rebuilt(tokens, "measured", nats_MT, sigmoids)
    *_, drawn = _rebuilt(tokens, "drawn", smooth_MT, fit_sigmoids(x_T, smooth_MT))
    return [*_kinds(tokens, sigmoids), *_spectrum(tokens, sigmoids), *gaps, measured, drawn]


def _kinds(tokens: Tokens, sigmoids: Curves) -> Iterator[Record]:
    """Yields the number and share of tokens of each kind, and their mean losses at the first and the last point.

    of_fall is their share of the fall of the mean loss between these points; over all kinds it sums to 1.
    """
    nats_MT = tokens.nats_MT
    is_MK = kinds(sigmoids, tokens.x_T, nats_MT)[:, None] == np.array([*Kind])
    shares = tokens.shares(is_MK * (nats_MT[:, :1] - nats_MT[:, -1:]))
    for kind, is_M, of_fall in zip(Kind, is_MK.T, shares, strict=True):
        first, last = (float(nats_MT[is_M, at].mean()) if is_M.any() else None for at in (0, -1))
        row = {"kind": "kind", "name": kind.name, "n_tokens": int(is_M.sum()), "share": float(is_M.mean())}
        yield row | {"first_nats": first, "last_nats": last, **by_name(of_fall=of_fall)}


def _spectrum(tokens: Tokens, sigmoids: Curves) -> Iterator[Record]:
    """Yields the tokens with a time between two points, before the first (lo None), or after the last (hi None).

    lo, hi: x, not ln x.
    nats: the fall of their sigmoids within the range of the points, per token of the text.
    width: median of their widths in ln x, weighted by falls; None without a fall.
    sharp: share of these falls with the smallest possible width, hidden in one gap.
    """
    x_T = tokens.x_T
    fall_M = -np.diff(sigmoids.at(x_T[[0, -1]]))[:, 0]
    is_MH = np.searchsorted(x_T, sigmoids.time_M)[:, None] == np.arange(len(x_T) + 1)
    nats_H, nats_BH = tokens.means(is_MH * fall_M[:, None])
    edges: Sequence[float | None] = [None, *np.exp(x_T).tolist(), None]
    for at, (lo, hi) in enumerate(pairwise(edges)):
        is_M = is_MH[:, at] & (fall_M > 0)
        weight_M, width, sharp = fall_M[is_M], None, None
        if len(weight_M):
            width = float(np.quantile(sigmoids.width_M[is_M], 0.5, weights=weight_M, method="inverted_cdf"))
            sharp = float(weight_M[sigmoids.is_sharpest_M[is_M]].sum() / weight_M.sum())
        row = {"kind": "bin", "lo": lo, "hi": hi, "n_tokens": int(is_MH[:, at].sum())}
        yield row | by_name(nats=tokens.estimate(nats_H[at], nats_BH[:, at])) | {"width": width, "sharp": sharp}


def _rebuilt(tokens: Tokens, name: str, y_MT: NDArray[np.float32], sigmoids: Curves) -> Iterator[Record]:
    """Yields how well single tokens rebuild slopes and losses at held-out points, measured or simulated.

    Of each gap next to a held-out point: lo and hi, x of its ends; out, the held-out x; measured, the slope of the mean
    loss, nats per unit of ln x; rebuilt, by `CURVES`; error, of the sigmoids, rebuilt minus measured.

    Of all gaps, the last row: r2 of these slopes by curve; in_fit_r2, the same of sigmoids fitted to all points, near 1
    by construction; mse by curve, of single losses at held-out points, nats^2; beats, share of tokens whose sigmoid is
    nearer there than their power law.
    """
    x_T, J = tokens.x_T, len(tokens.x_T) - 2
    around = dict(zip(CURVES, cross_validated_losses(x_T, y_MT), strict=True))
    three = np.arange(J)[:, None] + np.arange(3)
    measured_G, measured_BG = _slopes(tokens, y_MT[:, three])
    rebuilt = {curve: _slopes(tokens, around_MJ3) for curve, around_MJ3 in around.items()}
    of_sigmoid_G, of_sigmoid_BG = rebuilt["sigmoid"]
    of_measured = [tokens.estimate(*each) for each in zip(measured_G, measured_BG.T, strict=True)]
    errors = zip(of_sigmoid_G - measured_G, (of_sigmoid_BG - measured_BG).T, strict=True)
    x, inner = np.exp(x_T).tolist(), np.repeat(np.arange(1, J + 1), 2)
    for at, (out, measured, error) in enumerate(zip(inner, of_measured, errors, strict=True)):
        row = {"kind": "slope", "lo": x[out - 1 + at % 2], "hi": x[out + at % 2], "out": x[out]}
        by_curve = {f"rebuilt_{curve}": float(of_G[at]) for curve, (of_G, _) in rebuilt.items()}
        yield row | by_name(measured=measured) | by_curve | by_name(error=tokens.estimate(*error))
    squares = {
        curve: ((at_MJ3[..., 1] - y_MT[:, 1:-1].astype(float)) ** 2).sum(axis=1) for curve, at_MJ3 in around.items()
    }
    in_fit_G, _ = _slopes(tokens, sigmoids.at(x_T)[:, three])
    world: Record = {"kind": "world", "name": name, "in_fit_r2": float(r_squared(measured_G[None], in_fit_G[None])[0])}
    for curve, (of_G, of_BG) in rebuilt.items():
        r2 = float(r_squared(measured_G[None], of_G[None])[0])
        world[f"r2_{curve}"] = tokens.estimate(r2, r_squared(measured_BG, of_BG), Recipe.percentile)
        world[f"mse_{curve}"] = tokens.mean(squares[curve] / J)
    yield flat(world | {"beats": tokens.mean((1 + np.sign(squares["power"] - squares["sigmoid"])) / 2)})


def _slopes(tokens: Tokens, levels_MJ3: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Returns the slopes of the mean losses next to each held-out point, [G], and of each replicate, [B, G]."""
    level_X, level_BX = tokens.means(levels_MJ3.reshape(len(levels_MJ3), -1))
    shape = (-1, *levels_MJ3.shape[1:])
    measured, replicates = (neighbour_slopes(tokens.x_T, level.reshape(shape)) for level in (level_X, level_BX))
    return measured[0], replicates
