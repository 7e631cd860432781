"""In how many draws intervals of questions hold the truth: gaps, laws in k, outcomes, ranks, units."""

import math
import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import linregress, norm

import rbpx
from rbpx.laws.counts.fit import Correction, Outcomes, fit_outcomes
from rbpx.laws.in_k import fit_k_law
from rbpx.laws.intervals.estimate import Recipe, document_weights, estimate
from rbpx.questions.attempts.forecasts import BETA as BETA_OF_TAIL
from rbpx.questions.attempts.forecasts import forecast
from rbpx.questions.attempts.passing import CountedItems, grid_to
from rbpx.questions.attempts.passing import slope_in_k as slope_of_passes
from rbpx.questions.attempts.tails import fit_tail
from rbpx.questions.emergence.laws import crossing, fit_joint, fit_windows
from rbpx.questions.emergence.windows import window_share
from rbpx.questions.gaps.law import fit_gap
from rbpx.questions.ranks.compare import compare, ranks_by_document
from rbpx.questions.units.ask import express
from rbpx.status import Status
from tests.support.attempts import counted
from tests.support.crossings import S, documents, law
from tests.support.drawn_answers import (
    ALPHA_OUTCOMES,
    BETA,
    C_OUTCOMES,
    SIZES,
    UNITS,
    Floats,
    Held,
    K,
    Ranks,
    drawn_outcomes,
    in_k,
    power,
)
from tests.support.draws import holds, inside
from tests.support.synthetic import Truth as OfStore
from tests.support.synthetic import write_store


def _holds(lo: float | None, hi: float | None, value: float) -> bool:
    """Whether an interval, both of whose ends are known, holds a value."""
    assert lo is not None
    assert hi is not None
    return bool(lo <= value <= hi)


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


# ------------------------------------------------------------------------------------------------------- emergence

ALPHA_OF_W = 0.13
LENGTHS_OF_W = [1, 2, 5]
S_OF_W = np.geomspace(3e3, 3e6, 7)


def drawn_windows(rng: np.random.Generator, resamples: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Shares [M, N] and those of the replicates [B, M, N].

    Models scatter ln(-ln p) by 2 %, alike at all lengths, documents by 0.4 %: a third of that variance is shared by
    all, a third belongs to a size, a third to a cell. A replicate scatters about the sample as the sample does about
    the truth.
    """
    shape = (len(S_OF_W), len(LENGTHS_OF_W))
    truth_MN = (
        np.log(0.5 * np.array(LENGTHS_OF_W))
        - ALPHA_OF_W * np.log(S_OF_W)[:, None]
        + rng.normal(0, 0.02, (len(S_OF_W), 1))
    )

    def of_documents(n: int) -> np.ndarray:
        parts = ((n, 1, 1), (n, len(S_OF_W), 1), (n, *shape))
        return np.asarray(sum(rng.normal(0, 0.004 / 3**0.5, part) for part in parts))

    p_MN = np.exp(-np.exp(truth_MN + of_documents(1)[0]))
    return p_MN, np.exp(np.log(p_MN) * np.exp(of_documents(resamples)))


def joint_intervals(n_draws: int) -> tuple[list[bool], list[bool]]:
    """Whether the interval of the joint law holds alpha where it is the law, and whether the documents alone do."""
    rng, covered, alone = np.random.default_rng(5), [], []
    for _ in range(n_draws):
        law = fit_joint(S_OF_W, LENGTHS_OF_W, *drawn_windows(rng)).fit
        text_sd, _ = law.alpha_sds
        assert law.alpha.value is not None
        assert law.alpha.ends is not None
        assert text_sd is not None
        covered.append(law.alpha.ends[0] <= ALPHA_OF_W <= law.alpha.ends[1])
        alone.append(abs(law.alpha.value - ALPHA_OF_W) <= 1.96 * text_sd)
    return covered, alone


def over_noise(sd: float, n_draws: int) -> tuple[list[bool], int]:
    """Whether the intervals of the law of one length hold the truth, and how many have no end.

    Half of the noise is of the size, shared by all lengths, half of the point. A fit with alpha <= 0 crosses nowhere
    and is left out: its interval would be all sizes, which misses nothing.
    """
    C, alpha, N, share, rng = 0.4 * 1e6**0.2, 0.2, 10, 0.5, np.random.default_rng(7)
    ln_S = math.log(C * N / -math.log(share)) / alpha
    found = []
    for _ in range(n_draws):
        noise_MN = rng.normal(0, sd / 2**0.5, (6, 1)) + rng.normal(0, sd / 2**0.5, (6, 5))
        p_MN = law(C, alpha, noise_MN)
        found.append(crossing(fit_windows(S, p_MN[:, 2]), share))
    found = [each for each in found if each["status"] is not Status.unreachable]
    return [_crosses(each, ln_S) for each in found], sum(each["hi"] is None for each in found)


def over_documents(n_draws: int, n_truth: int) -> tuple[list[bool], list[bool]]:
    """Whether intervals hold what `n_truth` texts together show: with the documents in them, and without.

    Documents that are hard for all sizes move the whole law, which the scatter of the sizes does not see.
    """
    alpha, share, rng = 0.2, 0.5, np.random.default_rng(8)
    many = [documents(np.random.default_rng(seed), alpha) for seed in range(n_truth)]
    pooled_M2N = sum(np.array([[of.sum(axis=0) for of in run] for run in runs]) for runs in many)
    truth = crossing(fit_windows(S, pooled_M2N[:, 0, 1] / pooled_M2N[:, 1, 1]), share)["ln_S"]
    assert truth is not None
    covered, without = [], []
    for seed in range(n_draws):
        runs, weights_BD = documents(rng, alpha), document_weights(80, 100, seed)
        p_BM = np.stack([window_share(*windows, weights_BD)[:, 1] for windows in runs], axis=1)
        p_M = np.stack([window_share(*windows)[1] for windows in runs])
        covered.append(_crosses(crossing(fit_windows(S, p_M, p_BM), share), truth))
        without.append(_crosses(crossing(fit_windows(S, p_M), share), truth))
    return covered, without


def _crosses(found: dict[str, Any], ln_S: float) -> bool:
    assert found["status"] in (Status.ok, Status.beyond)
    lo, hi = found["ln_lo"], found["ln_hi"]
    return (lo is None or lo <= ln_S) and (hi is None or ln_S <= hi)


# -------------------------------------------------------------------------------------------------------- attempts


def drawn_items(rng: np.random.Generator, a: float, b: float, n_items: int, n: int) -> CountedItems:
    """Items whose chances are of a beta distribution."""
    return counted(rng.binomial(n, rng.beta(a, b, n_items)).tolist(), n)


def of_items_and_samples(n_draws: int) -> dict[str, int]:
    """How many intervals hold the truth: of pass@k in the middle and at the end, of its slope, and of the tail."""
    a, b, n_items, n = 0.4, 12.0, 128, 1000
    ks = grid_to(n)
    true_K = np.array([1 - math.exp(math.lgamma(b + k) - math.lgamma(b) + math.lgamma(a + b) - math.lgamma(a + b + k))
                       for k in ks])  # fmt: skip
    slope, hits = float(slope_of_passes(ks, true_K)), dict.fromkeys(("middle", "end", "slope", "tail"), 0)
    weights = document_weights(n_items, 300, 0)
    for draw in range(n_draws):
        items = drawn_items(np.random.default_rng(draw), a, b, n_items, n)
        passes = items.passes(ks)
        drawn_BK = weights @ passes / n_items
        of_slope = estimate(
            float(slope_of_passes(ks, passes.mean(axis=0))), slope_of_passes(ks, drawn_BK), n_items, Recipe.uncentred
        )
        found: dict[str, tuple[Any, float]] = {
            "slope": (of_slope, slope),
            "tail": (fit_tail(items).a, a),
        }
        for name, at in (("middle", len(ks) // 2), ("end", len(ks) - 1)):
            of_pass = estimate(float(passes[:, at].mean()), drawn_BK[:, at], n_items, Recipe.percentile)
            found[name] = (of_pass, float(true_K[at]))
        for name, (said, truth) in found.items():
            hits[name] += said.ends is not None and said.ends[0] <= truth <= said.ends[1]
    return hits


def of_forecasts(n_draws: int) -> int:
    """How many intervals of forecasts hold what a hundred times the samples give."""
    hits = 0
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        p_I = rng.beta(0.4, 12.0, 128)
        items, k = counted(rng.binomial(100, p_I).tolist(), 100), 10_000
        truth, found = float(np.mean(1 - (1 - p_I) ** k)), forecast(BETA_OF_TAIL, items, k)
        hits += found.ends is not None and found.ends[0] <= truth <= found.ends[1]
    return hits


# ---------------------------------------------------------------------------------------------------------- stores


def of_stores(n_draws: int) -> Held:
    """Alpha at each k, what k is worth in size, and a prediction, from stores to rows."""
    truth, held = OfStore(scatter=0.01), Held()
    for seed in range(n_draws):
        with tempfile.TemporaryDirectory() as folder:
            asked = rbpx.open(write_store(folder, truth, seed).root)
            for row in asked.fit(k=[1, 10, 100], laws=["rbp"], resamples=200).records:
                held[f"alpha {row['k']}"] += holds(row["alpha_lo"], truth.alpha, row["alpha_hi"])
            of_k = [row for row in asked.klaw(resamples=200).details if row["law"] == "k_law"]
            for row in of_k[1:-1]:
                worth = row["params"]["exchange"]
                held[f"exchange {row['size']}"] += holds(worth["lo"], 10 ** (truth.beta / truth.alpha), worth["hi"])
            far = asked.predict(k=1, laws=["rbp"], S=1e8, resamples=200).records[0]
        new = truth.C * 1e8**-truth.alpha * math.exp(np.random.default_rng([seed, 1]).normal(0, truth.scatter))
        held["prediction"] += inside(far["lo"], new, far["hi"])
    return held
