"""Losses of targets at several temperatures, with their slopes, from hidden states and a head.

A temperature T divides every logit, so it moves the probabilities and no rank. With beta = 1 / T,
L(beta) = ln sum_v exp(beta z_v) - beta z_t is convex: L' = E_beta[z] - z_t, L'' = Var_beta[z]. All nodes of beta are
multiples of one step, so that each logit costs one exponential, whose powers are the terms of the nodes.

Shapes: N positions, n of them at a time, D hidden width, V vocabulary, v entries of it, J nodes of beta.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rbpx.ranks.definition import NonFiniteLogits, map_chunks

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
