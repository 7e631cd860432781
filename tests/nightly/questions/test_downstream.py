"""Tasks in two steps by real commands: the whole published ladder, and items that were measured."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.config.folders import folder
from tests.support.commands import here
from tests.support.stores import Measured

PUBLISHED = folder("experiments") / "published"


def ask(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    answer = here("downstream", *words, "--store", store, "--format", "json", cwd=cwd, check=0)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


def of_kind(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def test_the_published_ladder_comes_out_as_published(tmp_path: Path, cwd: Path) -> None:
    here_rows = here(
        "experiment=published_olmo_ladder",
        "resamples=50",
        "--store",
        tmp_path / "s",
        "--format",
        "json",
        cwd=cwd,
        check=0,
    )
    rows = [row for row in json.loads(here_rows.stdout) if row.get("size") == "peteish13_eval_final"]
    found = {(row["task"], row["feature"]): row for row in of_kind(rows, "prediction")}
    with (PUBLISHED / "olmo_ladder_published.csv").open() as file:
        published = list(csv.DictReader(file))
    assert len(published) == len(found) == 8
    for theirs in published:
        task = theirs["task"].removesuffix("_loss_nats")
        row = found[task, "cross_entropy" if task == "c4" else "bits_per_byte"]
        assert (row["S"], row["D"]) == (13202396160, 5000088518656)
        assert row["step1_predicted"] == pytest.approx(float(theirs["step1_bpb_predicted"]), abs=1e-6)
        assert row["step1_actual"] == pytest.approx(float(theirs["step1_bpb_actual"]), abs=1e-9)
        if task == "c4":
            assert row["step2_predicted"] is row["chained_predicted"] is row["actual"] is None
            continue
        assert row["step2_predicted"] == pytest.approx(float(theirs["step2_accuracy_predicted"]), abs=1e-5)
        assert row["chained_predicted"] == pytest.approx(float(theirs["chained_accuracy_predicted"]), abs=1e-5)
        assert row["actual"] == pytest.approx(float(theirs["accuracy_actual"]), abs=1e-9)
        assert row["chained_predicted_lo"] < row["chained_predicted"] < row["chained_predicted_hi"]
        assert row["status"] != "ok"  # ten times as large as any model that was fitted
    assert sum(row["chained_predicted_lo"] is not None for row in found.values()) == 7


@pytest.fixture(scope="module")
def tasks(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models on items with choices."""
    place = tmp_path_factory.mktemp("tasks")
    (place / "cwd").mkdir()
    words = ("salt", "rope", "boat", "a light", "the sea")
    rows = [
        {"q": f"The keeper of light {n} has a", "c": [words[(n + m) % 5] for m in range(3)], "r": n % 3}
        for n in range(24)
    ]
    (place / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words_of = measured.family.words(text=place / "quiz.jsonl")
    keys = ("dataset.context=[q]", "dataset.choices=c", "dataset.right=r", 'dataset.delimiter=" "')
    here("measure", *words_of, *keys, "--store", place / "s", cwd=place / "cwd", check=0)
    return place / "s"


def test_features_of_items_are_those_of_the_tokens(tasks: Path, cwd: Path) -> None:
    rows = of_kind(ask(tasks, cwd, "dataset=quiz", "k=[1,100]", "resamples=30"), "prediction")
    own = {(row["feature"], row["k"]): row["step1_actual"] for row in rows}
    query = """
        SELECT item, choice, correct, count(*) AS n, sum(logprob::DOUBLE) AS ll, max(greater + ties) + 1 AS worst,
          count(*) FILTER (greater + ties < 100) AS hits
        FROM tokens JOIN runs USING (run_id) WHERE dataset = 'quiz' AND size = (
          SELECT arg_max(size, non_embedding_params) FROM runs) GROUP BY ALL ORDER BY item, choice"""
    answer = here("sql", query, "--store", tasks, "--format", "json", cwd=cwd, check=0)
    tokens = json.loads(answer.stdout)
    right = [row for row in tokens if row["correct"]]
    soft = []
    for row in right:
        of_item = [math.exp(each["ll"]) for each in tokens if each["item"] == row["item"]]
        soft.append(math.exp(row["ll"]) / sum(of_item))
    assert own["cross_entropy", None] == pytest.approx(-sum(r["ll"] for r in right) / sum(r["n"] for r in right))
    assert own["rbp", 100] == pytest.approx(-math.log(sum(r["hits"] for r in right) / sum(r["n"] for r in right)))
    assert own["exact_match", 100] == pytest.approx(-math.log(np.mean([r["worst"] <= 100 for r in right])))
    assert own["soft_accuracy", None] == pytest.approx(-math.log(np.mean(soft)))
    (chance,) = {row["chance"] for row in rows}
    assert chance == pytest.approx(1 / 3)
