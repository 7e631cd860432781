"""What ranks say of attempts: exact match at k, and between which bounds pass@k of k samples lies.

Pessimistic rank r of a token means that r tokens are at least as likely, so p <= 1/r. A target whose tokens are not all
among the k likeliest has a token with p <= 1/(k + 1), and no chance above that: k attempts hit it with probability at
most u = 1 - (k/(k + 1))^k. So pass@k <= u + (1 - u) E_k, E_k the share of exact matches at k (RBP_k for single tokens),
whatever the model. From below only rank 1 binds: the likeliest of V tokens has p >= 1/V, a target of n of them V^-n, so
pass@k is at least the mean over such items of 1 - (1 - V^-n)^k. docs/explanation/attempts.md derives both.

Shapes: I items, K numbers of attempts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbpx.laws.numeric import Floats
from rbpx.questions.attempts.passing import Items
from rbpx.runs.points.items import Answers
from rbpx.ties import Ties


@dataclass(frozen=True)
class Bound:
    """What ranks say of pass@k.

    Attributes:
        k: attempts, and the rank of a hit.
        passes: pass@k of k samples.
        exact_match: share of items whose tokens all have a rank of at most k; RBP_k where targets are single tokens.
        lower: pass@k is at least that.
        upper: and at most that; None, as `lower`, under a tie rule for which no bound holds.
        likely: share of items with p > 1/(k + 1), which are exact matches all.
    """

    k: int
    passes: float
    exact_match: float
    lower: float | None
    upper: float | None
    likely: float


def exact_matches(answers: Answers, ks: Sequence[int]) -> Floats:
    """Whether all tokens of each item have a rank of at most k, [I, K]."""
    worst_I = np.array([ranks.max() for ranks in answers.ranks])
    return np.asarray(worst_I[:, None] <= np.asarray(ks), np.float64)


def missed_at_most(k: int) -> float:
    """U = 1 - (k/(k + 1))^k, below 1 - 1/e: how often k attempts hit what has a chance of 1/(k + 1)."""
    return float(-np.expm1(-k * np.log1p(1 / k)))


def rank_bounds(answers: Answers, items: Items, ks: Sequence[int], vocab_size: int | None, ties: Ties) -> list[Bound]:
    """The bounds at each k.

    Args:
        answers: with ranks.
        items: the probabilities of the same items.
        ks: attempts.
        vocab_size: V; None where it is not known.
        ties: of the ranks; bounds hold for pessimistic ones.
    """
    matched_IK, passes_IK, p_I = exact_matches(answers, ks), items.passes(ks), items.passes([1])[:, 0]
    first_I = exact_matches(answers, [1])[:, 0]
    n_I = np.array([len(ranks) for ranks in answers.ranks])
    bounds = []
    for at, k in enumerate(ks):
        matched, u, lower, upper = float(matched_IK[:, at].mean()), missed_at_most(k), None, None
        if ties is Ties.pessimistic:
            upper = u + (1 - u) * matched
            if vocab_size is not None:
                least_I = -np.expm1(k * np.log1p(-np.exp(-n_I * np.log(float(vocab_size)))))
                lower = float((first_I * least_I).mean())
        likely = float(np.mean(p_I > 1 / (k + 1)))
        bounds.append(Bound(k, float(passes_IK[:, at].mean()), matched, lower, upper, likely))
    return bounds
