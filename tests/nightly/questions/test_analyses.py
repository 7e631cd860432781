"""How often the intervals of laws and predictions hold the truth: forty stores."""

from pathlib import Path

from tests.support.draws import plausible
from tests.support.intervals import of_laws
from tests.support.synthetic import Truth


def test_the_intervals_of_the_laws_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    found = of_laws(40, tmp_path, Truth(scatter=0.01))
    for name in found[0]:
        n = sum(each[name] for each in found)
        assert plausible(n, 40), f"{name}: {n} of 40"
        assert n >= 34, f"{name}: {n} of 40"  # 38 are expected; fewer have a probability below 1 %
    assert sum(sum(each.values()) for each in found) < 40 * len(found[0])  # intervals of everything are none
