"""Losses at several temperatures from hidden states and a head matrix on the CPU, one tile of the vocabulary at a time.

Slabs and tiles are those of `rank_tiles`; a numba kernel adds the powers of each exponential while the tile is in a
core's cache.

Shapes: N positions, n of them in a slab of one thread, D hidden width, V vocabulary, v entries in a tile, J nodes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from torch import Tensor

from rbpx.ranks.cpu_kernel import INFINITE, exponential, largest
from rbpx.ranks.definition import Map
from rbpx.ranks.tempered import BETAS, STEP, Floats, losses_of
from rbpx.ranks.tiles import add_tiles, joined

f32 = np.float32


# Sums may be split over a vector's lanes; the loops never see a NaN, which `largest` finds first.
@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def _exponentials(z_v: Any, top: Any, below_v: Any, step_v: Any, power_v: Any, step: Any) -> None:
    """Write x = z - top and exp(step x) of each entry; set the power to 1."""
    for v in range(z_v.shape[0]):
        x = z_v[v] - top
        below_v[v] = x
        step_v[v] = exponential(x * step)
        power_v[v] = f32(1.0)


@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def _next_moments(below_v: Any, step_v: Any, power_v: Any) -> Any:
    """The moments at the next node, whose exponentials are left in `power_v`."""
    total, first, second = f32(0.0), f32(0.0), f32(0.0)
    for v in range(below_v.shape[0]):
        power = power_v[v] * step_v[v]
        power_v[v] = power
        term = power * below_v[v]
        total += power
        first += term
        second += term * below_v[v]
    return total, first, second


@njit(nogil=True, cache=True)
def _add_moments(
    tile_nv: Any, start: int, target_n: Any, beta_J: Any, step: Any, moments_n3J: Any, top_n: Any, own_n: Any
) -> None:
    """Add a tile to the moments of its rows, in place; a row with NaN or an infinity has NaN as its largest logit."""
    width = tile_nv.shape[1]
    below_v, step_v, power_v = np.empty(width, f32), np.empty(width, f32), np.empty(width, f32)
    for i in range(tile_nv.shape[0]):
        z_v = tile_nv[i]
        top, bits = largest(z_v)
        if bits >= INFINITE:
            top_n[i] = np.nan
        if np.isnan(top_n[i]):
            continue
        if top > top_n[i]:
            if top_n[i] > -np.inf:  # the moments so far are about a smaller logit
                by = np.float64(top) - np.float64(top_n[i])
                for j in range(beta_J.shape[0]):
                    factor = np.exp(-beta_J[j] * by)
                    total, first, second = moments_n3J[i, 0, j], moments_n3J[i, 1, j], moments_n3J[i, 2, j]
                    moments_n3J[i, 0, j] = factor * total
                    moments_n3J[i, 1, j] = factor * (first - by * total)
                    moments_n3J[i, 2, j] = factor * (second - 2 * by * first + by * by * total)
            top_n[i] = top
        _exponentials(z_v, top_n[i], below_v, step_v, power_v, step)
        for j in range(beta_J.shape[0]):
            total, first, second = _next_moments(below_v, step_v, power_v)
            moments_n3J[i, 0, j] += total
            moments_n3J[i, 1, j] += first
            moments_n3J[i, 2, j] += second
        if start <= target_n[i] < start + width:
            own_n[i] = z_v[target_n[i] - start]


class _Moments:
    """Moments of n rows over the tiles added so far."""

    def __init__(self, target_n: npt.NDArray[np.int64]) -> None:
        self._target_n = target_n
        self.moments_n3J = np.zeros((len(target_n), 3, len(BETAS)))
        self.top_n = np.full(len(target_n), -np.inf, f32)
        self.own_n = np.full(len(target_n), np.nan, f32)

    def add(self, tile_nv: npt.NDArray[np.float32], start: int) -> None:
        """Add a tile whose first column is the entry `start` of the vocabulary."""
        _add_moments(
            tile_nv, start, self._target_n, np.asarray(BETAS), f32(STEP), self.moments_n3J, self.top_n, self.own_n
        )


def temper_tiles(
    hidden_ND: Tensor, targets_N: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None, finish: Map | None = None
) -> Floats:
    """As `temper_hidden`, for a head that is a matrix product; arguments and errors as in `rank_tiles`."""
    head = (weight_VD, bias_V, finish)
    slabs = add_tiles(hidden_ND.float(), targets_N, head, lambda _, target_n: _Moments(target_n.numpy()))
    moments_N3J, top_N, own_N = (joined(slabs, name) for name in ("moments_n3J", "top_n", "own_n"))
    return losses_of(moments_N3J, top_N.astype(np.float64), own_N.astype(np.float64))
