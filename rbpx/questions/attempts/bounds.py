"""Bounds pass@k from ranks, and computes exact match at k.

A token of pessimistic rank r has at least r tokens as likely as itself, so p <= 1/r. If a target has a token outside
the k likeliest, its p <= 1/(k + 1), and k attempts hit it with probability at most u = 1 - (k/(k + 1))^k. So pass@k <=
u + (1 - u) E_k for any model, with E_k the share of exact matches at k (RBP_k for single tokens). Only rank 1 gives a
lower bound: the likeliest of V tokens has p >= 1/V, so pass@k is at least the mean of 1 - (1 - V^-n)^k over items whose
n tokens all have rank 1. docs/explanation/attempts.md derives both.

Shapes: I items, K numbers of attempts.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from rbpx.laws.numeric import Floats
from rbpx.questions.attempts.passing import Items
from rbpx.runs.points.items import Answers
from rbpx.store.store import Record
from rbpx.ties import Ties


def exact_matches(answers: Answers, ks: Sequence[int]) -> Floats:
    """Whether all tokens of each item have a rank of at most k, [I, K]."""
    worst_I = np.array([ranks.max() for ranks in answers.ranks])
    return np.asarray(worst_I[:, None] <= np.asarray(ks), np.float64)


def missed_at_most(k: int) -> float:
    """Returns u = 1 - (k/(k + 1))^k < 1 - 1/e, the chance that k attempts hit what has p = 1/(k + 1)."""
    return float(-np.expm1(-k * np.log1p(1 / k)))


def rank_bounds(
    answers: Answers, items: Items, ks: Sequence[int], vocab_size: int | None, ties: Ties
) -> Iterator[Record]:
    """Yields pass@k with its bounds at each k.

    `passes` is pass@k; `exact_match` the share of items whose tokens all have a rank of at most k; `lower` and `upper`
    the bounds of pass@k, None unless ties are pessimistic; `likely` the share of items with p > 1/(k + 1), which are
    all exact matches.

    Args:
        answers: of the items, with ranks.
        items: their probabilities.
        ks: attempts, and the highest rank of a hit.
        vocab_size: V.
        ties: rule of the ranks.
    """
    first_I, p_I = exact_matches(answers, [1])[:, 0], items.passes([1])[:, 0]
    n_I = np.array([len(ranks) for ranks in answers.ranks])
    for k in ks:
        matched, u, lower, upper = float(exact_matches(answers, [k]).mean()), missed_at_most(k), None, None
        if ties is Ties.pessimistic:
            upper = u + (1 - u) * matched
            if vocab_size is not None:
                lower = float((first_I * -np.expm1(k * np.log1p(-(float(vocab_size) ** -n_I)))).mean())
        row = {"k": k, "passes": float(items.passes([k]).mean()), "exact_match": matched}
        yield row | {"lower": lower, "upper": upper, "likely": float(np.mean(p_I > 1 / (k + 1)))}
