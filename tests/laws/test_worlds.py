"""How often statuses doubt laws that are true, whatever the number of sizes, and what they find where a law fails."""

import numpy as np
import pytest

from rbpx.status import Status
from tests.support.judged import TESTS, ladders
from tests.support.worlds import ALPHA, FAILING, TRUE, Floats, World

POWER = TRUE[0]
WORLDS = {world.name: world for world in FAILING}


def test_an_undertrained_end_is_said_where_tokens_are_known() -> None:
    world = WORLDS["two largest undertrained"]
    known, unknown = (ladders(world, 7, 0.01, 5, knows_tokens=knows) for knows in (True, False))
    assert all("tokens" in each.statuses["combined"] for each in known)
    assert all("tokens" not in each.statuses["combined"] for each in unknown)
    assert all("tokens" not in each.statuses["law"] for each in ladders(POWER, 7, 0.01, 5, knows_tokens=True))
    assert "tokens" not in TESTS


@pytest.mark.parametrize("ratio", [0.5, 1.5])
def test_a_law_that_bends_in_the_midst_of_nine_sizes_says_so(ratio: float) -> None:
    def bent(x_N: Floats, _: np.random.Generator) -> Floats:
        return np.asarray(-ALPHA * (x_N + (ratio - 1) * np.maximum(x_N - np.median(x_N[:-1]), 0)))

    assert all(Status.bends in each.statuses["law"] for each in ladders(World("bent", bent), 9, 0.003, 6))
