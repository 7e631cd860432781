"""How often intervals of a multiplier over a surface hold the drawn one."""

import pytest

from rbpx.laws.names import Axis
from tests.support.shifts import draw_pair, judged

AXES = (Axis.S, Axis.D, Axis.C)


@pytest.mark.parametrize("world", ["growing", "bent"])
def test_intervals_hold_the_drawn_multiplier(world: str) -> None:
    """The cheap version of benchmarks/multiplier.py: 20 draws, of which 16 is three standard deviations below .95."""
    told = [judged(draw_pair(world, AXES[seed % 3], seed)) for seed in range(20)]
    for name in ("least C", "middle C", "most C", "slope"):
        assert sum(each[name] is True for each in told) >= 16, name
