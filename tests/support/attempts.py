"""Items that are tried, drawn from a distribution of chances, and how often what is said of them holds the truth."""

import math
from typing import Any

import numpy as np

from rbpx.laws.intervals.estimate import Recipe, document_weights, estimate
from rbpx.questions.attempts.forecasts import BETA, forecast
from rbpx.questions.attempts.passing import Counted, grid_to, slope_in_k
from rbpx.questions.attempts.tails import fit_tail


def counted(right: list[int], tried: int) -> Counted:
    """Items of which so many of as many attempts were right."""
    return Counted(tuple(map(str, range(len(right)))), np.array(right), np.full(len(right), tried))


def drawn(rng: np.random.Generator, a: float, b: float, n_items: int, n: int) -> Counted:
    """Items whose chances are of a beta distribution."""
    return counted(rng.binomial(n, rng.beta(a, b, n_items)).tolist(), n)


def of_items_and_samples(n_draws: int) -> dict[str, int]:
    """How many intervals hold the truth: of pass@k in the middle and at the end, of its slope, and of the tail."""
    a, b, n_items, n = 0.4, 12.0, 128, 1000
    ks = grid_to(n)
    true_K = np.array([1 - math.exp(math.lgamma(b + k) - math.lgamma(b) + math.lgamma(a + b) - math.lgamma(a + b + k))
                       for k in ks])  # fmt: skip
    slope, hits = float(slope_in_k(ks, true_K)), dict.fromkeys(("middle", "end", "slope", "tail"), 0)
    weights = document_weights(n_items, 300, 0)
    for draw in range(n_draws):
        items = drawn(np.random.default_rng(draw), a, b, n_items, n)
        passes = items.passes(ks)
        drawn_BK = weights @ passes / n_items
        of_slope = estimate(
            float(slope_in_k(ks, passes.mean(axis=0))), slope_in_k(ks, drawn_BK), n_items, Recipe.uncentred
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
        truth, found = float(np.mean(1 - (1 - p_I) ** k)), forecast(BETA, items, k)
        hits += found.ends is not None and found.ends[0] <= truth <= found.ends[1]
    return hits
