"""Noise towards the vocabulary: the R2 that a drawn law shows lies where the model of the noise says, and a broken one
below."""

import re
from pathlib import Path

import numpy as np
import pytest

from rbpx.questions.regimes.noise import AtK, predict_noise
from tests.support import drawn_answers
from tests.support.asking import ask
from tests.support.drawn_answers import ALPHA, LADDER, LEVELS, N_DOCUMENTS, N_TOKENS, misses
from tests.support.draws import fewest
from tests.support.synthetic import Truth, write_store


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


def test_the_first_sentence_says_how_far_the_law_holds_and_the_table_has_that_k(tmp_path: Path) -> None:
    asked = ask(write_store(tmp_path, Truth(scatter=0.01), seed=3), "regimes", resamples=50)
    told, *lines = asked.table(100, details=False).splitlines()
    stands = {row["k"]: row["params"]["regime"]["stands"] for row in asked.rows}
    reach = max((k for k in stands if all(holds for of, holds in stands.items() if of <= k)), default=None)
    assert len(asked.rows) > 20
    assert (f"at k = 1 to {reach:,} (alpha {asked.rows[0]['alpha']:.3f}" in told) == (reach is not None)
    shown = [int(line.split()[0].replace(",", "")) for line in lines if re.match(r" +[\d,]+  ", line)]
    assert {1, 10, 100, reach} - {None} <= set(shown)
    assert len(shown) <= 8
    assert max(len(line) for line in lines if line.startswith(" ")) <= 100
