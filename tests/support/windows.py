"""Shares of windows of hits drawn from a pooled law: models scatter about it, documents about them, windows count."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbpx.questions.emergence.laws import fit_joint
from rbpx.questions.emergence.pooled import fit_pooled
from rbpx.status import Status

LENGTHS = [1, 2, 5, 10, 20, 50]
ALPHA = 0.13
CONSTANTS = [2.8, 4.8, 9.9, 15.8, 22.7, 28.3]  # at S = 1; they grow slower than N, as those of real text do
_DEPENDENCE = 3  # windows overlap: so many of them are as good as one


@dataclass(frozen=True, eq=False)
class Drawn:
    """Shares [M, N], those of the replicates [B, M, N], and windows [M, N] (None where nothing is counted)."""

    p_MN: np.ndarray
    p_BMN: np.ndarray
    windows_MN: np.ndarray | None


def sizes(n: int) -> np.ndarray:
    """Sizes over three decades, as those of the bundled ladder."""
    return np.geomspace(3e3, 3e6, n)


def draw(
    rng: np.random.Generator,
    n_sizes: int,
    model_sd: float,
    shared: float = 1.0,
    resamples: int = 40,
    windows: int = 20_000,
    document_sd: float = 0.004,
    constants: Sequence[float] = CONSTANTS,
    alphas: Sequence[float] | float = ALPHA,
    counted: bool = True,
) -> Drawn:
    """One draw; `shared` is the part of the variance of a model that all its window lengths have in common.

    Documents scatter ln(-ln p) by `document_sd`: a third of its variance is shared by all, a third belongs to a size,
    a third to a cell. A replicate scatters about the sample as the sample does about the truth.
    """
    shape = (n_sizes, len(constants))
    own = rng.normal(0, model_sd * (1 - shared) ** 0.5, shape)
    of_model_MN = rng.normal(0, model_sd * shared**0.5, (n_sizes, 1)) + own
    truth_MN = np.log(constants) - np.asarray(alphas) * np.log(sizes(n_sizes))[:, None] + of_model_MN

    def of_documents(n: int) -> np.ndarray:
        parts = ((n, 1, 1), (n, n_sizes, 1), (n, *shape))
        return np.asarray(sum(rng.normal(0, document_sd / 3**0.5, part) for part in parts))

    def count(p: np.ndarray) -> np.ndarray:
        if not counted:
            return p
        return np.minimum(rng.poisson(p * windows / _DEPENDENCE) * _DEPENDENCE / windows, 1.0)

    p_MN = count(np.exp(-np.exp(truth_MN + of_documents(1)[0])))
    with np.errstate(divide="ignore"):  # a share of 0 stays 0
        p_BMN = count(np.exp(np.log(p_MN) * np.exp(of_documents(resamples))))
    return Drawn(p_MN, p_BMN, np.full(shape, windows) if counted else None)


def pooled_intervals(n_sizes: int, shared: float, n_draws: int) -> tuple[list[bool], list[bool]]:
    """Whether the interval of the pooled law holds alpha, and whether its points are said to bend.

    Models scatter by 2 %, documents by 0.4 % of ln(-ln p).
    """
    rng, covered, bends = np.random.default_rng([n_sizes, int(10 * shared)]), [], []
    for _ in range(n_draws):
        drawn = draw(rng, n_sizes, model_sd=0.02, shared=shared, resamples=40)
        law = fit_pooled(sizes(n_sizes), LENGTHS, drawn.p_MN, drawn.windows_MN, drawn.p_BMN)
        assert law.fit.alpha.ends is not None
        covered.append(law.fit.alpha.ends[0] <= ALPHA <= law.fit.alpha.ends[1])
        bends.append(Status.bends in law.reasons)
    return covered, bends


def joint_intervals(n_draws: int) -> tuple[list[bool], list[bool]]:
    """Whether the interval of the joint law holds alpha where it is the law, and whether the documents alone do."""
    rng, covered, alone = np.random.default_rng(5), [], []
    for _ in range(n_draws):
        drawn = draw(rng, 7, model_sd=0.02, resamples=40, constants=[0.5 * N for N in (1, 2, 5)], counted=False)
        law = fit_joint(sizes(7), [1, 2, 5], drawn.p_MN, drawn.p_BMN)
        assert law.fit.alpha.value is not None
        assert law.fit.alpha.ends is not None
        assert law.text_variance is not None
        covered.append(law.fit.alpha.ends[0] <= ALPHA <= law.fit.alpha.ends[1])
        alone.append(abs(law.fit.alpha.value - ALPHA) <= 1.96 * law.text_variance**0.5)
    return covered, alone
