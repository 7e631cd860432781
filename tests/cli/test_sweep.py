"""Sweeps end with one table over all that they measured, and with what failed; studies are right requests."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from rbpx.config.request import EVERY
from tests.support.commands import here
from tests.support.places import EXPERIMENTS
from tests.support.stores import RESAMPLES, Family, cell_records, run_folders


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all sweeps of this file, whose cells are measured once."""
    return tmp_path_factory.mktemp("sweep") / "store"


def swept(words: list[str], store: Path, cwd: Path, check: int = 0) -> tuple[list[dict[str, Any]], str]:
    """The laws of cross-entropy that a sweep ends with, and what it says on stderr."""
    asked = ("-m", *words, "limit=3", "laws=[cross_entropy]", RESAMPLES, "--store", store, "--format", "json")
    answer = here(*asked, cwd=cwd, check=check)
    return json.loads(answer.stdout), answer.stderr


def test_a_sweep_ends_with_one_table_of_all_and_a_text_is_measured_once(family: Family, store: Path, cwd: Path) -> None:
    """pydoc is read from the same file, so that one run answers two requests; what is done is not measured again."""
    words = ["dataset=file,pydoc" if word == "dataset=file" else word for word in family.words("xs", "s", "m")]
    answer = here("-m", *words, "limit=3", RESAMPLES, "--store", store, cwd=cwd, check=0)
    assert answer.stdout.count("Scaling laws") == 1
    assert len(re.findall(r"^ *cross-entropy ", answer.stdout, re.MULTILINE)) == 2
    assert len(run_folders(store)) == 3
    assert len(cell_records(store)) == 6
    rows, said = swept([*words, "size=xs,s,m", "--details"], store, cwd)  # a job a size, whose laws are of all
    assert "tokens/s" not in said
    assert [(row["dataset"], row["n_points"]) for row in rows] == [("file", 3), ("pydoc", 3)]
    assert len({row["text_hash"] for row in rows}) == 1
    assert len(run_folders(store)) == 3


def test_a_job_that_fails_is_told_after_the_table_of_the_others(family: Family, store: Path, cwd: Path) -> None:
    words = [word for word in family.words("xs", "s", "m") if not word.startswith("dataset.path")]
    rows, said = swept([*words, f"dataset.path=/nosuch.jsonl,{family.text}"], store, cwd, check=1)
    assert [row["n_points"] for row in rows] == [3]
    told = [line for line in said.splitlines() if line.startswith("rbpx: ")]
    assert len(told) == 1
    assert "/nosuch.jsonl" in told[0]
    assert "Traceback" not in said


def test_a_sweep_in_which_every_job_is_wrong_is_a_wrong_request(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = [word for word in family.words("xs") if not word.startswith("dataset.path")]
    paths = "dataset.path=/nosuch.jsonl,/neither.jsonl"
    answer = here("measure", "-m", *words, paths, "--store", tmp_path / "store", cwd=cwd, check=2)
    assert answer.stdout == ""
    assert [line.split("=")[1].split()[0] for line in answer.stderr.splitlines()] == ["/nosuch.jsonl", "/neither.jsonl"]


# -------------------------------------------------------------------------------------------------------------- studies


def test_every_study_says_right_keys_and_names_itself() -> None:
    studies = sorted(EXPERIMENTS.glob("*.yaml"))
    assert len(studies) > 30
    schema = OmegaConf.structured(EVERY)
    for path in studies:
        said = yaml.safe_load(path.read_text())
        values = {key: value for key, value in said.items() if key not in ("defaults", "hydra")}
        merged = OmegaConf.to_object(OmegaConf.merge(schema, values))
        given = {key: getattr(merged, key) for key in values}
        asked = asking("run").made(given)
        assert asked.study is None or asked.study.question, path.stem
        assert [asked.to(asking(verb).kind) for verb in asked.analyses], path.stem
        assert path.read_text().startswith("# @package _global_\n"), path.stem


def test_hydra_makes_of_a_study_the_request_that_its_file_says() -> None:
    path = EXPERIMENTS / "relative_gaps.yaml"
    study = yaml.safe_load(path.read_text())
    requests = compose(asking("run"), [f"experiment={path.stem}"]).requests
    said = {key: value for key, value in study.items() if key not in ("defaults", "hydra", "study")}
    assert len(said) > 1
    assert [request.dataset.name for request in requests] == ["pydoc", "stdlib"], "its sweep"
    for request in requests:
        assert said.items() <= {**request.others, **request.typed}.items()
        assert (request.study.name, request.study.question) == (path.stem, study["study"]["question"])
