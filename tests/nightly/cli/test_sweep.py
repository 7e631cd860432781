"""Sweeps over each kind of key end with one table over all that they measured; Hydra composes every study."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here
from tests.support.places import CONF, EXPERIMENTS
from tests.support.stores import RESAMPLES, SHAPES, Family, run_folders, write_jsonl

STUDIES = sorted(EXPERIMENTS.glob("*.yaml"))


@pytest.fixture
def other_text(tmp_path: Path) -> Path:
    texts = ("The letters are read twice: once by the one who writes them.", "A ship that leaves the harbour at dawn")
    return write_jsonl(tmp_path / "other.jsonl", *texts)


def swept(words: list[str], store: Path, cwd: Path, check: int = 0) -> tuple[list[dict[str, Any]], str]:
    """The rows of the laws that a sweep ends with, and what it says on stderr."""
    answer = here("-m", *words, RESAMPLES, "--store", store, "--format", "json", "--details", cwd=cwd, check=check)
    rows = json.loads(answer.stdout) if answer.stdout else []
    return [row for row in rows if row["law"] == "cross_entropy"], answer.stderr


def test_a_sweep_over_limits_ends_with_one_table_of_all(family: Family, cwd: Path, tmp_path: Path) -> None:
    answer = here(
        "-m", *family.words(), "limit=3,5", RESAMPLES, "--store", tmp_path / "store", cwd=cwd, check=0
    )  # fmt: skip
    assert answer.stdout.count("Scaling laws") == 1
    assert len(re.findall(r"^ *cross-entropy ", answer.stdout, re.MULTILINE)) == 2
    assert answer.stderr.count("tokens/s") == 8
    assert "Traceback" not in answer.stderr
    assert len(run_folders(tmp_path / "store")) == 8


def test_a_sweep_over_files_ends_with_one_table_of_all(
    family: Family, other_text: Path, cwd: Path, tmp_path: Path
) -> None:
    words = [w for w in family.words("xs", "s", "m") if not w.startswith("dataset.path")]
    rows, _ = swept([*words, f"dataset.path={family.text},{other_text}"], tmp_path / "store", cwd)
    assert [row["n_points"] for row in rows] == [3, 3]
    assert len({row["text_hash"] for row in rows}) == 2


def test_a_sweep_over_sizes_ends_with_the_laws_of_all_sizes(family: Family, cwd: Path, tmp_path: Path) -> None:
    rows, _ = swept([*family.words(), f"size={','.join(SHAPES)}"], tmp_path / "store", cwd)
    assert [row["n_points"] for row in rows] == [4]
    assert rows[0]["params"]["sizes"] == list(SHAPES)


def test_a_sweep_over_families_ends_with_one_table_of_all(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = [w for w in family.words("xs", "s", "m") if not w.startswith("model.family")]
    rows, _ = swept([*words, "model.family=one,two"], tmp_path / "store", cwd)
    assert sorted(row["family"] for row in rows) == ["one", "two"]


def test_a_sweep_over_dtypes_ends_with_one_table_of_all(family: Family, cwd: Path, tmp_path: Path) -> None:
    rows, _ = swept([*family.words("xs", "s", "m"), "dtype=float32,bfloat16"], tmp_path / "store", cwd)
    assert sorted(row["dtype"] for row in rows) == ["bfloat16", "float32"]


def test_measure_sweeps_too_and_prints_no_laws(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = ["measure", "-m", *family.words("xs"), "limit=3,5", "--store", tmp_path / "store"]
    assert here(*words, cwd=cwd, check=0).stdout == ""
    assert len(run_folders(tmp_path / "store")) == 2


def test_fits_of_a_sweep_over_tie_rules_are_each_of_their_rule(own_store: Path, cwd: Path) -> None:
    answer = here("fit", "-m", "ties=optimistic,mid", RESAMPLES, "--store", own_store, cwd=cwd, check=0)
    assert "ties optimistic" in answer.stdout
    assert "ties mid" in answer.stdout


def test_the_json_of_a_fit_that_sweeps_is_one_array(own_store: Path, cwd: Path) -> None:
    words = ["fit", "-m", "ties=optimistic,mid", RESAMPLES, "--store", own_store, "--format", "json"]
    rows = json.loads(here(*words, cwd=cwd, check=0).stdout)
    assert {row["ties"] for row in rows} == {"optimistic", "mid"}


# ---------------------------------------------------------------------------------------------------------- experiments


def verb_of(path: Path) -> str:
    """Studies are for `run`, but for those whose first line says otherwise."""
    named = re.match(r"# verb: (\w+)\n", path.read_text())
    return named[1] if named else "run"


def chosen_by(study: dict[str, Any]) -> dict[str, Any]:
    """The files of conf/ that a study chooses, by group."""
    import yaml

    lines = [line for line in study.get("defaults", []) if isinstance(line, dict)]
    options = {key.removeprefix("override /"): name for line in lines for key, name in line.items()}
    return {
        group: None if name is None else yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
        for group, name in options.items()
    }


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_an_experiment_composes_under_its_verb(path: Path, cwd: Path) -> None:
    import yaml

    answer = here(verb_of(path), f"experiment={path.stem}", "--cfg", "job", cwd=cwd, check=0)
    assert answer.stderr == ""
    composed, study = yaml.safe_load(answer.stdout), yaml.safe_load(path.read_text())
    said = {key: value for key, value in study.items() if key not in ("defaults", "hydra")} | chosen_by(study)
    assert said
    for key, value in said.items():
        assert_holds(composed[key], value)


def assert_holds(composed: Any, said: Any) -> None:
    """Everything that a study says is in the configuration; a configuration holds more."""
    if isinstance(said, dict):
        for key, value in said.items():
            assert_holds(composed[key], value)
    elif isinstance(said, list) and said and isinstance(said[0], dict):
        for one, other in zip(composed, said, strict=True):
            assert_holds(one, other)
    else:
        assert composed == said
