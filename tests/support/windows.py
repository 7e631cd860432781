"""Shares of windows of hits drawn from the joint law: models scatter about it, documents about them."""

import numpy as np

from rbpx.questions.emergence.laws import fit_joint

ALPHA = 0.13
LENGTHS = [1, 2, 5]
S = np.geomspace(3e3, 3e6, 7)


def draw(rng: np.random.Generator, resamples: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Shares [M, N] and those of the replicates [B, M, N].

    Models scatter ln(-ln p) by 2 %, alike at all lengths, documents by 0.4 %: a third of that variance is shared by
    all, a third belongs to a size, a third to a cell. A replicate scatters about the sample as the sample does about
    the truth.
    """
    shape = (len(S), len(LENGTHS))
    truth_MN = np.log(0.5 * np.array(LENGTHS)) - ALPHA * np.log(S)[:, None] + rng.normal(0, 0.02, (len(S), 1))

    def of_documents(n: int) -> np.ndarray:
        parts = ((n, 1, 1), (n, len(S), 1), (n, *shape))
        return np.asarray(sum(rng.normal(0, 0.004 / 3**0.5, part) for part in parts))

    p_MN = np.exp(-np.exp(truth_MN + of_documents(1)[0]))
    return p_MN, np.exp(np.log(p_MN) * np.exp(of_documents(resamples)))


def joint_intervals(n_draws: int) -> tuple[list[bool], list[bool]]:
    """Whether the interval of the joint law holds alpha where it is the law, and whether the documents alone do."""
    rng, covered, alone = np.random.default_rng(5), [], []
    for _ in range(n_draws):
        law = fit_joint(S, LENGTHS, *draw(rng)).fit
        text_sd, _ = law.alpha_sds
        assert law.alpha.value is not None
        assert law.alpha.ends is not None
        assert text_sd is not None
        covered.append(law.alpha.ends[0] <= ALPHA <= law.alpha.ends[1])
        alone.append(abs(law.alpha.value - ALPHA) <= 1.96 * text_sd)
    return covered, alone
