"""Predicts what the noise of few misses would do to R2 at each k, if the law went on there as at smaller k.

Misses at a large k are few, and those of one document come together: over documents they are beta-binomial, with the
variance of a count times a factor that does not depend on k (given one correlation within documents and few misses
per token). So cov(ln y_i, ln y_j) = A_ij / sqrt(m_i m_j), with m the misses of each size. A is measured where the law
holds; it also says how much the sizes share, as they read the same documents. R2 is drawn around a law with the
exponent that it has there, with as many misses as were counted at each k.

Shapes: N sizes, K values of k, B draws.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, student_t
from rbpx.laws.numeric import Floats

_DRAWS: Final = 2000
_SEED: Final = 0
_LEVELS: Final = (0.5, 0.025, 0.975)


@dataclass(frozen=True, eq=False)
class AtK:
    """What was measured at one k.

    Attributes:
        ln_y_N: ln(-ln RBP_k) of each size; not finite where no token is a miss.
        ln_y_BN: under resampled documents; usable rows alone.
        alpha: exponent of its law; None without numbers.
        r2: R2 of its law.
        models_sd: scatter of the models about it that documents do not explain.
        stands: whether the law holds there.
    """

    ln_y_N: Floats
    ln_y_BN: Floats
    alpha: float | None
    r2: float | None
    models_sd: float
    stands: bool


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """The law over the k at which it holds, and the noise of counts there.

    Attributes:
        ln_S_N: ln of the sizes.
        n_tokens: tokens of the text.
        alpha: mean exponent over these k.
        models_sd: root mean square of the scatter of the models over the same.
        dispersion_NN: A; its diagonal says how many times more variable a count of misses is than that of independent
            tokens.
        r2: mean of the measured R2 over the same.
    """

    ln_S_N: Floats
    n_tokens: int
    alpha: float
    models_sd: float
    dispersion_NN: Floats
    r2: float


@dataclass(frozen=True)
class Predicted:
    """What the noise does at one k.

    Attributes:
        r2: median of R2 if the law went on as where it holds, and what 95 % of texts of this length would show.
        explained: share of the fall of R2 that the noise accounts for: predicted over measured; None where R2 has not
            fallen.
        is_noise: whether the measured R2 is within or above that range; if it is lower, something else ends the law.
        n_tokens: tokens of a text that would make alpha significant at this k; None where the scatter of the models
            alone hides it.
    """

    r2: Estimate
    explained: float | None
    is_noise: bool | None
    n_tokens: float | None


def noise_model(S: Sequence[float], n_tokens: int, series: Sequence[AtK]) -> NoiseModel | None:
    """Measure the noise where the law holds; None where it holds nowhere."""
    standing = [at for at in series if at.stands and at.alpha is not None and at.r2 is not None and len(at.ln_y_BN) > 1]
    if not standing:
        return None
    products = []
    for at in standing:
        misses_N = n_tokens * -np.expm1(-np.exp(at.ln_y_N))
        products.append(np.cov(at.ln_y_BN, rowvar=False) * np.sqrt(np.outer(misses_N, misses_N)))
    return NoiseModel(
        np.log(np.asarray(S, dtype=np.float64)),
        n_tokens,
        float(np.mean([at.alpha for at in standing if at.alpha is not None])),
        math.sqrt(float(np.mean([at.models_sd**2 for at in standing]))),
        np.mean(products, axis=0),
        float(np.mean([at.r2 for at in standing if at.r2 is not None])),
    )


def predict_noise(model: NoiseModel, at: AtK) -> Predicted | None:
    """The R2 that the law would have at one k with as many misses as there are; None without misses.

    Args:
        model: from `noise_model`.
        at: what was measured; its level, the geometric mean over sizes, is used, not its slope.
    """
    known_N = np.isfinite(at.ln_y_N)
    if not known_N.any():
        return None
    x_N = model.ln_S_N - model.ln_S_N.mean()
    level = float(np.mean((at.ln_y_N + model.alpha * x_N)[known_N]))
    law_N = level - model.alpha * x_N
    misses_N = model.n_tokens * -np.expm1(-np.exp(law_N))
    noise_NN = model.dispersion_NN / np.sqrt(np.outer(misses_N, misses_N))
    values, vectors = np.linalg.eigh(noise_NN + model.models_sd**2 * np.eye(len(x_N)))
    root_NN = vectors * np.sqrt(np.maximum(values, 0.0))
    draws_BN = law_N + np.random.default_rng(_SEED).standard_normal((_DRAWS, len(x_N))) @ root_NN.T
    about_BN = draws_BN - draws_BN.mean(axis=1, keepdims=True)
    slope_B = about_BN @ x_N / float(x_N @ x_N)
    r2, lo, hi = np.quantile(slope_B**2 * float(x_N @ x_N) / (about_BN**2).sum(axis=1), _LEVELS)
    fell = 0.0 if at.r2 is None else model.r2 - at.r2
    explained = float((model.r2 - r2) / fell) if fell > 0 else None
    lever_N = x_N / float(x_N @ x_N)
    room = (model.alpha / student_t(len(x_N) - 2)) ** 2 - model.models_sd**2 * float(lever_N @ lever_N)
    n_tokens = model.n_tokens * (float(lever_N @ noise_NN @ lever_N) / room) if room > 0 else None
    is_noise = None if at.r2 is None else bool(lo <= at.r2)
    return Predicted(Estimate(float(r2), float(lo), float(hi)), explained, is_noise, n_tokens)
