"""One pass over the tokens of all sequences: what a step of the search for the fixed point needs, compiled by numba.

Shapes: Q sequences, N tokens of each, T = Q N tokens in order, F features.
"""

import math
from typing import Any

import numpy as np
from numba import njit

__all__ = ["derivatives"]

_BLOCK = 1024  # sequences whose terms are added up before they join the total, which keeps rounding small


@njit(nogil=True, cache=True, error_model="numpy")
def derivatives(x_TF: Any, theta_F: Any, passed_Q: Any) -> Any:
    """Ln-likelihood of the outcomes, its score and Fisher's information, shapes [], [F] and [F, F].

    With e = exp(-z) of each token and 1 + P the product of all 1 + e, a sequence passes with the chance 1 / (1 + P) and
    fails with P / (1 + P), so that neither loses digits where it is small.

    Args:
        x_TF: float64, the features of each token.
        theta_F: float64.
        passed_Q: bool, whether each sequence passed.
    """
    Q, F = passed_Q.shape[0], theta_F.shape[0]
    n = x_TF.shape[0] // Q
    value, score_F, information_FF = 0.0, np.zeros(F), np.zeros((F, F))
    e_N, slope_F, weighted_F = np.empty(n), np.empty(F), np.empty(F)
    for begin in range(0, Q, _BLOCK):
        of_block, of_block_F, of_block_FF = 0.0, np.zeros(F), np.zeros((F, F))
        for q in range(begin, min(begin + _BLOCK, Q)):
            P = 0.0
            for i in range(n):
                z = 0.0
                for f in range(F):
                    z += x_TF[q * n + i, f] * theta_F[f]
                e_N[i] = math.exp(-z)
                P += e_N[i] + P * e_N[i]
            if P < 1e300:
                ln_pass = -math.log1p(P)
            else:  # the product overflows, so logarithms are added up
                ln_pass = 0.0
                for i in range(n):
                    z = 0.0
                    for f in range(F):
                        z += x_TF[q * n + i, f] * theta_F[f]
                    ln_pass += min(z, 0.0) - math.log1p(math.exp(-abs(z)))
            both = math.exp(ln_pass)
            fails = P / (1.0 + P) if P < 1e300 else 1.0
            of_block += ln_pass if passed_Q[q] else math.log(fails)
            slope_F[:], weighted_F[:] = 0.0, 0.0
            for i in range(n):
                eta = 1.0 / (1.0 + e_N[i])
                miss = e_N[i] * eta if e_N[i] < 1e300 else 1.0
                gain = miss if passed_Q[q] else (eta - both) / fails - eta
                for f in range(F):
                    slope_F[f] += miss * x_TF[q * n + i, f]
                    weighted_F[f] += gain * x_TF[q * n + i, f]
            weight = both / fails
            for f in range(F):
                of_block_F[f] += weighted_F[f]
                for g in range(f + 1):
                    of_block_FF[f, g] += weight * slope_F[f] * slope_F[g]
        value += of_block
        score_F += of_block_F
        information_FF += of_block_FF
    for f in range(F):
        for g in range(f):
            information_FF[g, f] = information_FF[f, g]
    return value, score_F, information_FF
