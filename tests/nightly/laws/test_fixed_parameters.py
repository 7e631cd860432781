"""How often intervals and tests of constants that are given hold, where what is given is true and where it is not."""

import math

import numpy as np
import pytest

from tests.support.coverage import of_given_offset, of_prior_of_an_offset, p_of_given_surface

SE = math.sqrt(0.95 * 0.05)  # of one draw


def test_intervals_hold_at_their_rate_where_what_is_given_is_true_and_not_where_it_is_wrong() -> None:
    right, wrong = of_given_offset(1000, 1.7), of_given_offset(1000, 1.6)
    assert right["alpha"] / 1000 == pytest.approx(0.95, abs=3 * SE / math.sqrt(1000))
    assert right["doubted"] / 1000 == pytest.approx(0.05, abs=3 * SE / math.sqrt(1000))
    assert wrong["alpha"] < 100
    assert wrong["doubted"] > 900


def test_predictions_hold_where_the_truth_is_of_the_prior() -> None:
    held, narrower = of_prior_of_an_offset(1000)
    assert held / 1000 > 0.95 - 3 * SE / math.sqrt(1000)
    assert narrower < 0.9


def test_a_surface_doubts_a_true_value_in_one_draw_of_twenty_and_one_far_off_in_most() -> None:
    p = p_of_given_surface(400, 1.69)
    assert np.mean(p < 0.05) < 0.05 + 3 * SE / math.sqrt(400)
    assert np.mean(p) == pytest.approx(0.5, abs=3 * math.sqrt(1 / 12 / 400))
    assert np.mean(p_of_given_surface(400, 1.2) < 0.05) > 0.8
