"""A measured family in a user's folder of configuration: recorded, narrowed, listed and launched as ours is."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support.commands import Answer, here
from tests.support.places import EXPERIMENTS
from tests.support.stores import FAMILY, RESAMPLES, Measured, cell_records

STUDY = f"""\
# @package _global_
defaults:
  - override /model: {FAMILY}
  - override /dataset: letters

study:
  question: Does it fall?
  grid: my models on my letters
  published: nothing
  result: |-
    SELECT law, k, n_points FROM found WHERE analysis = 'fit'

k: 10
laws: [rbp]
resamples: {RESAMPLES.partition("=")[2]}
analyses: [fit]
"""


def relative(path: Path, folder: Path) -> str:
    return os.path.relpath(path, folder)


@pytest.fixture
def own(measured: Measured, tmp_path: Path) -> Path:
    """A folder with a family, a text and a study, whose paths start at the files that hold them."""
    folder, family = tmp_path / "own", measured.family
    for group in ("model", "dataset", "experiment"):
        (folder / group).mkdir(parents=True)
    sizes = {size: {"id": relative(path, folder / "model")} for size, path in family.folders.items()}
    (folder / "model" / f"{FAMILY}.yaml").write_text(yaml.safe_dump({"family": FAMILY, "sizes": sizes}))
    text = {"name": family.text.stem, "path": relative(family.text, folder / "dataset")}
    (folder / "dataset" / "letters.yaml").write_text(yaml.safe_dump(text))
    (folder / "experiment" / "mystudy.yaml").write_text(STUDY)
    return folder


def refused(answer: Answer, *says: str) -> None:
    assert answer.returncode == 2, answer.stderr
    (line,) = answer.stderr.splitlines()
    assert [words for words in says if words not in line] == [], line


def table(text: str) -> list[list[str]]:
    """The findings at the end of a study's file, a list of cells a line."""
    return [line.removeprefix("# ").split() for line in text.split("\n#\n")[1].strip().split("\n")]


def test_a_study_is_recorded_into_its_own_file(own: Path, measured: Measured, cwd: Path) -> None:
    path, ours = own / "experiment" / "mystudy.yaml", sorted(EXPERIMENTS.iterdir())
    before = cell_records(measured.store)
    words = ("record", "experiment=mystudy", f"--config-dir={own}", "--store", measured.store)
    answer = here(*words, cwd=cwd, check=0)
    assert f"findings of mystudy written to {path}" in answer.stderr
    assert path.read_text().startswith(STUDY)
    assert table(path.read_text()) == [["law", "k", "n_points"], ["rbp", "10", str(len(measured.family.folders))]]
    assert sorted(EXPERIMENTS.iterdir()) == ours
    assert cell_records(measured.store) == before, "the models and the text are those that were measured"


def test_an_answer_is_computed_anew_when_a_study_changes(own: Path, measured: Measured, cwd: Path) -> None:
    def fitted_k() -> list[int]:
        words = ("fit", "experiment=mystudy", "--config-dir", own, "--store", measured.store, "--format", "json")
        return [row["k"] for row in json.loads(here(*words, cwd=cwd, check=0).stdout)]

    assert fitted_k() == [10]
    (own / "experiment" / "mystudy.yaml").write_text(STUDY.replace("k: 10", "k: 1"))
    assert fitted_k() == [1]


LISTS: dict[str, Callable[[Path], tuple[object, ...]]] = {
    "help": lambda own: ("run", "--help", "--config-dir", own),
    "completion": lambda own: ("completion", "bash", "--config-dir", own),
    "a study that is unknown": lambda own: ("run", "--config-dir", own, "experiment=nosuch"),
    "a text that is unknown": lambda own: ("measure", "--config-dir", own, "dataset=nosuch"),
    "a family that is unknown": lambda own: ("measure", "--config-dir", own, "model=nosuch"),
}


@pytest.mark.parametrize("name", LISTS)
def test_what_there_is_includes_the_users_own(name: str, own: Path, cwd: Path) -> None:
    own_name = {"a text that is unknown": "letters", "a family that is unknown": FAMILY}.get(name, "mystudy")
    ours = {"a text that is unknown": "pydoc", "a family that is unknown": "pythia"}.get(name, "rbp_figure_3")
    answer = here(*LISTS[name](own), cwd=cwd)
    told = " ".join((answer.stdout + answer.stderr).split())
    assert own_name in told
    assert ours in told or "figure_3" in told
    shutil.rmtree(own)
    own.mkdir()
    answer = here(*LISTS[name](own), cwd=cwd)
    assert own_name not in answer.stdout + answer.stderr.replace("dataset.name=", "")


def test_a_study_may_choose_how_its_jobs_are_started(own: Path, measured: Measured, cwd: Path) -> None:
    """Its jobs run elsewhere, and what they leave is collected."""
    chosen = STUDY.replace("letters\n", "letters\n  - override /hydra/launcher: mine\n", 1)
    swept = "hydra: {mode: MULTIRUN, sweeper: {params: {size: 'xs,s,m'}}}\n"
    (own / "experiment" / "mystudy.yaml").write_text(chosen + swept)
    (own / "hydra" / "launcher").mkdir(parents=True)
    launcher = own / "hydra" / "launcher" / "mine.yaml"
    launcher.write_text("defaults: [joblib]\nn_jobs: 2\n")
    words = ("run", "experiment=mystudy", "--config-dir", own, "--store", measured.store, "--format", "json")
    (row,) = json.loads(here(*words, cwd=cwd, check=0).stdout)
    assert (row["k"], row["n_points"]) == (10, 3)
    launcher.write_text("defaults: [submitit_local]\ntimeout_min: 5\n")
    answer = here(*words, cwd=cwd, check=0)
    assert json.loads(answer.stdout)[0]["n_points"] == 3
    assert f"3 jobs of hydra/launcher=mine; their logs: {measured.store}/sweeps/" in answer.stderr


def test_a_file_of_the_user_replaces_ours_of_the_same_name(own: Path, measured: Measured, cwd: Path) -> None:
    (own / "model" / f"{FAMILY}.yaml").rename(own / "model" / "ladder.yaml")
    (own / "dataset" / "letters.yaml").rename(own / "dataset" / "pydoc.yaml")
    (own / "experiment" / "demo.yaml").write_text(STUDY.replace(FAMILY, "ladder").replace("letters", "pydoc"))
    asked = ("--config-dir", own, "--store", measured.store, "--format", "json")
    for words in (["run", "experiment=demo"], ["run", "-m", "model=ladder", "dataset=pydoc", "k=10", "laws=[rbp]"]):
        (row,) = json.loads(here(*words, *asked, cwd=cwd, check=0).stdout)
        assert (row["family"], row["dataset"]) == (FAMILY, measured.family.text.stem)


# ------------------------------------------------------------------------------------------------------ what is missing


def test_status_keeps_the_column_of_a_text_that_is_missing(own: Path, measured: Measured, cwd: Path) -> None:
    (own / "dataset" / "gone.yaml").write_text("name: gone\npath: gone.jsonl\n")
    words = ("status", "-m", f"model={FAMILY}", "dataset=letters,gone", "--config-dir", own, "--store", measured.store)
    answer = here(*words, cwd=cwd, check=0)
    heading = next(line.split() for line in answer.stdout.splitlines() if "family" in line)
    assert heading == ["family", "size", measured.family.text.stem, "gone"]
    (line,) = answer.stderr.splitlines()
    assert f"dataset.path={own}/dataset/gone.jsonl is not a file" in line
    states = json.loads(here(*words, "--format", "json", cwd=cwd, check=0).stdout)
    n = len(measured.family.folders)
    assert [state["state"] for state in states] == ["done"] * n + ["missing"] * n


# ------------------------------------------------------------------------------------------- what a file may not say


SLURM = "defaults: [submitit_slurm]\npartition: gpu\naccount: mine\nsetup: [module purge, module load cuda/12.1 gcc]\n"


def test_a_launcher_and_the_modules_that_it_loads_need_no_trust(own: Path, cwd: Path) -> None:
    (own / "hydra" / "launcher").mkdir(parents=True)
    (own / "hydra" / "launcher" / "mine.yaml").write_text(SLURM)
    words = ("measure", "model=ladder", "--config-dir", own, "hydra/launcher=mine", "--cfg", "hydra")
    launcher = yaml.safe_load(here(*words, cwd=cwd, check=0).stdout)["hydra"]["launcher"]
    assert launcher["_target_"].endswith("SlurmLauncher")
    assert (launcher["partition"], launcher["setup"]) == ("gpu", ["module purge", "module load cuda/12.1 gcc"])
