"""In how many draws intervals of an audit hold the truth: runs beside themselves measured again, with known shifts."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from rbpx.questions.audit import AuditKeys
from rbpx.questions.audit.analysis import analyse
from rbpx.runs.group import Group
from rbpx.runs.run import Run
from rbpx.ties import Ties

S = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
N_DOCUMENTS, N_TOKENS = 40, 50
ALPHA, SHIFT, NATS_SHIFT = 0.1, 0.004, 0.001


def _drawn_run(size: int, z_D1: Any, rng: np.random.Generator) -> tuple[Run, pa.Table, dict[str, float]]:
    """A run whose ranks have Pr(R <= k) = exp(-level k^-0.35) on each side, and how far its quantities truly shift.

    Both sides share the luck of a token, as rounding changes little of it.
    """
    u_DT = norm.cdf(np.sqrt(0.3) * z_D1 + np.sqrt(0.7) * rng.normal(size=(N_DOCUMENTS, N_TOKENS)))
    levels = [4.0 * size**-ALPHA, 4.6 * size ** -(ALPHA + SHIFT) * np.exp(rng.normal(0, 0.02))]
    stored, again = (np.ceil((level / -np.log(u_DT)) ** (1 / 0.35)).clip(1, 100_000).ravel() for level in levels)
    scale = 1.02 * size**-NATS_SHIFT * np.exp(rng.normal(0, 0.001))
    n = u_DT.size
    pairs = {
        "doc_id": np.repeat(np.arange(N_DOCUMENTS), N_TOKENS),
        "rank": stored,
        "rank_again": again,
        "n_tokens": np.ones(n, np.int64),
        "n_changed": (stored != again).astype(np.int64),
        "sum_logprob": np.log(u_DT).ravel(),
        "sum_logprob_again": (scale * np.log(u_DT) * rng.normal(1, 0.01, (N_DOCUMENTS, 1))).ravel(),
        "largest_logprob_move": np.zeros(n),
    }
    names = {"source": "measured", "family": "drawn", "dataset": "drawn", "text_hash": "1", "protocol": "paper"}
    counts = {"n_documents": N_DOCUMENTS, "n_skipped": 0, "n_tokens": n, "cross_entropy_nats": None}
    run = Run(
        run_ids=(str(size),), **names, size=str(size), window=512, stride=None, padding="counted", bos=None,
        dtype="bfloat16", revision=None, non_embedding_params=size, vocab_size=100_000, **counts,
    )  # fmt: skip
    truth = {"rbp": float(np.exp(-levels[1]) - np.exp(-levels[0])), "cross_entropy": scale - 1}
    truth |= {"ratio of rbp": levels[1] / levels[0], "ratio of cross_entropy": scale}
    return run, pa.table(pairs), truth


def of_shifts(n_draws: int) -> Counter[str]:
    """How many intervals hold the truth, over texts: of the shifts of RBP_1 and cross-entropy of the smallest model.

    And of those of the exponents of their laws, over models and over these models alone.
    """
    covered: Counter[str] = Counter()
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        z_D1 = rng.normal(size=(N_DOCUMENTS, 1))
        drawn = [_drawn_run(size, z_D1, rng) for size in S]
        group = Group(tuple(run for run, _, _ in drawn), Ties.pessimistic)
        request = AuditKeys(resamples=200, k=1, seed=seed)
        measured = [(run, (pairs, None)) for run, pairs, _ in drawn]
        rows = analyse(measured, group, list(range(N_DOCUMENTS)), request).rows
        truth = drawn[0][2]
        for row in rows:
            if row["kind"] == "run" and row["size"] == str(S[0]):
                covered[row["law"]] += row["difference_lo"] <= truth[row["law"]] <= row["difference_hi"]
        for row, true in zip((row for row in rows if row["kind"] == "law"), (SHIFT, NATS_SHIFT), strict=True):
            law = row["law"]
            covered[f"alpha of {law}"] += row["difference_lo"] <= true <= row["difference_hi"]
            of_these = -np.polyfit(np.log(S), [np.log(truth[f"ratio of {law}"]) for _, _, truth in drawn], 1)[0]
            covered[f"alpha of {law}, these models"] += (
                row["difference_text_lo"] <= of_these <= row["difference_text_hi"]
            )
    assert len(covered) == 6
    return covered
