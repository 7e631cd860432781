"""The three tie rules, against ranks counted by hand from a row of logits."""

import numpy as np
import pytest

from rbpx.ties import Ties, rank_of

# Logits 5 3 3 3 1, target one of the threes: one logit is greater, two others are equal.
GREATER, TIES = np.array([0, 1, 4]), np.array([0, 2, 0])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [(Ties.pessimistic, [1.0, 4.0, 5.0]), (Ties.optimistic, [1.0, 2.0, 5.0]), (Ties.mid, [1.0, 3.0, 5.0])],
)
def test_each_rule_places_the_target_among_its_equals(rule: Ties, expected: list[float]) -> None:
    ranks = rank_of(GREATER, TIES, rule)
    assert ranks.dtype == np.float64
    assert ranks.tolist() == expected


def test_the_mid_rule_gives_half_ranks_for_an_odd_number_of_ties() -> None:
    assert rank_of(1, 1, Ties.mid) == 2.5


def test_pessimistic_and_optimistic_ranks_agree_with_sorting_the_logits() -> None:
    rng = np.random.default_rng(0)
    logits_V = rng.integers(0, 5, size=40).astype(np.float64)
    for target in range(40):
        in_order = sorted(logits_V.tolist(), reverse=True)
        first, last = in_order.index(logits_V[target]), 39 - in_order[::-1].index(logits_V[target])
        greater = int(np.sum(logits_V > logits_V[target]))
        ties = int(np.sum(logits_V == logits_V[target])) - 1
        assert rank_of(greater, ties, Ties.optimistic) == first + 1
        assert rank_of(greater, ties, Ties.pessimistic) == last + 1
        assert rank_of(greater, ties, Ties.mid) == (first + last) / 2 + 1


def test_ranks_beyond_two_to_the_thirty_one_stay_exact() -> None:
    assert rank_of(np.int64(2**40), np.int64(1), Ties.mid) == 2**40 + 1.5


def test_a_negative_count_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="negative"):
        rank_of([-1], [0], Ties.optimistic)
