"""How often statuses doubt laws that are true, whatever the number of sizes, and what they find where a law fails."""

import math

import pytest

from tests.support.judged import OLD, ROWS, cut_of, ladders, share
from tests.support.worlds import FAILING, LEVEL, TRUE, World

POWER = TRUE[0]
WORLDS = {world.name: world for world in FAILING}


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


@pytest.mark.parametrize(
    ("name", "n", "scatter", "rows"),
    [
        ("last run 5 % off", 7, 0.003, ROWS),
        ("large sizes noisier", 10, 0.01, ROWS),
        ("slow then fast", 7, 0.003, ("law",)),
    ],
)
def test_what_fails_is_found_as_often_as_by_each_test_before(
    name: str, n: int, scatter: float, rows: tuple[str, ...]
) -> None:
    draws = 50
    true, drawn = ladders(POWER, n, scatter, 100), ladders(WORLDS[name], n, scatter, draws)
    for row in rows:
        found = share(each.is_doubted(row) for each in drawn)
        for old in OLD[row]:
            before = share(each.old[row][old] > cut_of([true], row, old) for each in drawn)
            assert found >= before - 2 * math.sqrt(0.25 / draws), old  # two standard deviations of a count
