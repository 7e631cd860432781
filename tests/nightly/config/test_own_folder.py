"""A measured family in a user's folder of configuration: its jobs are launched, and what is missing is shown."""

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.support.commands import here
from tests.support.stores import FAMILY, RESAMPLES, Measured

STUDY = f"""\
# @package _global_
defaults:
  - override /model: {FAMILY}
  - override /dataset: letters
  - override /hydra/launcher: mine

study: {{question: whether it falls, grid: my models, published: nothing, result: FROM found}}
k: 10
laws: [rbp]
resamples: {RESAMPLES.partition("=")[2]}
analyses: [fit]
hydra: {{mode: MULTIRUN, sweeper: {{params: {{size: 'xs,s,m'}}}}}}
"""


@pytest.fixture
def own(measured: Measured, tmp_path: Path) -> Path:
    """A folder with a family, two texts of which one is gone and a study, whose paths start at the files."""
    folder, family = tmp_path / "own", measured.family
    for group in ("model", "dataset", "experiment", "hydra/launcher"):
        (folder / group).mkdir(parents=True)
    sizes = {size: {"id": os.path.relpath(path, folder / "model")} for size, path in family.folders.items()}
    (folder / "model" / f"{FAMILY}.yaml").write_text(yaml.safe_dump({"family": FAMILY, "sizes": sizes}))
    for name, path in (("letters", os.path.relpath(family.text, folder / "dataset")), ("gone", "gone.jsonl")):
        text = {"name": family.text.stem if name == "letters" else name, "path": path}
        (folder / "dataset" / f"{name}.yaml").write_text(yaml.safe_dump(text))
    (folder / "experiment" / "mystudy.yaml").write_text(STUDY)
    return folder


def test_a_study_may_choose_how_its_jobs_are_started(own: Path, measured: Measured, cwd: Path) -> None:
    """Its jobs run elsewhere, and what they leave is collected."""
    launcher = own / "hydra" / "launcher" / "mine.yaml"
    words = ("run", "experiment=mystudy", "--config-dir", own, "--store", measured.store, "--format", "json")
    for chosen in ("defaults: [joblib]\nn_jobs: 2\n", "defaults: [submitit_local]\ntimeout_min: 5\n"):
        launcher.write_text(chosen)
        answer = here(*words, cwd=cwd, check=0)
        (row,) = json.loads(answer.stdout)
        assert (row["k"], row["n_points"]) == (10, 3)
    assert f"3 jobs of hydra/launcher=mine; their logs: {measured.store}/sweeps/" in answer.stderr


def test_status_keeps_the_column_of_a_text_that_is_missing(own: Path, measured: Measured, cwd: Path) -> None:
    words = ("status", "-m", f"model={FAMILY}", "dataset=letters,gone", "--config-dir", own, "--store", measured.store)
    answer = here(*words, cwd=cwd, check=0)
    heading = next(line.split() for line in answer.stdout.splitlines() if "family" in line)
    assert heading == ["family", "size", measured.family.text.stem, "gone"]
    assert f"dataset.path={own}/dataset/gone.jsonl is not a file" in answer.stderr
