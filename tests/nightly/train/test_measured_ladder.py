"""A trained ladder is measured by name: finished models, raw checkpoints and seeds are told apart everywhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here
from tests.support.trainings import a_site, recipe_file, trained, written


@pytest.mark.usefixtures("small_evaluation")
def test_checkpoints_of_a_trained_ladder_are_measured_with_the_facts_of_their_training(
    cwd: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = a_site(tmp_path / "site", {"corpus/own.py": written(6000, "matrix")[:95_000]})
    output = f"output={tmp_path / 'mine'}"
    trained("--recipe", recipe_file(tmp_path, site), output)
    grid: dict[str, Any] = {"budgets": {"tiny": [2560]}, "checkpoints": {"tiny": 2}, "seeds": {"tiny": [7]}}
    capsys.readouterr()
    trained("--recipe", recipe_file(tmp_path, site, **grid), output)
    assert f"--config-dir {tmp_path / 'mine'} model=mine model.revision=all" in capsys.readouterr().out
    (tmp_path / "text.txt").write_text(written(30, "ring"))
    of = ("--config-dir", tmp_path / "mine", "model=mine", "dataset=file", f"dataset.path={tmp_path / 'text.txt'}")
    store = ("--store", tmp_path / "store")
    here("measure", *of, "model.revision=finished", *store, cwd=cwd, check=0)
    answer = here("plan", *of, "model.revision=all", "--format", "json", *store, cwd=cwd, check=0)
    planned = {(row["size"], row["revision"]): row["state"] for row in json.loads(answer.stdout)}
    assert planned == {
        ("tiny", None): "done",
        ("tiny", "2.56k"): "done",
        ("tiny", "raw-128"): "missing",
        ("tiny", "raw-2.05k"): "missing",
        ("tiny-seed7", None): "done",
    }
    here("measure", *of, "model.revision=[raw-*]", *store, cwd=cwd, check=0)
    columns = "size, revision, variant, training_tokens, training_step, unique_tokens, training_seed"
    query = f"SELECT {columns}, training_flops FROM runs ORDER BY 1, training_tokens, 2"
    rows = json.loads(here("sql", query, "--format", "json", *store, cwd=cwd, check=0).stdout)
    flops = 6 * (300 * 8 + 12 * 64 + 13 * 8 + 2 * 8)
    expected = [
        ("tiny", "raw-128", "raw", 128, 1, 128, 42, flops * 128),
        ("tiny", None, None, 1280, 10, 1280, 42, flops * 1280),
        ("tiny", "raw-2.05k", "raw", 2048, 16, 2048, 42, flops * 2048),
        ("tiny", "2.56k", None, 2560, 20, 2560, 42, flops * 2560),
        ("tiny-seed7", None, None, 1280, 10, 1280, 7, flops * 1280),
    ]
    assert [tuple(row.values()) for row in rows] == expected
