"""How often the interval of a mean exponent holds the truth, over families, texts and models that are drawn."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from rbpx.questions.exponents.mean import mean_over
from rbpx.runs.points.sizes import Points


def over_families_and_texts(n_draws: int) -> list[bool]:
    """Whether the interval holds the mean of other families and texts, each of which is off by itself."""
    rng, covered = np.random.default_rng(1), []
    families, texts = (list(np.ravel(each)) for each in np.meshgrid(range(4), range(6)))
    for _ in range(n_draws):
        value = rng.normal(size=4)[families] + rng.normal(size=6)[texts] + rng.normal(size=24) / 2
        ends = mean_over(value.tolist(), families, texts).ends
        assert ends is not None
        covered.append(ends[0] <= 0 <= ends[1])
    return covered


def over_common_models(
    n_families: int, n_texts: int, correlation: float, n_draws: int
) -> tuple[list[bool], list[bool]]:
    """Whether the interval holds the truth, and whether one of three independent pairs does.

    Models are off alike on all texts, and trainings of a size in all families, by so much of their variance.
    """
    rng, S = np.random.default_rng(2), np.geomspace(1e7, 1e10, 5)
    runs: Any = tuple(SimpleNamespace(x=size) for size in S)
    families, texts = (np.ravel(each).tolist() for each in np.meshgrid(range(n_families), range(n_texts)))
    covered, alone = [], []
    for _ in range(n_draws):
        common, own = rng.normal(size=5), rng.normal(size=(len(texts), 5))
        scatter = 0.02 * (math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own)
        points = [Points("rbp", 1, runs, S**-0.04 * np.exp(off), None) for off in scatter]
        value = [-float(np.polyfit(np.log(S), np.log(each.y_N), 1)[0]) for each in points]
        ends = mean_over(value, families, texts, points).ends
        assert ends is not None
        covered.append(bool(ends[0] <= 0.04 <= ends[1]))
        between = 4.303 * np.std(value, ddof=1) / math.sqrt(len(value))  # t of three independent pairs
        alone.append(bool(abs(float(np.mean(value)) - 0.04) <= between))
    return covered, alone
