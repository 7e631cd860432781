"""Scores of the items of one run: the log-likelihoods of its targets and choices in, shares and means out.

Shapes: I items, B resamples of them.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.stats import binom

from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.interval import Estimate, of_share

Floats = npt.NDArray[np.float64]
_UNKNOWN = Estimate(None, None, None)


@dataclass(frozen=True, eq=False)
class Answers:
    """What one run gave the items of a task, by item.

    Attributes:
        right_I: whether the right choice has the highest log-likelihood; without choices, whether each token is greedy.
        right_by_characters_I: the same with log-likelihoods over the characters of the choice; NaN without choices.
        right_by_bytes_I: over its bytes.
        chance_I: one over the number of choices; NaN without.
        nats_I: of the target, or of the right choice.
        bytes_I: that its tokens stand for.
        words_I: of a text; NaN for items.
        tied_I: whether greedy decoding hangs on a tie.
        ranks: of its tokens, in order.
        category_I: what it is about, or None.
        domain_I: what that belongs to, or None.
    """

    right_I: Floats
    right_by_characters_I: Floats
    right_by_bytes_I: Floats
    chance_I: Floats
    nats_I: Floats
    bytes_I: Floats
    words_I: Floats
    tied_I: npt.NDArray[np.bool_]
    ranks: list[Floats]
    category_I: npt.NDArray[np.object_]
    domain_I: npt.NDArray[np.object_]

    @property
    def of_items(self) -> bool:
        """Whether these are items of a task, not texts."""
        return not np.isfinite(self.words_I).all()


@dataclass(frozen=True)
class Scores:
    """The scores of some items of one run; None where the items have no such thing.

    Attributes:
        n_items: how many.
        chance: accuracy of guessing.
        p_chance: how often guessing would be right at least as often as acc; None without choices.
        acc: share of items that are right by log-likelihood, or greedily where there are no choices.
        acc_norm: by log-likelihood over characters.
        acc_bytes: by log-likelihood over bytes.
        perplexity: exp of the mean nats of a target.
        word_perplexity: exp of the nats of a word of a text.
        byte_perplexity: exp of the nats of a byte.
        bits_per_byte: bits of a byte.
        n_tied: items of which greedy decoding hangs on a tie.
    """

    n_items: int
    chance: float | None
    p_chance: float | None
    acc: Estimate
    acc_norm: Estimate
    acc_bytes: Estimate
    perplexity: Estimate
    word_perplexity: Estimate
    byte_perplexity: Estimate
    bits_per_byte: Estimate
    n_tied: int


def answers_of(scored: pa.Table) -> Answers:
    """What a run gave its items, from the rows of `item_scores`: the true ones first, in the order of the items."""
    columns: dict[str, Any] = {
        name: scored[name].to_pylist()
        if name in ("ranks", "category", "domain", "correct")
        else scored[name].to_numpy()
        for name in scored.column_names
    }
    is_true = np.array([correct is not False for correct in columns["correct"]])
    true = np.flatnonzero(is_true)
    n_items = len(true)
    has_choices = len(true) > 0 and columns["correct"][true[0]] is not None
    right = {name: np.full(n_items, np.nan) for name in ("plain", "characters", "bytes")}
    chance_I = np.full(n_items, np.nan)
    is_item = scored["n_characters"].null_count == 0
    if has_choices:
        place = {int(item): at for at, item in enumerate(columns["item"][true])}
        at_N = np.array([place[int(item)] for item in columns["item"]])
        loglikelihood = columns["loglikelihood"]
        over = {"plain": 1.0, "characters": columns["n_characters"], "bytes": columns["n_answer_bytes"]}
        for name, length in over.items():
            right[name] = _is_best(loglikelihood / length, at_N, columns["choice"], is_true, n_items)
        chance_I = 1 / np.bincount(at_N, minlength=n_items)
    elif is_item:
        right["plain"] = columns["is_greedy"][true].astype(np.float64)
    return Answers(
        right_I=right["plain"],
        right_by_characters_I=right["characters"],
        right_by_bytes_I=right["bytes"],
        chance_I=chance_I,
        nats_I=-columns["loglikelihood"][true],
        bytes_I=columns["n_bytes_scored"][true].astype(np.float64),
        words_I=columns["n_words"][true].astype(np.float64),
        tied_I=columns["is_tied"][true].astype(bool),
        ranks=[np.asarray(columns["ranks"][at]) for at in true],
        category_I=np.array([columns["category"][at] for at in true], object),
        domain_I=np.array([columns["domain"][at] for at in true], object),
    )


def _is_best(score_N: Floats, at_N: Any, choice_N: Any, is_true: Any, n_items: int) -> Floats:
    """Whether the right choice of each item has the highest score; of equal ones the first counts, as in numpy."""
    order = np.lexsort((choice_N, -score_N, at_N))
    first = np.ones(len(order), bool)
    first[1:] = at_N[order][1:] != at_N[order][:-1]
    best = order[first]
    right_I = np.zeros(n_items)
    right_I[at_N[best]] = is_true[best]
    return right_I


def score(answers: Answers, weights_BI: npt.NDArray[np.int64], chosen_I: npt.NDArray[np.bool_]) -> Scores:
    """The scores of chosen items, with intervals over items.

    Args:
        answers: of a run.
        weights_BI: how often each item is drawn in each resample, shape [B, I].
        chosen_I: which items count.
    """
    drawn_BI = weights_BI[:, chosen_I].astype(np.float64)
    n_items = int(chosen_I.sum())
    n_I = np.ones(n_items)

    def share(right_I: Floats) -> Estimate:
        return of_share(int(right_I.sum()), n_items) if np.isfinite(right_I).all() else _UNKNOWN

    def ratio(above_I: Floats, below_I: Floats, power: float | None = None) -> Estimate:
        if not (np.isfinite(above_I).all() and np.isfinite(below_I).all()):
            return _UNKNOWN
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # a resample may draw none of them
            value, resampled_B = above_I.sum() / below_I.sum(), (drawn_BI @ above_I) / (drawn_BI @ below_I)
            if power is not None:
                value, resampled_B = np.exp(power * value), np.exp(power * resampled_B)
        return estimate(float(value), resampled_B, n_items, Recipe.percentile)

    def of(values_I: Floats) -> Floats:
        return values_I[chosen_I]

    chance = float(of(answers.chance_I).mean()) if n_items else math.nan
    nats_I, bytes_I = of(answers.nats_I), of(answers.bytes_I)
    is_text = bool(np.isfinite(of(answers.words_I)).all())
    return Scores(
        n_items=n_items,
        chance=chance if math.isfinite(chance) else None,
        p_chance=_p_of_guessing(int(of(answers.right_I).sum()), of(answers.chance_I))
        if math.isfinite(chance)
        else None,
        acc=share(of(answers.right_I)),
        acc_norm=share(of(answers.right_by_characters_I)),
        acc_bytes=share(of(answers.right_by_bytes_I)),
        perplexity=_UNKNOWN if is_text else ratio(nats_I, n_I, power=1),
        word_perplexity=ratio(nats_I, of(answers.words_I), power=1),
        byte_perplexity=ratio(nats_I, bytes_I, power=1),
        bits_per_byte=ratio(nats_I / math.log(2), bytes_I),
        n_tied=int(answers.tied_I[chosen_I].sum()),
    )


def _p_of_guessing(n_right: int, chance_I: Floats) -> float:
    """The probability that guessing gives so many right or more; items may differ in how many choices they have."""
    share_N = np.ones(1)  # of each number of right ones
    for chance, n in zip(*np.unique(chance_I, return_counts=True), strict=True):
        share_N = np.convolve(share_N, binom.pmf(np.arange(n + 1), n, chance))
    return float(share_N[n_right:].sum())
