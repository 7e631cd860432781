"""How often statuses doubt laws that are true, whatever the number of sizes."""

import math

import pytest

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
