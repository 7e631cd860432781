"""Losses of targets at several temperatures, with their slopes, from hidden states and a head.

A temperature T divides every logit, so it moves the probabilities and no rank. With beta = 1 / T,
L(beta) = ln sum_v exp(beta z_v) - beta z_t is convex: L' = E_beta[z] - z_t, L'' = Var_beta[z]. All nodes of beta are
multiples of one step, so that each logit costs one exponential, whose powers are the terms of the nodes.

Shapes: N positions, n of them at a time, D hidden width, V vocabulary, v entries of it, J nodes of beta.

Losses at several temperatures from hidden states and a head matrix on the CPU, one tile of the vocabulary at a time.

The slabs and tiles are those of `rank_tiles`; a kernel that numba compiles adds up the powers of each exponential while
the tile lies in a core's cache.

Shapes: N positions, n of them in a slab of one thread, D hidden width, V vocabulary, v entries in a tile, J nodes.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from numba import njit
from torch import Tensor

from rbpx.ranks.cpu_kernel import INFINITE, exponential, largest
from rbpx.ranks.definition import NonFiniteLogits, map_chunks
from rbpx.ranks.product import Map
from rbpx.ranks.tiles import add_tiles

__all__ = ["BETAS", "STEP", "losses_of", "temper_hidden"]

Floats = npt.NDArray[np.float64]

STEP: Final = 1 / 8
BETAS: Final = tuple(STEP * j for j in range(1, 17))  # temperatures from 8 down to 1/2
_BLOCK_BYTES = 1 << 20  # of logits at a time on a CPU, so that their powers stay in a core's cache


def temper_hidden(
    hidden_ND: Tensor,
    targets_N: Tensor,
    head: Callable[[Tensor], Tensor],
    vocab_size: int,
    chunk_bytes: int | None = None,
) -> Floats:
    """The loss of each target at every node of beta, with its slope and curvature in beta, shape [N, 3, J], nats.

    Args:
        hidden_ND: the states that the model feeds to its output head.
        targets_N: token ids, integers in [0, V).
        head: hidden states of n positions to their float32 logits [n, V].
        vocab_size: V, the width that `head` emits.
        chunk_bytes: as in `rank_hidden`.

    Raises:
        NonFiniteLogits: a row of logits contains NaN, +inf or -inf; its `row` counts from the first of all N.
        ValueError: as in `rank_hidden`.
    """
    chunks = map_chunks(_temper_rows, hidden_ND, targets_N, head, vocab_size, chunk_bytes)
    found = torch.cat(chunks).cpu().numpy()  # the only synchronisation with the device
    return losses_of(found[:, 2:].reshape(len(found), 3, len(BETAS)), found[:, 0], found[:, 1])


def losses_of(moments_n3J: Floats, top_n: Floats, own_n: Floats) -> Floats:
    """Loss (nats), slope and curvature in beta, shape [n, 3, J].

    Args:
        moments_n3J: sums over the vocabulary of exp(beta x), x exp(beta x) and x^2 exp(beta x), with x = z - top.
        top_n: the largest logit; NaN where a logit is not finite.
        own_n: the target's logit.

    Raises:
        NonFiniteLogits: a largest logit is NaN.
    """
    finite_n = np.isfinite(top_n)
    if not finite_n.all():
        raise NonFiniteLogits(int(finite_n.argmin()))
    sum_nJ = moments_n3J[:, 0]
    mean_nJ, square_nJ = moments_n3J[:, 1] / sum_nJ, moments_n3J[:, 2] / sum_nJ
    above_n1 = (top_n - own_n)[:, None]
    loss_nJ = np.log(sum_nJ) + np.asarray(BETAS) * above_n1
    return np.stack([loss_nJ, mean_nJ + above_n1, square_nJ - mean_nJ**2], axis=1)


def _temper_rows(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """Float64 [N, 2 + 3 J] on the logits' device: largest logit (NaN if one is not finite), target's logit, moments."""
    if logits_NV.dtype != torch.float32:
        raise ValueError(f"Losses at other temperatures need float32 logits, got {logits_NV.dtype}")
    own_N = logits_NV.gather(1, targets_N.to(logits_NV.device, torch.int64)[:, None])[:, 0]
    low_N, top_N = logits_NV.aminmax(dim=1)
    moments_N3J = logits_NV.new_zeros(len(logits_NV), 3, len(BETAS), dtype=torch.float64)
    n_entries = logits_NV.shape[1]
    if not logits_NV.is_cuda:
        n_entries = max(1, _BLOCK_BYTES // (4 * max(1, len(logits_NV))))
    for logits_Nv in torch.split(logits_NV, n_entries, dim=1):
        below_Nv = logits_Nv - top_N[:, None]
        step_Nv = torch.exp(below_Nv * STEP)
        power_Nv = torch.ones_like(step_Nv)
        for j in range(len(BETAS)):
            power_Nv *= step_Nv
            moments_N3J[:, 0, j] += power_Nv.sum(1)
            term_Nv = power_Nv * below_Nv
            moments_N3J[:, 1, j] += term_Nv.sum(1)
            term_Nv *= below_Nv
            moments_N3J[:, 2, j] += term_Nv.sum(1)
    top_N = torch.where(low_N.isfinite() & top_N.isfinite(), top_N, torch.nan)
    return torch.cat([top_N[:, None].double(), own_N[:, None].double(), moments_N3J.flatten(1)], dim=1)


f32 = np.float32


# Sums may be split over a vector's lanes; the loops never see a NaN, which `largest` finds first.
@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def _exponentials(z_v: Any, top: Any, below_v: Any, step_v: Any, power_v: Any, step: Any) -> None:
    """Write x = z - top and exp(step x) of each entry; the power that the nodes multiply begins at 1."""
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
    if len(hidden_ND) != len(targets_N):
        raise ValueError(f"{len(hidden_ND)} hidden states for {len(targets_N)} targets")
    if len(hidden_ND) == 0:
        return np.empty((0, 3, len(BETAS)))
    hidden_ND, targets_N = hidden_ND.to("cpu", torch.float32), targets_N.to("cpu", torch.int64)
    slabs = add_tiles(hidden_ND, targets_N, weight_VD, bias_V, finish, lambda _, target_n: _Moments(target_n.numpy()))
    moments_N3J = np.concatenate([slab.moments_n3J for slab in slabs])
    top_N, own_N = (np.concatenate([getattr(slab, name) for slab in slabs]) for name in ("top_n", "own_n"))
    return losses_of(moments_N3J, top_N.astype(np.float64), own_N.astype(np.float64))
