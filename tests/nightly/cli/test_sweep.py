"""Hydra composes every study under its verb, with all that its file says."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands import here
from tests.support.places import CONF, EXPERIMENTS

STUDIES = sorted(EXPERIMENTS.glob("*.yaml"))


def verb_of(path: Path) -> str:
    """Studies are for `run`, but for those whose first line says otherwise."""
    named = re.match(r"# verb: (\w+)\n", path.read_text())
    return named[1] if named else "run"


def chosen_by(study: dict[str, Any]) -> dict[str, Any]:
    """The files of conf/ that a study chooses, by group."""
    lines = [line for line in study.get("defaults", []) if isinstance(line, dict)]
    options = {key.removeprefix("override /"): name for line in lines for key, name in line.items()}
    return {
        group: None if name is None else yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
        for group, name in options.items()
    }


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_an_experiment_composes_under_its_verb(path: Path, cwd: Path) -> None:
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
