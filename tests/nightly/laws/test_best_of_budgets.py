"""How often what is said of a budget, and of serving, holds the truth."""

import pytest

from tests.support.coverage import of_best_run, of_served_run
from tests.support.draws import plausible


@pytest.mark.parametrize("of_run", [of_best_run, of_served_run])
def test_what_is_said_of_a_budget_holds_the_truth(of_run) -> None:
    held = of_run(300)
    assert {name: n for name, n in held.items() if not (n > 0.95 * 300 or plausible(n, 300))} == {}
