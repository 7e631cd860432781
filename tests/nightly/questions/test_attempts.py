"""Attempts: chances of a model, as SQL over its tokens has them, and coverage by the hundred."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import kstest

from rbpx.questions.attempts.mixing import Shape
from tests.support.asking import ask
from tests.support.attempts import goodness_of_the_truth, of_forecasts, of_items_and_samples
from tests.support.commands import here
from tests.support.draws import plausible


def test_chances_in_the_store_are_those_of_the_exact_answer(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path, cwd: Path
) -> None:
    lines = [json.dumps({"q": f"which {n}", "a": f"boat {n % 3}"}) for n in range(24)]
    path, store = tmp_path / "quiz.jsonl", tmp_path / "s"
    path.write_text("\n".join(lines))
    model = ("model=hub", f"model.id={tiny_checkpoint('gpt2', seed=0, hidden_size=16)}", "model.family=tiny")
    keys = ("dataset=file", f"dataset.path={path}", "dataset.context=[q]", "dataset.target=a")
    here("measure", *model, *keys, "--store", store, cwd=cwd, check=0)
    query = (
        "SELECT size, 1 - avg((1 - p) ^ 50) AS passes, avg(CASE WHEN worst <= 50 THEN 1 ELSE 0 END) AS exact FROM "
        "(SELECT run_id, doc_id, exp(sum(logprob::DOUBLE)) AS p, max(greater + ties + 1) AS worst FROM tokens "
        "GROUP BY ALL) JOIN runs USING (run_id) GROUP BY size"
    )
    by_hand = json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
    rows = ask(store, "attempts", resamples=50, k=50).rows
    found = {row["size"]: row for row in rows if row["kind"] == "bound"}
    assert len(found) == 1
    for row in by_hand:
        assert found[row["size"]]["passes"] == pytest.approx(row["passes"], rel=1e-6)
        assert found[row["size"]]["exact_match"] == pytest.approx(row["exact"])
    assert not [row for row in rows if row["kind"] in ("forecast", "hidden")]
    table = here("attempts", "resamples=50", "--store", store, cwd=cwd, check=0, env={"COLUMNS": "200"}).stdout
    assert "Ranks and attempts" in table
    assert re.search(r"lower bound of being\s+right", table)


def test_intervals_over_items_and_samples_hold_the_truth() -> None:
    for hits in of_items_and_samples(400).values():
        assert 360 <= hits <= 396


def test_intervals_of_forecasts_hold_what_a_hundred_times_the_samples_give() -> None:
    assert 270 <= of_forecasts(300) <= 297


@pytest.mark.parametrize("shape", Shape)
def test_goodness_of_fit_rejects_the_truth_at_its_level(shape: Shape) -> None:
    ps = goodness_of_the_truth(shape, 200)
    assert plausible(sum(p >= 0.05 for p in ps), 200)
    assert kstest(ps, "uniform").pvalue > 0.001
