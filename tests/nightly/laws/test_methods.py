"""How often the intervals of each method hold the truth, over many draws."""

import pytest

from rbpx.laws.names import Method
from tests.support.coverage import of_power_law
from tests.support.draws import plausible


@pytest.mark.parametrize("n", [4, 7])
@pytest.mark.parametrize("noise", [(0.02, 0, 0), (0, 0.02, 0.01), (0.02, 0.01, 0.01)], ids=["models", "text", "both"])
def test_the_intervals_of_a_law_hold_the_truth(n: int, noise: tuple[float, float, float]) -> None:
    held = of_power_law(200, Method.ols, n, *noise)
    assert {name: count for name, count in held.items() if not 180 <= count <= 199} == {}


@pytest.mark.parametrize("method", [Method.weighted, Method.robust])
def test_the_intervals_of_the_other_methods_hold_the_truth(method: Method) -> None:
    held = of_power_law(200, method, 7, 0.02, 0.01, 0.01)
    assert {name: count for name, count in held.items() if not plausible(count, 200)} == {}


@pytest.mark.parametrize("noise", [(0.02, 0, 0), (0, 0.005, 0.01), (0.01, 0.005, 0.01)], ids=["models", "text", "both"])
def test_the_intervals_of_a_law_with_an_offset_hold_the_truth(noise: tuple[float, float, float]) -> None:
    held = of_power_law(200, Method.offset, 7, *noise, E=0.8)
    assert held.pop("closed") >= 0.95 * 200, "open intervals would hold anything"
    assert {name: count for name, count in held.items() if not plausible(count, 200)} == {}
