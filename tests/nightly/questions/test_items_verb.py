"""Items of tasks by real commands: two models on one quiz, targets too long for a model, the page of a report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import quiz
from tests.support.commands import here
from tests.support.stores import Measured


def ask(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = json.loads(
        here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout
    )
    return answer


def test_two_models_are_compared_on_right_choices_alone(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    path = quiz.written(tmp_path / "quiz.jsonl", quiz.items(30))
    for seed in (0, 1):
        quiz.measured(
            tmp_path / "s", path, tiny_checkpoint("gpt2", hidden_size=16, seed=seed), f"model.family=of_{seed}"
        )
    query = """
        SELECT family, sum(t.n_bytes)::BIGINT AS bytes, avg((greater + ties < 10)::INT) AS rbp,
          -sum(logprob::DOUBLE) / ln(2) / sum(t.n_bytes) AS bits
        FROM tokens AS t JOIN runs USING (run_id) WHERE correct GROUP BY family ORDER BY family"""
    truth = ask(tmp_path / "s", cwd, "sql", query)
    runs = ask(tmp_path / "s", cwd, "sql", "SELECT family, run_id FROM runs ORDER BY family")
    a, b = (row["run_id"] for row in runs)
    found = ask(tmp_path / "s", cwd, "compare", a, b, "k=10")
    text = next(row for row in found if row["kind"] == "part" and row["by"] == "text")
    (hits,) = (row for row in found if row["kind"] == "hits")
    assert (text["documents"], text["n_bytes"]) == (30, truth[0]["bytes"])
    assert (text["bits_a"], text["bits_b"]) == pytest.approx((truth[0]["bits"], truth[1]["bits"]), rel=1e-6)
    assert (hits["rbp_a"], hits["rbp_b"]) == pytest.approx((truth[0]["rbp"], truth[1]["rbp"]))


def test_a_target_that_leaves_its_context_no_room_is_named(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    words = ("measure", "model=hub", f"model.id={tiny_checkpoint('gpt2', hidden_size=16)}", "dataset=file")
    words = (*words, "dataset.context=[q]", "dataset.target=a", "--store", str(tmp_path / "s"))
    long = quiz.written(tmp_path / "long.jsonl", [{"q": "x", "a": "The sea. " * 60}])
    said = here(*words, f"dataset.path={long}", cwd=cwd, check=2).stderr
    assert "item 1 has a target of" in said
    assert "leaves no room for the context" in said


@pytest.fixture(scope="module")
def ladder_of_items(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models of a family on items without choices, of targets of one to three tokens."""
    folder = tmp_path_factory.mktemp("lengths")
    (folder / "cwd").mkdir()
    items = [{"q": f"Letter {n} is about the", "a": (" e", " sea", " harbour e")[n % 3]} for n in range(18)]
    path = quiz.written(folder / "items.jsonl", items)
    words = measured.family.words(text=path)
    here("measure", *words, "dataset.context=[q]", "dataset.target=a", "--store", folder / "s",
         cwd=folder / "cwd", check=0)  # fmt: skip
    return folder / "s"


def test_an_item_is_shown_with_its_context(ladder_of_items: Path, cwd: Path) -> None:
    shown = here("view", "doc=4", "--store", ladder_of_items, cwd=cwd, check=0).stdout
    (row,) = ask(ladder_of_items, cwd, "sql", "SELECT DISTINCT source_id FROM documents WHERE item = 4")
    assert f"Letter {int(row['source_id']) - 1} is about the" in shown
    ranks = ask(
        ladder_of_items, cwd, "sql",
        "SELECT size, list(greater + ties + 1 ORDER BY position) AS ranks, exp(sum(logprob::DOUBLE)) AS p "
        "FROM tokens JOIN runs USING (run_id) WHERE doc_id = 4 GROUP BY size",
    )  # fmt: skip
    for each in ranks:
        (line,) = (line for line in shown.splitlines() if line.strip().startswith(f"mine/{each['size']} "))
        assert line.split()[3:] == [str(rank) for rank in each["ranks"]]
        assert float(line.split()[2]) == pytest.approx(each["p"], rel=0.01)


def test_items_stand_on_the_page_of_a_report(ladder_of_items: Path, tmp_path: Path, cwd: Path) -> None:
    here("report", "resamples=50", "--store", ladder_of_items, "--output", tmp_path / "r.html", cwd=cwd, check=0)
    page = (tmp_path / "r.html").read_text()
    assert "Success against size" in page
    assert "one by one" in page
    assert "is about the" in page
