"""Scores the items of one run: log-likelihoods of targets and choices in, shares and means out.

Shapes: I items, B resamples of them.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbpx.groups.points.items import Answers
from rbpx.laws.intervals.bootstrap import Recipe, estimate
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, of_share
from rbpx.laws.numeric.arrays import Floats


@dataclass(frozen=True)
class Scores:
    """The scores of some items of one run; None where the items have no such thing.

    Attributes:
        n_items: how many.
        chance: accuracy of guessing.
        p_chance: how often guessing would be right at least as often as acc; None without choices.
        acc: share of items that are right by log-likelihood, or greedily where there are no choices.
        acc_stderr: its standard error, from the n - 1 variance of the items, as lm-evaluation-harness gives it.
        acc_norm: by log-likelihood over characters.
        acc_bytes: by log-likelihood over bytes.
        perplexity: exp of the mean nats of a target.
        word_perplexity: exp of the nats of a word of a text.
        byte_perplexity: exp of the nats of a byte.
        bits_per_byte: bits of a byte.
        n_tied: items that a tie decides: of choices as likely as the right one, or of greedy decoding.
    """

    n_items: int
    chance: float | None
    p_chance: float | None
    acc: Estimate
    acc_stderr: float | None
    acc_norm: Estimate
    acc_bytes: Estimate
    perplexity: Estimate
    word_perplexity: Estimate
    byte_perplexity: Estimate
    bits_per_byte: Estimate
    n_tied: int


def score(answers: Answers, weights_BI: npt.NDArray[np.int64], chosen_I: npt.NDArray[np.bool_]) -> Scores:
    """The scores of chosen items, with intervals over items.

    Args:
        answers: of a run.
        weights_BI: how often each item is drawn in each resample, shape [B, I].
        chosen_I: which items count.
    """
    drawn_BI = weights_BI[:, chosen_I].astype(np.float64)
    n_items = int(chosen_I.sum())

    def of(values_I: Floats) -> Floats:
        return values_I[chosen_I]

    def share(right_I: Floats) -> Estimate:
        right = of(right_I)
        return of_share(int(right.sum()), n_items) if np.isfinite(right).all() else NO_ESTIMATE

    def ratio(above_I: Floats, below_I: Floats, exponentiated: bool = True) -> Estimate:
        if not (np.isfinite(above_I).all() and np.isfinite(below_I).all()):
            return NO_ESTIMATE
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # a resample may draw none of them
            value, resampled_B = above_I.sum() / below_I.sum(), (drawn_BI @ above_I) / (drawn_BI @ below_I)
            if exponentiated:
                value, resampled_B = np.exp(value), np.exp(resampled_B)
        return estimate(float(value), resampled_B, n_items, Recipe.percentile)

    acc = share(answers.right_I)
    chance = float(of(answers.chance_I).mean()) if n_items else math.nan
    has_choices = math.isfinite(chance)
    nats_I, bytes_I, words_I = of(answers.nats_I), of(answers.bytes_I), of(answers.words_I)
    is_text = bool(np.isfinite(words_I).all())
    return Scores(
        n_items=n_items,
        chance=chance if has_choices else None,
        p_chance=_p_of_guessing(int(of(answers.right_I).sum()), of(answers.chance_I)) if has_choices else None,
        acc=acc,
        acc_stderr=None if acc.value is None or n_items < 2 else math.sqrt(acc.value * (1 - acc.value) / (n_items - 1)),
        acc_norm=share(answers.right_by_characters_I),
        acc_bytes=share(answers.right_by_bytes_I),
        perplexity=NO_ESTIMATE if is_text else ratio(nats_I, np.ones(n_items)),
        word_perplexity=ratio(nats_I, words_I),
        byte_perplexity=ratio(nats_I, bytes_I),
        bits_per_byte=ratio(nats_I / math.log(2), bytes_I, exponentiated=False),
        n_tied=int(answers.tied_I[chosen_I].sum()),
    )


def _p_of_guessing(n_right: int, chance_I: Floats) -> float:
    """The probability that guessing gives so many right or more; items may differ in how many choices they have."""
    from scipy.stats import binom  # half a second, which only groups with items need

    share_N = np.ones(1)  # of each number of right ones
    for chance, n in zip(*np.unique(chance_I, return_counts=True), strict=True):
        share_N = np.convolve(share_N, binom.pmf(np.arange(n + 1), n, chance))
    return float(share_N[n_right:].sum())
