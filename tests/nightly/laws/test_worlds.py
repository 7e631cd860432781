"""How often statuses doubt laws that are true, whatever the number of sizes."""

import math

import numpy as np
import pytest

from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.warnings import n_unexpected_tokens
from tests.support.judged import ROWS, ladders, share
from tests.support.worlds import LEVEL, TRUE, World

POWER = TRUE[0]


def at_most(level: float, n: int) -> float:
    """A share of n that one level exceeds in fewer than one of 700 counts: three standard deviations more."""
    return level + 3 * math.sqrt(level * (1 - level) / n)


@pytest.mark.parametrize("n", [4, 5, 7, 10])
def test_a_row_of_a_power_law_is_doubted_once_in_twenty_whatever_the_number_of_sizes(n: int) -> None:
    drawn = ladders(POWER, n, 0.01, 100)
    for row in ROWS:
        assert share(each.is_doubted(row) for each in drawn) <= at_most(LEVEL, len(drawn))


@pytest.mark.parametrize("n", [4, 5, 7, 10])
@pytest.mark.parametrize("world", TRUE, ids=lambda world: world.name)
def test_so_is_a_prediction_over_forms_where_one_of_them_is_true(world: World, n: int) -> None:
    for scatter in (0.003, 0.01, 0.03):
        drawn = ladders(world, n, scatter, 400)
        assert share(each.is_doubted("combined") for each in drawn) <= at_most(LEVEL, len(drawn))


@pytest.mark.parametrize(("times", "held"), [(0.5, 0.95), (2.0, 0.85)])
@pytest.mark.parametrize("power", [0, 1])
def test_without_sizes_that_saw_other_tokens_a_prediction_holds_its_share(
    times: float, held: float, power: int
) -> None:
    """Two of seven sizes of Chinchilla's form, on the tokens of all or on 20 each, saw fewer or more; at ten times."""
    inside, draws, S = np.zeros(2), 40, np.geomspace(1e7, 3e9, 7)
    announced = 20 * S if power else np.full(7, 3e10)
    D = announced * np.r_[np.ones(5), times**0.5, times]
    assert n_unexpected_tokens(S.tolist(), D.tolist()) == (2 if times > 1 else -2)
    for draw in range(draws):
        noise = np.exp(0.003 * np.random.default_rng([57, power, draw]).standard_normal(8))
        at = np.append(S, 3e10), np.append(D, 20 * 3e10 if power else 3e10)
        *y, new = ((1.7 + 406.4 * at[0] ** -0.34 + 410.7 * at[1] ** -0.28) * noise).tolist()
        for which, m in enumerate((7, 5)):
            (told,) = average_forms(S[:m].tolist(), y[:m], [3e10]) or ()
            inside[which] += told.lo is not None and told.hi is not None and told.lo <= new <= told.hi
    assert inside[0] <= held * draws
    assert inside[1] >= 0.9 * draws
