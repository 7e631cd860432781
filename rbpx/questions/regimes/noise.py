"""Predicts R2 at each k under the noise of few misses, if the law continued as at smaller k.

Misses are beta-binomial over documents: few per token, with one correlation, vary as a count times a factor that does
not depend on k. So cov(ln y_i, ln y_j) = A_ij / sqrt(m_i m_j), m the misses of each size; A is measured where the law
holds. R2 is simulated around a law with the exponent found there, with as many misses as were counted at each k.

Shapes: N sizes, K values of k, B draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, by_name, student_t
from rbpx.laws.numeric import Floats
from rbpx.store.store import Record

_DRAWS: Final = 2000
_SEED: Final = 0
_LEVELS: Final = (0.5, 0.025, 0.975)


@dataclass(frozen=True, eq=False)
class AtK:
    """Measured values at one k: ln(-ln RBP_k) of each size, of each replicate, and the numbers of its law.

    `models_sd` is the scatter of the models about it that documents do not explain.
    """

    ln_y_N: Floats
    ln_y_BN: Floats
    alpha: float | None
    r2: float | None
    models_sd: float
    stands: bool


def predict_noise(S: Sequence[float], n_tokens: int, series: Sequence[AtK]) -> list[Record]:
    """Predicts what noise does at each k, with the counted misses, if the law continues as where it holds.

    law_alpha is the mean exponent over those k, clumping the variance of a count of misses over that of independent
    tokens. predicted is None without misses; else r2: median of R2, and its range in 95 % of texts of this length;
    explained: share of the fall of R2 that noise explains; is_noise: whether the measured R2 is within or above that
    range; n_tokens: of a text that would make alpha significant, None where the scatter of models hides it.
    """
    standing = [at for at in series if at.stands and at.alpha is not None and at.r2 is not None and len(at.ln_y_BN) > 1]
    if not standing:
        return [{"predicted": None} for _ in series]
    alpha, r2 = (float(np.mean([getattr(at, name) for at in standing])) for name in ("alpha", "r2"))
    models_var = float(np.mean([at.models_sd**2 for at in standing]))
    A_NN = np.mean([np.cov(at.ln_y_BN, rowvar=False) * _pairs(n_tokens, at.ln_y_N) for at in standing], axis=0)
    x_N = np.log(np.asarray(S, dtype=np.float64))
    x_N, found = x_N - x_N.mean(), list[Record]()
    lever_N = x_N / float(x_N @ x_N)
    for at in series:
        found.append({"predicted": None, "law_alpha": alpha, "clumping": float(np.diag(A_NN).mean())})
        known_N = np.isfinite(at.ln_y_N)
        if not known_N.any():
            continue
        # The level is measured, the geometric mean over sizes; the slope is that of the law.
        law_N = float(np.mean((at.ln_y_N + alpha * x_N)[known_N])) - alpha * x_N
        noise_NN = A_NN / _pairs(n_tokens, law_N)
        values, vectors = np.linalg.eigh(noise_NN + models_var * np.eye(len(x_N)))
        root_NN = vectors * np.sqrt(np.maximum(values, 0.0))
        draws_BN = law_N + np.random.default_rng(_SEED).standard_normal((_DRAWS, len(x_N))) @ root_NN.T
        about_BN = draws_BN - draws_BN.mean(axis=1, keepdims=True)
        of_line_B = (about_BN @ x_N) ** 2 / float(x_N @ x_N)
        middle, lo, hi = np.quantile(of_line_B / (about_BN**2).sum(axis=1), _LEVELS).tolist()
        fell = 0.0 if at.r2 is None else r2 - at.r2
        room = (alpha / student_t(len(x_N) - 2)) ** 2 - models_var * float(lever_N @ lever_N)
        found[-1]["predicted"] = by_name(r2=Estimate(middle, lo, hi)) | {
            "explained": (r2 - middle) / fell if fell > 0 else None,
            "is_noise": None if at.r2 is None else lo <= at.r2,
            "n_tokens": n_tokens * (float(lever_N @ noise_NN @ lever_N) / room) if room > 0 else None,
        }
    return found


def _pairs(n_tokens: int, ln_y_N: Floats) -> Floats:
    misses_N = n_tokens * -np.expm1(-np.exp(ln_y_N))
    return np.sqrt(np.outer(misses_N, misses_N))
