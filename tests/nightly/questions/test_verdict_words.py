"""What the terminal, the page and the rows say of laws that do not stand: one verdict, in the same words."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here

SIZES = [10**power for power in (5, 6, 7, 8, 9)]
POINTS = {  # cross-entropy that does not fall, that turns round, that falls, and that falls until the last
    "flat": [3.0, 3.1, 2.95],
    "turns": [3.0, 2.5, 2.3, 2.52, 3.05],
    "falls": [4.0, 3.21, 2.56, 2.06, 1.65],
    "stops": [4.0, 3.2, 2.56, 2.05, 2.2],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, home = tmp_path_factory.mktemp("verdicts"), tmp_path_factory.mktemp("stores") / "store"
    rows = [
        {
            "model": f"{text}-{S}",
            "non_embedding_params": S,
            "dataset": text,
            "k": 1,
            "rbp": 0.3,
            "cross_entropy_nats": y,
        }
        for text, values in POINTS.items()
        for S, y in zip(SIZES, values, strict=False)
    ]
    (place / "points.json").write_text(json.dumps(rows))
    here(
        "import",
        place / "points.json",
        "--store",
        home,
        "source=drawn",
        "family=drawn",
        "ties=optimistic",
        cwd=place,
        check=0,
    )
    return home


def rows_of(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    answer = here(
        *words,
        "laws=cross_entropy",
        "ties=optimistic",
        "--store",
        store,
        "--format",
        "json",
        "--details",
        cwd=cwd,
        check=0,
    )
    return list(json.loads(answer.stdout))


def test_every_reason_stands_in_the_rows_and_the_first_is_the_status(store: Path, cwd: Path) -> None:
    fits = {row["dataset"]: row for row in rows_of(store, cwd, "fit")}
    assert fits["flat"]["status"] == "no_trend"
    assert fits["turns"]["status"] == "no_trend"
    assert "not_monotone" in fits["turns"]["params"]["reasons"]
    assert fits["falls"]["status"] == "ok"
    assert fits["falls"]["params"]["reasons"] == []
    assert "backtest_failed" in fits["stops"]["params"]["reasons"]
    for row in fits.values():
        assert row["status"] == (row["params"]["reasons"] or ["ok"])[0]


def test_the_terminal_says_what_speaks_against_a_law_and_what_to_do(store: Path, cwd: Path) -> None:
    printed = here("fit", "laws=cross_entropy", "ties=optimistic", "--store", store, cwd=cwd, check=0).stdout
    assert "no trend" in printed
    assert "The exponent cannot be told from 0" in printed
    of_one = here("fit", "dataset=falls", "ties=optimistic", "--store", store, cwd=cwd, check=0).stdout
    assert "1 of these 2 laws passes every check" in of_one


def test_the_page_says_no_law_here_where_there_is_none(store: Path, cwd: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    here("report", "--store", store, "--format", "md", "--output", page, "ties=optimistic", cwd=cwd, check=0)
    said = " ".join(page.read_text().split())
    assert len(re.findall(r"(?i)no law of cross-entropy here", said)) == 2  # flat, and what turns
    assert len(re.findall(r"cross-entropy is \d+% lower", said)) == 2  # what falls, and what stops
    assert "cannot be told from 0" in said
    assert "1 % higher at ten times the size" not in said


def test_predict_answers_once_and_inside_its_interval(store: Path, cwd: Path) -> None:
    rows = [row for row in rows_of(store, cwd, "predict", "S=[1e9,1e12]") if row["kind"] == "prediction"]
    for text in POINTS:
        answers = [row for row in rows if row["dataset"] == text and row["method"] == "combined"]
        assert [row["S"] for row in answers] == [1e9, 1e12]
        assert all(row["lo"] <= row["y"] <= row["hi"] for row in answers)
        assert "beyond" in answers[1]["reasons"]
    flat = next(row for row in rows if row["dataset"] == "flat" and row["method"] == "combined")
    assert flat["status"] == "no_trend"
