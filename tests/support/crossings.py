"""How often the interval of a crossing size holds the truth, over laws and documents that are drawn."""

import math
from typing import Any

import numpy as np

from rbpx.laws.intervals.estimate import document_weights
from rbpx.questions.emergence.laws import crossing, fit_windows
from rbpx.questions.emergence.windows import window_share
from rbpx.status import Status

S = np.array([1e6, 4e6, 2e7, 1e8, 5e8, 2e9])
LENGTHS = [1, 5, 10, 50, 100]


def law(C: float, alpha: float, noise_MN: np.ndarray | float = 0.0) -> np.ndarray:
    """p of the joint law at S and LENGTHS, with noise on ln(-ln p)."""
    return np.exp(-C * np.array(LENGTHS) * S[:, None] ** -alpha * np.exp(noise_MN))


def documents(rng: np.random.Generator, alpha: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Windows of hits and all windows of 80 documents at each size, of an ease that is the same at every size."""
    tokens_D, ease_D = rng.integers(150, 512, size=80), rng.normal(0, 0.3, size=80)
    total_DN = np.maximum(0, tokens_D[:, None] - np.array([1, 5, 10]) + 1)
    scale = np.exp(-(0.3**2) / 2)
    p_MDN = np.exp(-scale * 0.4 * (S[:, None, None] / 1e6) ** -alpha * np.exp(ease_D)[:, None] * np.array([1, 5, 10]))
    return [(rng.binomial(total_DN, p_DN), total_DN) for p_DN in p_MDN]


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
    return [_holds(each, ln_S) for each in found], sum(each["hi"] is None for each in found)


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
        covered.append(_holds(crossing(fit_windows(S, p_M, p_BM), share), truth))
        without.append(_holds(crossing(fit_windows(S, p_M), share), truth))
    return covered, without


def _holds(found: dict[str, Any], ln_S: float) -> bool:
    assert found["status"] in (Status.ok, Status.beyond)
    lo, hi = found["ln_lo"], found["ln_hi"]
    return (lo is None or lo <= ln_S) and (hi is None or ln_S <= hi)
