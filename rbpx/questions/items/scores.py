"""Scores the items of a task as lm-evaluation-harness does.

Shapes: I items, B bootstrap replicates over them.
"""

import math

import numpy as np
import numpy.typing as npt

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, effective_number, estimate, flat, of_share
from rbpx.laws.numeric import Floats
from rbpx.runs.points.items import Answers
from rbpx.store.store import Record


def score(answers: Answers, weights_BI: npt.NDArray[np.int64], chosen_I: npt.NDArray[np.bool_]) -> Record:
    """The scores of chosen items of one run; None where items lack what a score needs.

    `n_tied` items are decided by a tie. `chance` is the accuracy of guessing, `p_chance` the probability that it is
    right as often. `acc` is by log-likelihood, or greedily without choices, `acc_stderr` from the n - 1 variance over
    items, as in lm-evaluation-harness; `acc_norm` is per character, `acc_bytes` per byte. `perplexity` is exp of the
    mean nats of a target; `word_perplexity` and `byte_perplexity` of those per word and byte of a text.
    """
    drawn_BI, n_items = weights_BI[:, chosen_I].astype(np.float64), int(chosen_I.sum())
    right_I, chance_I = answers.right_I[chosen_I], answers.chance_I[chosen_I]
    nats_I, bytes_I, words_I = (each[chosen_I] for each in (answers.nats_I, answers.bytes_I, answers.words_I))

    def share(right_I: Floats) -> Estimate:
        return of_share(int(right_I.sum()), n_items) if np.isfinite(right_I).all() else NO_ESTIMATE

    def ratio(above_I: Floats, below_I: Floats, exponentiated: bool = True) -> Estimate:
        if not (np.isfinite(above_I).all() and np.isfinite(below_I).all()):
            return NO_ESTIMATE
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # a replicate may draw none of them
            value, replicate_B = above_I.sum() / below_I.sum(), (drawn_BI @ above_I) / (drawn_BI @ below_I)
            if exponentiated:
                value, replicate_B = np.exp(value), np.exp(replicate_B)
        return estimate(float(value), replicate_B, effective_number(below_I), Recipe.percentile)

    acc, has_choices = share(right_I), n_items > 0 and bool(np.isfinite(chance_I).all())
    scores: Record = {"n_items": n_items, "chance": None, "p_chance": None, "acc": acc, "acc_stderr": None}
    if has_choices:
        scores |= {"chance": float(chance_I.mean()), "p_chance": _p_of_guessing(int(right_I.sum()), chance_I)}
    if acc.value is not None and n_items > 1:
        scores["acc_stderr"] = math.sqrt(acc.value * (1 - acc.value) / (n_items - 1))
    scores |= {
        "acc_norm": share(answers.right_by_characters_I[chosen_I]),
        "acc_bytes": share(answers.right_by_bytes_I[chosen_I]),
        "perplexity": NO_ESTIMATE if np.isfinite(words_I).all() else ratio(nats_I, np.ones(n_items)),
        "word_perplexity": ratio(nats_I, words_I),
        "byte_perplexity": ratio(nats_I, bytes_I),
        "bits_per_byte": ratio(nats_I / math.log(2), bytes_I, exponentiated=False),
        "n_tied": int(answers.tied_I[chosen_I].sum()),
    }
    return flat(scores)


def _p_of_guessing(n_right: int, chance_I: Floats) -> float:
    """That guessing gets so many right; items may differ in their number of choices."""
    from scipy.stats import binom  # takes half a second, which only groups with items need

    share_N = np.ones(1)  # probability of each number right
    for chance, n in zip(*np.unique(chance_I, return_counts=True), strict=True):
        share_N = np.convolve(share_N, binom.pmf(np.arange(n + 1), n, chance))
    return float(share_N[n_right:].sum())
