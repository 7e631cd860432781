"""One pass over the tokens of all sequences: what a step of the search for the fixed point needs.

Shapes: Q sequences, N tokens of each, F features; q, the sequences of one block.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["blocks_of", "derivatives"]

Floats = NDArray[np.float64]
Block = tuple[Floats, NDArray[np.bool_]]

_TOKENS = 8192  # of a block, whose terms stay in the cache of a core
_OVERFLOWS = 1e300


def blocks_of(x_QNF: Floats, passed_Q: NDArray[np.bool_]) -> list[Block]:
    """Features [F, N, q] and outcomes [q], some sequences at a time."""
    step = max(1, _TOKENS // x_QNF.shape[1])
    parts = [slice(begin, begin + step) for begin in range(0, len(x_QNF), step)]
    return [(np.ascontiguousarray(x_QNF[part].transpose(2, 1, 0)), passed_Q[part]) for part in parts]


def derivatives(blocks: Sequence[Block], theta_F: Floats) -> tuple[float, Floats, Floats]:
    """Ln-likelihood of the outcomes, its score and Fisher's information, shapes [], [F] and [F, F].

    With e = exp(-z) of each token and 1 + P the product of all 1 + e, a sequence passes with the chance 1 / (1 + P) and
    fails with P / (1 + P), so that neither loses digits where it is small. With g the sum of x e / (1 + e) over its
    tokens, the score is g of a pass and -g / P of a failure, the information g g^T / P.
    """
    F = len(theta_F)
    value, score_F, information_FF = 0.0, np.zeros(F), np.zeros((F, F))
    for x_FNq, passed_q in blocks:
        z_Nq = (theta_F @ x_FNq.reshape(F, -1)).reshape(x_FNq.shape[1:])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a step too far, that is halved
            e_Nq = np.exp(-z_Nq)
            P_q = e_Nq[0].copy()
            for e_q in e_Nq[1:]:
                P_q += e_q + P_q * e_q
            ln_pass_q = -np.log1p(P_q)
            miss_Nq = e_Nq / (1.0 + e_Nq)
            odds_q, ln_fail_q = 1.0 / P_q, -np.log1p(1.0 / P_q)
        ln_pass_q, miss_Nq = _finite(ln_pass_q, miss_Nq, P_q, e_Nq, z_Nq)
        g_Fq = np.einsum("fnq,nq->fq", x_FNq, miss_Nq)
        value += float(np.where(passed_q, ln_pass_q, ln_fail_q).sum())
        with np.errstate(invalid="ignore"):  # odds are infinite where the step was too far
            score_F += g_Fq @ np.where(passed_q, 1.0, -odds_q)
            information_FF += (g_Fq * odds_q) @ g_Fq.T
    return value, score_F, information_FF


def _finite(ln_pass_q: Any, miss_Nq: Any, P_q: Any, e_Nq: Any, z_Nq: Any) -> tuple[Any, Any]:
    """Both where the product overflows: there logarithms are added up, and a token is missed for sure."""
    over_q = ~(P_q < _OVERFLOWS)
    if over_q.any():
        ln_pass_q = np.where(over_q, -np.logaddexp(0.0, -z_Nq).sum(axis=0), ln_pass_q)
        miss_Nq = np.where(e_Nq < _OVERFLOWS, miss_Nq, 1.0)
    return ln_pass_q, miss_Nq
