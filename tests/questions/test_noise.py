"""Noise towards the vocabulary: the R2 that a drawn law shows lies where the model of the noise says, and a broken one
below."""

import numpy as np
import pytest

from rbpx.questions.regimes.noise import AtK, predict_noise
from tests.support import drawn_answers
from tests.support.drawn_answers import ALPHA, LADDER, LEVELS, N_DOCUMENTS, N_TOKENS, misses
from tests.support.draws import fewest


def test_the_measured_r2_of_a_law_that_goes_on_is_as_low_as_noise_alone_makes_it() -> None:
    within, n_known, (few, _, many) = drawn_answers.of_noise(40)
    assert n_known > 70
    assert within >= fewest(n_known)
    assert many / few == pytest.approx(LEVELS[10] / LEVELS[3000], rel=0.5)  # as misses grow rarer, tokens grow


def test_a_law_that_stops_is_told_from_noise_and_its_noise_explains_little() -> None:
    rng = np.random.default_rng(5)
    stopped = [misses(rng, {10: ALPHA, 1000: 0.0, 3000: ALPHA}) for _ in range(20)]
    told = [predict_noise(LADDER.tolist(), N_DOCUMENTS * N_TOKENS, series)[1]["predicted"] for series in stopped]
    said = [each for each in told if each is not None]
    assert sum(each["is_noise"] is False for each in said) >= 18
    assert np.median([each["explained"] for each in said if each["explained"] is not None]) < 0.2


def test_nothing_is_said_where_no_law_stands_or_nothing_is_missed() -> None:
    series = misses(np.random.default_rng(6), dict.fromkeys(LEVELS, ALPHA))
    none = [AtK(at.ln_y_N, at.ln_y_BN, at.alpha, at.r2, at.models_sd, False) for at in series]
    nothing = [{"predicted": None}] * len(none)
    assert predict_noise(LADDER.tolist(), N_DOCUMENTS * N_TOKENS, none) == nothing
    empty = AtK(np.full(7, -np.inf), np.zeros((0, 7)), None, None, 0.0, False)
    assert predict_noise(LADDER.tolist(), N_DOCUMENTS * N_TOKENS, [*series, empty])[-1]["predicted"] is None
