"""One pass over the tokens of all sequences: what a step of the search for the fixed point needs.

Shapes: Q sequences, N tokens of each, F features; q, the sequences of one block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TOKENS: Final = 8192  # of a block, whose terms stay in the cache of a core
_OVERFLOWS: Final = 1e300


@dataclass(frozen=True, eq=False)
class Block:
    """Some of the sequences.

    Attributes:
        x_FNq: features of their tokens.
        passed_q: their outcomes.
    """

    x_FNq: Floats
    passed_q: NDArray[np.bool_]

    def of_tokens(self) -> "Block":
        """Each token a sequence of its own, that has the outcome of its sequence."""
        F, N, _ = self.x_FNq.shape
        return Block(self.x_FNq.reshape(F, 1, -1), np.tile(self.passed_q, N))

    def of_constant(self) -> "Block":
        """With the first feature alone."""
        return Block(self.x_FNq[:1], self.passed_q)


def blocks_of(x_QNF: Floats, passed_Q: NDArray[np.bool_]) -> list[Block]:
    """Sequences as blocks, some at a time.

    Raises:
        ValueError: shapes disagree.
    """
    if x_QNF.ndim != 3 or passed_Q.shape != x_QNF.shape[:1]:
        raise ValueError(f"features have shape {x_QNF.shape}, outcomes {passed_Q.shape}")
    step = max(1, _TOKENS // x_QNF.shape[1])
    parts = [slice(begin, begin + step) for begin in range(0, len(x_QNF), step)]
    return [Block(np.ascontiguousarray(x_QNF[part].transpose(2, 1, 0)), passed_Q[part]) for part in parts]


def derivatives(blocks: Sequence[Block], theta_F: Floats) -> tuple[float, Floats, Floats]:
    """Ln-likelihood of the outcomes, its score and Fisher's information, shapes [], [F] and [F, F].

    With e = exp(-z) of each token and 1 + P the product of all 1 + e, a sequence passes with the chance 1 / (1 + P) and
    fails with P / (1 + P), so that neither loses digits where it is small. With g the sum of x e / (1 + e) over its
    tokens, the score is g of a pass and -g / P of a failure, the information g g^T / P.
    """
    F, most = len(theta_F), max(len(block.passed_q) for block in blocks)
    value, score_F, information_FF = 0.0, np.zeros(F), np.zeros((F, F))
    slopes, weighted = np.empty(F * most), np.empty(F * most)  # so large that each new one would be a system call
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a step too far, that is halved
        for block in blocks:
            x_FNq, shape = block.x_FNq, (F, len(block.passed_q))
            z_Nq = (-theta_F @ x_FNq.reshape(F, -1)).reshape(x_FNq.shape[1:])
            e_Nq = np.exp(z_Nq)
            P_q = e_Nq[0].copy()
            for e_q in e_Nq[1:]:
                P_q += e_q + P_q * e_q
            odds_q = 1.0 / P_q
            ln_q = np.log1p(np.where(block.passed_q, P_q, odds_q))  # of the outcome that there was, negative
            miss_Nq = np.divide(e_Nq, 1.0 + e_Nq, out=z_Nq)
            if not P_q.max() < _OVERFLOWS:
                ln_q, miss_Nq = _finite(ln_q, miss_Nq, P_q, e_Nq, block, theta_F)
            g_Fq = np.einsum("fnq,nq->fq", x_FNq, miss_Nq, out=slopes[: F * shape[1]].reshape(shape))
            value -= float(ln_q.sum())
            score_F += g_Fq @ np.where(block.passed_q, 1.0, -odds_q)
            information_FF += np.multiply(g_Fq, odds_q, out=weighted[: F * shape[1]].reshape(shape)) @ g_Fq.T
    return value, score_F, information_FF


def _finite(ln_q: Any, miss_Nq: Any, P_q: Any, e_Nq: Any, block: Block, theta_F: Floats) -> tuple[Any, Any]:
    """Both where the product overflows: there logarithms are added up, and a token is missed for sure."""
    over_q = ~(P_q < _OVERFLOWS) & block.passed_q
    z_Nq = np.tensordot(theta_F, block.x_FNq[..., over_q], 1)
    ln_q[over_q] = np.logaddexp(0.0, -z_Nq).sum(axis=0)
    return ln_q, np.where(e_Nq < _OVERFLOWS, miss_Nq, 1.0)
