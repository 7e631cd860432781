"""A status has one word wherever people read, and its value where programs do; each says what speaks against a law."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rbpx.display.table import Column, Table
from rbpx.questions import render
from rbpx.questions.result import Result
from rbpx.status import Status
from rbpx.store.sql import connected_once
from rbpx.store.store import Store
from tests.support.asking import Asked, ask, imported
from tests.support.composed import here
from tests.support.raised import RAISED

SIZES = [10**power for power in (5, 6, 7, 8, 9)]
POINTS = {  # cross-entropy that does not fall, that turns round, that falls, and that falls until the last
    "flat": [3.0, 3.1, 2.95],
    "turns": [3.0, 2.5, 2.3, 2.52, 3.05],
    "falls": [4.0, 3.21, 2.56, 2.06, 1.65],
    "stops": [4.0, 3.2, 2.56, 2.05, 2.2],
}
WORDS = {  # by what csv and json say
    **{"ok": "passes", "bends": "bends", "no_trend": "no trend", "beyond": "beyond"},
    **{"backtest_failed": "failed", "intervals_missed": "too tight", "barely_determined": "unsure"},
    **{"collinear_design": "collinear"},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    lines = [f"{text},{S},{y}" for text, values in POINTS.items() for S, y in zip(SIZES, values, strict=False)]
    store = imported(tmp_path_factory.mktemp("words") / "store", "\n".join(["dataset,S,loss_nats", *lines]))
    with connected_once():
        yield store


@pytest.fixture(scope="module")
def fitted(store: Path) -> Asked:
    return ask(store, "fit", laws=["cross_entropy"])


def test_each_status_has_its_word() -> None:
    assert {value: Status(value).label for value in WORDS} == WORDS


def test_at_most_32_statuses_stand_beside_numbers() -> None:
    assert len(Status) <= 32
    assert {*RAISED} == {*Status}


@pytest.mark.parametrize("status", Status)
def test_each_status_is_raised_by_the_world_that_its_page_names(status: Status, tmp_path: Path) -> None:
    assert status in RAISED[status].found(tmp_path / "store")


def test_every_reason_stands_in_the_rows_and_the_first_is_the_status(fitted: Asked) -> None:
    fits = {row["dataset"]: row for row in fitted.rows}
    assert fits["flat"]["status"] == fits["turns"]["status"] == "no_trend"
    assert "bends" in fits["turns"]["params"]["reasons"]
    assert (fits["falls"]["status"], fits["falls"]["params"]["reasons"]) == ("ok", [])
    assert "backtest_failed" in fits["stops"]["params"]["reasons"]
    for row in fits.values():
        assert row["status"] == (row["params"]["reasons"] or ["ok"])[0]


def test_people_read_the_word_and_what_speaks_against_a_law(fitted: Asked) -> None:
    said = fitted.words
    for value in {row["status"] for row in fitted.rows}:
        assert re.search(rf"\b{WORDS[value]}\b", said)
        assert WORDS[value] == value or not re.search(rf"\b{value}\b", said)
    assert "The exponent cannot be told from 0" in said


def test_rows_for_programs_and_what_is_kept_have_the_word_that_the_table_has(fitted: Asked) -> None:
    lines = [line for line in fitted.table(details=False).splitlines() if line.startswith(" cross-entropy ")]
    shown = {re.split(r"\s{2,}", line.strip())[-1] for line in lines}
    plain, details = render.plain_rows("fit", fitted.results), render.detailed_rows(fitted.results)
    assert {row["status_word"] for row in details} == shown == {WORDS[row["status"]] for row in plain}


def test_a_terminal_shows_the_answer_first_and_all_with_details() -> None:
    made = Table("made", tuple(Column(name, name) for name in "abcdef"), tuple("abcdef"))
    rows = [dict.fromkeys("abcdef", f"{at} {'x' * 28}") for at in range(3)]
    table = made.of("Made", rows, brief=[False, True, False])
    asked = Asked("fit", [], [Result([], tables=[table], sentences=["It is 1.", "More is known."])], [])
    brief, every = asked.table(200, details=False).splitlines(), asked.table(200).splitlines()
    assert brief[0] == "It is 1."
    assert max(map(len, brief)) <= 100 < max(map(len, every))
    assert [line[1] for line in brief if "xx" in line] == ["1"]
    assert [line[1] for line in every if "xx" in line] == ["0", "1", "2"]
    assert brief[-1] == "More: .show(details=True)."
    assert "More is known." in every


def test_predict_answers_once_and_inside_its_interval(store: Path) -> None:
    rows = ask(store, "predict", S=[1e9, 1e12], laws=["cross_entropy"]).of_kind("prediction")
    for text in POINTS:
        answers = [row for row in rows if row["dataset"] == text and row["method"] == "combined"]
        assert [row["S"] for row in answers] == [1e9, 1e12]
        assert all(row["lo"] <= row["y"] <= row["hi"] for row in answers)
        assert "beyond" in answers[1]["reasons"]
    flat = next(row for row in rows if row["dataset"] == "flat" and row["method"] == "combined")
    assert flat["status"] == "no_trend"


def test_a_kept_fit_whose_status_has_gone_shows_its_word_as_text(fitted: Asked, store: Path, cwd: Path) -> None:
    (kept,) = [row for row in Store(store).records("fits") if row["fit_id"] == fitted.rows[0]["fit_id"]]
    Store(store).write_record("fits", "of0old", kept | {"fit_id": "of0old", "status": "wide_interval"})
    shown = here("show", "of0old", "--store", store, cwd=cwd, check=0)
    assert json.loads(shown.stdout)["status"] == "wide_interval"
    assert ", wide_interval; fitted again" in shown.stderr
    asked = here("sql", "SELECT status FROM fits WHERE fit_id = 'of0old'", "--store", store, cwd=cwd, check=0)
    assert "wide_interval" in asked.stdout
