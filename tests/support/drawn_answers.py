"""What questions answer, drawn with known truths: ranks by k, misses, outcomes."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, norm

from rbpx.laws.counts.fit import Outcomes
from rbpx.laws.intervals.estimate import document_weights
from rbpx.laws.numeric import line
from rbpx.questions.regimes.noise import AtK, predict_noise

Floats = NDArray[np.float64]
Held = Counter[str]
SIZES: Final = np.array([1e4, 1e5, 1e6, 1e7, 1e8])
K: Final = (1, 2, 3, 5, 7, 10, 18, 30, 50, 78, 100)
BETA, LEVEL = 0.35, 1.2
Ranks = Callable[[Floats], Floats]


def power(u: Floats) -> Floats:
    """Ranks with P(R <= k) = exp(-LEVEL k^-BETA): the law in k holds exactly."""
    return np.asarray(np.ceil((LEVEL / -np.log(u)) ** (1 / BETA)))


def curved(u: Floats) -> Floats:
    """Ranks of a lognormal, whose -ln P(R <= k) is no power of k."""
    return np.asarray(np.ceil(np.exp(1.0 + 2.2 * norm.ppf(u))))


def in_k(rng: np.random.Generator, ranks_of: Ranks, resamples: int = 200) -> tuple[Floats, Floats]:
    """-ln RBP_k of 200 documents of 40 tokens, a part of whose luck is shared, and under replicates of them."""
    luck = 0.5 * rng.normal(size=(200, 1)) + 0.75**0.5 * rng.normal(size=(200, 40))
    hits_DK = (ranks_of(norm.cdf(luck))[:, :, None] <= np.array(K)).sum(axis=1)
    p_BK = document_weights(200, resamples, int(rng.integers(2**31))) @ hits_DK / 8000
    return -np.log(hits_DK.sum(axis=0) / 8000), -np.log(p_BK)


LADDER: Final = np.geomspace(1e3, 1e6, 7)
N_DOCUMENTS, N_TOKENS, ALPHA = 80, 250, 0.12
LEVELS: Final = {10: 0.4, 1000: 0.02, 3000: 0.002}  # -ln RBP_k at the mean size


def misses(rng: np.random.Generator, alpha_at: dict[int, float]) -> list[AtK]:
    """Misses of documents that differ in how hard they are (beta-binomial), shared by the sizes, at each k."""
    z_N = np.log(LADDER) - np.log(LADDER).mean()
    weights_BD = document_weights(N_DOCUMENTS, 200, int(rng.integers(2**31)))
    series = []
    for k, level in LEVELS.items():
        hard_D = rng.gamma(4, 1 / 4, N_DOCUMENTS)
        y_N = level * np.exp(-alpha_at[k] * z_N + rng.normal(0, 0.01, len(LADDER)))
        misses_DN = rng.binomial(N_TOKENS, np.minimum(-np.expm1(-y_N) * hard_D[:, None], 1.0))
        n = N_DOCUMENTS * N_TOKENS
        with np.errstate(divide="ignore"):
            ln_y_N = np.log(-np.log1p(-misses_DN.sum(axis=0) / n))
            ln_y_BN = np.log(-np.log1p(-(weights_BD @ misses_DN) / n))
        ln_y_BN = ln_y_BN[np.isfinite(ln_y_BN).all(axis=1)]
        alpha = r2 = None
        if np.isfinite(ln_y_N).all():
            alpha = float(line(np.log(LADDER), ln_y_N)[1])
            r2 = float(np.corrcoef(np.log(LADDER), ln_y_N)[0, 1] ** 2)
        series.append(AtK(ln_y_N, ln_y_BN, alpha, r2, 0.01, k == 10))
    return series


def of_noise(n_draws: int) -> tuple[int, int, list[float]]:
    """How often the measured R2 of a law that goes on is as low as noise makes it, of how many; tokens to see each."""
    rng, within, n_known, n_tokens = np.random.default_rng(4), 0, 0, []
    for _ in range(n_draws):
        series = misses(rng, dict.fromkeys(LEVELS, ALPHA))
        said = [each["predicted"] for each in predict_noise(LADDER.tolist(), N_DOCUMENTS * N_TOKENS, series)]
        for at, each in zip(series[1:], said[1:], strict=True):
            if at.r2 is not None:
                within, n_known = within + (each["r2_lo"] <= at.r2 <= each["r2_hi"]), n_known + 1
        n_tokens.append([each["n_tokens"] for each in said if each is not None])
    return within, n_known, np.median(np.array(n_tokens, dtype=float), axis=0).tolist()


C_OUTCOMES, ALPHA_OUTCOMES = 4.0, 0.1


def cells(lengths: tuple[int, ...], sizes: Any = SIZES) -> tuple[Any, Any]:
    """S and N of each cell, size after size."""
    return np.repeat(sizes, len(lengths)), np.tile(np.array(lengths, dtype=float), len(sizes))


def shares(S_C: Any, N_C: Any, r: float = 0.0, scatter: Any = 0.0) -> Any:
    """p_N of beta-binomial hits, by scipy's own distribution."""
    q_C = np.exp(-C_OUTCOMES * S_C**-ALPHA_OUTCOMES * np.exp(scatter))
    if r == 0:
        return q_C**N_C
    a_C, b_C = q_C * (1 / r - 1), (1 - q_C) * (1 / r - 1)
    return np.array([betabinom.pmf(N, N, a, b) for N, a, b in zip(N_C.astype(int), a_C, b_C, strict=True)])


def drawn_outcomes(
    rng: np.random.Generator, lengths: tuple[int, ...], trials: int, r: float = 0.0, scatter: float = 0.0
) -> Outcomes:
    """Independent sequences of every size and length; each model scatters about the law."""
    S_C, N_C = cells(lengths)
    u_C = np.repeat(rng.normal(0, 1, len(SIZES)) * scatter, len(lengths))
    p_C = shares(S_C, N_C, r, u_C)
    return Outcomes(S_C, N_C, rng.binomial(trials, p_C).astype(float), np.full(len(S_C), float(trials)))


UNITS: Final = ("bits_per_byte", "nats_per_token", "tokens_per_byte", "rank_50", "rank_90", "rank_99", "rbp_at_0.001_V")
