"""How often intervals of questions hold the truth that their points were drawn from, and what those are drawn from.

Gaps, laws in k, noise, outcomes, distributions of ranks, units. Each function draws so many times and counts; the daily
tests ask for few draws, benchmarks/coverage.py for hundreds.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import betabinom, linregress, norm

from rbpx.laws.counts.fit import Correction, Outcomes, fit_outcomes
from rbpx.laws.in_k import fit_k_law
from rbpx.laws.intervals.estimate import document_weights
from rbpx.laws.numeric import line
from rbpx.questions.gaps.law import fit_gap
from rbpx.questions.ranks.compare import compare, ranks_by_document
from rbpx.questions.regimes.noise import AtK, predict_noise
from rbpx.questions.units.ask import express

Floats = NDArray[np.float64]
Held = Counter[str]
SIZES: Final = np.array([1e4, 1e5, 1e6, 1e7, 1e8])


def _holds(lo: float | None, hi: float | None, value: float) -> bool:
    """Whether an interval, both of whose ends are known, holds a value."""
    assert lo is not None
    assert hi is not None
    return bool(lo <= value <= hi)


# ------------------------------------------------------------------------------------------------------------- gaps


def of_gaps(n_draws: int, text: bool) -> Held:
    """Exponent and ratio of pairs of laws; models scatter, and texts too."""
    held = Held()
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        a, b = (C * SIZES**-alpha * np.exp(rng.normal(0, 0.01, 5)) for C, alpha in ((9.0, 0.10), (4.0, 0.06)))
        replicates: tuple[Any, ...] = ()
        if text:
            a, b = (y * np.exp(rng.normal(0, 0.01) + rng.normal(0, 0.005, 5)) for y in (a, b))
            replicates = tuple(
                y * np.exp(rng.normal(0, 0.01, (200, 1)) + rng.normal(0, 0.005, (200, 5))) for y in (a, b)
            )
        gap = fit_gap(SIZES, a, b, *replicates)
        held["delta"] += _holds(gap.delta.lo, gap.delta.hi, -0.04)
        held["ratio"] += _holds(gap.ratio.lo, gap.ratio.hi, 9 / 4 * 1e6**-0.04)
    return held


# ------------------------------------------------------------------------------------------------------- laws in k

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


def slope_in_k(y: Floats) -> float:
    """The published number: least squares of ln y on ln k."""
    return -float(linregress(np.log(K), np.log(y)).slope)


def of_laws_in_k(n_draws: int, ranks_of: Ranks) -> Held:
    """The slope that a text without end would have, by documents, and as if the k were independent points."""
    truth = BETA if ranks_of is power else slope_in_k(-norm.logcdf((np.log(K) - 1.0) / 2.2))
    rng, held = np.random.default_rng(11), Held()
    for _ in range(n_draws):
        y_K, y_BK = in_k(rng, ranks_of)
        fit = fit_k_law(K, y_K, y_BK)
        assert fit.alpha.value is not None
        assert math.isclose(fit.alpha.value, slope_in_k(y_K), rel_tol=1e-9)
        assert fit.interval == "documents"
        assert _holds(fit.alpha.lo, fit.alpha.hi, fit.alpha.value)
        held["documents"] += _holds(fit.alpha.lo, fit.alpha.hi, truth)
        held["scatter"] += bool(abs(fit.alpha.value - truth) <= 2.262 * linregress(np.log(K), np.log(y_K)).stderr)
    return held


def of_nested_counts(n_draws: int) -> int:
    """The slope in k of tokens without documents, by the covariance of nested counts at the scale of the residuals."""
    rng, held = np.random.default_rng(12), 0
    for _ in range(n_draws):
        p_K = (power(rng.uniform(size=5000))[:, None] <= np.array(K)).mean(axis=0)
        fit = fit_k_law(K, -np.log(p_K), None)
        assert fit.interval == "nested counts"
        held += _holds(fit.alpha.lo, fit.alpha.hi, BETA)
    return held


# ----------------------------------------------------------------------------------------------------------- noise

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
            assert each is not None
            if at.r2 is not None:
                within, n_known = within + (each["r2_lo"] <= at.r2 <= each["r2_hi"]), n_known + 1
        n_tokens.append([each["n_tokens"] for each in said if each is not None])
    return within, n_known, np.median(np.array(n_tokens, dtype=float), axis=0).tolist()


# -------------------------------------------------------------------------------------------------------- outcomes

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


def of_outcomes(n_draws: int, lengths: tuple[int, ...], r: float, scatter: float) -> Held:
    """The exponent, RBP of a model by the law, and the correlation, which is fitted where there is one."""
    held, correction = Held(), Correction.free if r else Correction.none
    for seed in range(n_draws):
        fit = fit_outcomes(drawn_outcomes(np.random.default_rng(seed), lengths, 1500, r, scatter), correction)
        held["alpha"] += _holds(fit.alpha.lo, fit.alpha.hi, ALPHA_OUTCOMES)
        held["rbp"] += _holds(fit.rbp(1e6).lo, fit.rbp(1e6).hi, math.exp(-C_OUTCOMES * 1e6**-ALPHA_OUTCOMES))
        if r:
            held["r"] += _holds(fit.r.lo, fit.r.hi, r)
    return held


def of_outcomes_of_documents(n_draws: int) -> Held:
    """RBP of a model where tokens of a document share luck, at all sizes alike, over documents and without them."""
    D, T, shared, held = 40, 50, 0.5, Held()
    level_M, truth = C_OUTCOMES * SIZES**-ALPHA_OUTCOMES, math.exp(-C_OUTCOMES * 1e6**-ALPHA_OUTCOMES)
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        luck_MDT = math.sqrt(shared) * rng.normal(size=(1, D, 1)) + math.sqrt(1 - shared) * rng.normal(size=(5, D, T))
        passed_MD = (norm.cdf(luck_MDT) < np.exp(-level_M)[:, None, None]).sum(axis=2).astype(float)
        weights_BD = document_weights(D, 200, seed).astype(float)
        trials_M = np.full(5, float(D * T))
        counts = (SIZES, np.ones(5), passed_MD.sum(axis=1), trials_M)
        fit = fit_outcomes(Outcomes(*counts, weights_BD @ passed_MD.T, np.tile(trials_M, (200, 1))))
        assert fit.interval == "documents and models"
        held["documents"] += _holds(fit.rbp(1e6).lo, fit.rbp(1e6).hi, truth)
        of_tokens = fit_outcomes(Outcomes(*counts)).rbp(1e6)
        held["tokens"] += _holds(of_tokens.lo, of_tokens.hi, truth)
    return held


# ---------------------------------------------------------------------------------------------------- ranks, units


def counts_of(rank_DT: Any) -> pa.Table:
    """Counts by document and rank, as the query gives them."""
    doc = np.repeat(np.arange(len(rank_DT)), rank_DT.shape[1])
    pairs, n = np.unique(np.stack([doc, rank_DT.ravel()]), axis=1, return_counts=True)
    return pa.table({"doc_id": pairs[0], "rank": pairs[1].astype(float), "n_tokens": n})


def of_rank_distributions(n_draws: int) -> Held:
    """Shares and entropy of a known power law with a cut-off, and mu and sigma of a lognormal, of 40 documents each."""
    size, k_grid, held = 300, (1, 10, 100), Held()
    share = np.arange(1, size + 1) ** -0.8 * np.exp(-0.01 * np.arange(1, size + 1))
    share /= share.sum()
    true = np.append(-np.log(np.cumsum(share)[[0, 9, 99]]), -float(share @ np.log(share)))
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        weights_BD = document_weights(40, 100, seed)
        counts = counts_of(rng.choice(size, size=(40, 50), p=share) + 1)
        cut_off = compare(ranks_by_document(counts, 40), weights_BD, k_grid, size, 40)["power_law_cutoff"]
        assert cut_off.curve is not None
        assert cut_off.curve_B is not None
        near = np.abs(cut_off.curve - true) <= 1.96 * cut_off.curve_B.std(axis=0, ddof=1)
        held.update(dict(zip(("rbp_1", "rbp_10", "rbp_100", "entropy"), near.astype(int).tolist(), strict=True)))
        drawn = np.rint(np.exp(rng.normal(1.5, 1.2, (40, 50)))).astype(int).clip(1, 1000)
        implied = compare(ranks_by_document(counts_of(drawn), 40), weights_BD, k_grid, 1000, 40)[
            "lognormal_paper"
        ].implied
        for name, value in (("mu", 1.5), ("sigma", 1.2)):
            held[name] += _holds(implied[f"{name}_lo"], implied[f"{name}_hi"], value)
    return held


UNITS: Final = ("bits_per_byte", "nats_per_token", "tokens_per_byte", "rank_50", "rank_90", "rank_99", "rbp_at_0.001_V")


def of_units(n_draws: int, n_whole: int) -> Held:
    """Documents whose lengths, bytes and ranks vary together; the truth is that of a text of very many of them."""
    rng, held = np.random.default_rng(8), Held()

    def draw(D: int) -> tuple[pa.Table, Any]:
        luck_D, n_D = rng.normal(size=D), rng.poisson(40, D) + 1
        doc = np.repeat(np.arange(D), n_D)
        rank = np.ceil(np.exp(2 + 0.5 * luck_D[doc] + 1.5 * rng.normal(size=len(doc)))).clip(1, 5000)
        columns = {"doc_id": doc, "rank": rank, "n_tokens": np.ones(len(doc), int), "sum_logprob": -np.log1p(rank)}
        return pa.table(columns), n_D * (4 + 0.3 * luck_D)

    counts, bytes_D = draw(n_whole)
    truth = express(counts, bytes_D, np.ones((1, n_whole), np.int64), 5000, n_whole)
    for seed in range(n_draws):
        counts, bytes_D = draw(60)
        found = express(counts, bytes_D, document_weights(60, 200, seed), 5000, 60)
        for name in UNITS:
            held[name] += _holds(found[name].lo, found[name].hi, truth[name].value or 0)
    return held
