"""A status has one word wherever people read, and its value where programs do; each says what speaks against a law."""

import json
import re
from pathlib import Path

import pytest

from rbpx.status import Status
from rbpx.store.store import Store
from tests.support.asking import Asked, ask, imported
from tests.support.composed import here
from tests.support.raised import RAISED

SIZES = [10**power for power in (5, 6, 7, 8, 9)]
POINTS = {  # cross-entropy that does not fall, that turns round, at its end, that falls, and that falls until the last
    "flat": [3.0, 3.1, 2.95],
    "turns": [3.0, 2.5, 2.3, 2.52, 3.05],
    "ends": [4.0, 3.0, 2.4, 2.2, 2.25],
    "falls": [4.0, 3.21, 2.56, 2.06, 1.65],
    "stops": [4.0, 3.2, 2.56, 2.05, 2.2],
}
WORDS = {  # by what csv and json say
    **{"ok": "passes", "bends": "bends", "no_trend": "no trend", "backtest_failed": "failed"},
    **{"intervals_missed": "too tight", "barely_determined": "unsure"},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [f"{text},{S},{y}" for text, values in POINTS.items() for S, y in zip(SIZES, values, strict=False)]
    store = imported(tmp_path_factory.mktemp("words") / "store", "\n".join(["dataset,S,loss_nats", *lines]))
    return store


@pytest.fixture(scope="module")
def fitted(store: Path) -> Asked:
    return ask(store, "fit", laws=["cross_entropy"])


def test_at_most_32_statuses_stand_beside_numbers() -> None:
    assert len(Status) <= 32
    assert {*RAISED} == {*Status}


@pytest.mark.parametrize("status", Status)
def test_each_status_is_raised_by_the_world_that_its_page_names(status: Status, tmp_path: Path) -> None:
    assert status in RAISED[status].found(tmp_path / "store")


def test_people_read_the_word_and_what_speaks_against_a_law(fitted: Asked, store: Path) -> None:
    said = fitted.words
    for value in {row["status"] for row in fitted.rows}:
        assert re.search(rf"\b{WORDS[value]}\b", said)
        assert WORDS[value] == value or not re.search(rf"\b{value}\b", said)
    assert "The exponent cannot be told from 0" in said
    predicted = ask(store, "predict", dataset="ends", laws=["cross_entropy"]).words
    assert "do not rely on it: the points turn round, as no form does" in predicted


def test_a_kept_fit_whose_status_has_gone_shows_its_word_as_text(fitted: Asked, store: Path, cwd: Path) -> None:
    (kept,) = [row for row in Store(store).records("fits") if row["fit_id"] == fitted.rows[0]["fit_id"]]
    Store(store).write_record("fits", "of0old", kept | {"fit_id": "of0old", "status": "wide_interval"})
    shown = here("show", "of0old", "--store", store, cwd=cwd, check=0)
    assert json.loads(shown.stdout)["status"] == "wide_interval"
    assert ", wide_interval; fitted again" in shown.stderr
    asked = here("sql", "SELECT status FROM fits WHERE fit_id = 'of0old'", "--store", store, cwd=cwd, check=0)
    assert "wide_interval" in asked.stdout
