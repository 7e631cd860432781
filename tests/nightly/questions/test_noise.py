"""How often the model of noise towards the vocabulary holds, over hundreds of drawn laws."""

import pytest

from tests.support import drawn_answers
from tests.support.drawn_answers import LEVELS
from tests.support.draws import plausible


def test_the_measured_r2_of_a_law_that_goes_on_is_as_low_as_noise_alone_makes_it() -> None:
    within, n_known, (few, _, many) = drawn_answers.of_noise(400)
    assert plausible(within, n_known)
    assert many / few == pytest.approx(LEVELS[10] / LEVELS[3000], rel=0.5)
