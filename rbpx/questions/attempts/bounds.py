"""What ranks say of attempts: exact match at k, and between which bounds pass@k of k samples lies.

Pessimistic rank r of a token means that r tokens are at least as likely, so p <= 1/r. A target whose tokens are not all
among the k likeliest has a token with p <= 1/(k + 1), and no chance above that: k attempts hit it with probability at
most u = 1 - (k/(k + 1))^k. So pass@k <= u + (1 - u) E_k, E_k the share of exact matches at k (RBP_k for single tokens),
whatever the model. From below only rank 1 binds: the likeliest of V tokens has p >= 1/V, a target of n of them V^-n, so
pass@k is at least the mean over such items of 1 - (1 - V^-n)^k. docs/explanation/attempts.md derives both.

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
    """U = 1 - (k/(k + 1))^k, below 1 - 1/e: how often k attempts hit what has a chance of 1/(k + 1)."""
    return float(-np.expm1(-k * np.log1p(1 / k)))


def rank_bounds(
    answers: Answers, items: Items, ks: Sequence[int], vocab_size: int | None, ties: Ties
) -> Iterator[Record]:
    """What ranks say of pass@k at each k.

    `passes` is pass@k; `exact_match` the share of items whose tokens all have a rank of at most k, RBP_k where targets
    are single tokens; `lower` and `upper` what it lies between, None under a tie rule for which no bound holds;
    `likely` the share of items with p > 1/(k + 1), which are exact matches all.

    Args:
        answers: with ranks.
        items: the probabilities of the same items.
        ks: attempts, and ranks of a hit.
        vocab_size: V; None where it is not known.
        ties: of the ranks; bounds hold for pessimistic ones.
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
