"""Training keeps clear of the evaluation, a kill loses nothing, a finished model is what a plain loop gives."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from experiments.ladder.text import prepare_text
from experiments.ladder.train import read_recipe
from rbpx.errors import RbpxError
from tests.support.places import PROJECT
from tests.support.trainings import GPT_NEOX, MAMBA_2, a_site, assert_same, recipe_file, trained, weights_of, written


def test_a_file_with_a_copy_of_the_standard_library_is_not_trained_on(tmp_path: Path, small_evaluation: str) -> None:
    files = {
        "corpus/own.py": written(400, "matrix"),
        "corpus/copied.py": written(20, "vector") + small_evaluation[5000:9000],
        "corpus/tests/test_own.py": written(30, "tensor"),
        "corpus/table.py": "TABLE = [" + ", ".join(map(str, range(20_000, 22_000))) + "]\n",
    }
    recipe = read_recipe(str(recipe_file(tmp_path, a_site(tmp_path / "site", files))))
    prepare_text(recipe, tmp_path / "text")
    facts = json.loads((tmp_path / "text" / "text.json").read_text())
    assert (facts["files"], facts["files_dropped_for_shared_spans"]) == (1, 1)
    assert facts["packages"] == [{"name": "corpus", "version": "1.0", "licence": "MIT"}]
    recipe.text.packages.corpus = "2.0"
    with pytest.raises(RbpxError, match=r"corpus 2\.0"):
        prepare_text(recipe, tmp_path / "other")


GRID: dict[str, Any] = {"budgets": {"tiny": ["5.2k"]}, "checkpoints": {"tiny": 2}, "seeds": {"tiny": [7]}}
"""10 and 40 steps of 128 tokens."""


@pytest.fixture
def site(tmp_path: Path, small_evaluation: str) -> Path:
    """The text of a tiny ladder, 1,200 windows or so; its evaluation is small too."""
    files = {"corpus/own.py": written(6000, "matrix")[:95_000], "corpus/b.py": written(1500, "ring")}
    return a_site(tmp_path / "site", files)


def killed_when_written(words: Sequence[object], file: Path) -> None:
    """Start a training in a process of its own, and kill it as soon as it has written a file."""
    before = file.stat().st_mtime_ns if file.is_file() else 0
    command = subprocess.Popen([sys.executable, PROJECT / "experiments" / "ladder" / "train.py", *map(str, words)])
    deadline = time.monotonic() + 200
    while command.poll() is None and time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if file.stat().st_mtime_ns > before:
                break
        time.sleep(0.001)
    command.kill()
    assert command.wait() == -signal.SIGKILL


def test_a_training_that_is_killed_anywhere_continues_to_the_same_weights(site: Path, tmp_path: Path) -> None:
    """On the trunk, in a branch, after a model; those that are killed read the text prepared for the other."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    path = recipe_file(tmp_path, site, **GRID)
    trained("--recipe", path, f"output={whole}")
    shutil.copytree(whole / "text", killed / "text")
    line = ("--recipe", path, f"output={killed}")
    often = (*line, "checkpoint_s=0")
    killed_when_written(often, killed / "state" / "tiny-seed42.trunk.pt")
    assert not (killed / "tiny" / "1.28k").exists()
    killed_when_written(often, killed / "tiny" / "1.28k" / "config.json")
    assert not (killed / "tiny" / "5.12k").exists()
    trained(*line)
    assert_same(whole, killed)
    models = ("1.28k", "5.12k", "raw-128", "raw-4.1k", "seed7-1.28k")
    assert list(weights_of(whole)) == [f"tiny/{model}" for model in models]


@pytest.mark.parametrize("shape", [GPT_NEOX, MAMBA_2], ids=["gpt_neox", "mamba2"])
def test_a_larger_budget_continues_the_trunk_and_a_smaller_one_repeats_it(
    shape: dict[str, Any], site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So it is with smoothed labels."""
    once, grown = tmp_path / "once", tmp_path / "grown"

    def train(output: Path, *budgets: int) -> str:
        path = recipe_file(tmp_path, site, shape, budgets={"tiny": list(budgets)}, label_smoothing=0.1)
        trained("--recipe", path, "tokens=5120", f"output={output}")
        return capsys.readouterr().out

    train(once, 1280, 8960)
    shutil.copytree(once / "text", grown / "text")
    train(grown)
    assert re.findall(r"step (\d+) of", train(grown, 8960)) == ["56", "70"]  # the trunk from step 32, the branch
    train(grown, 1280, 8960)
    assert_same(once, grown)
    path = recipe_file(tmp_path, site, shape)
    trained("--recipe", path, "tokens=5120", "learning_rate=0.05", f"output={grown}", check=2)
    assert "was trained with another recipe" in capsys.readouterr().err
