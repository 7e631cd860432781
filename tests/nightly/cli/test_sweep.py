"""Hydra composes every study under its verb."""

import re
from pathlib import Path

import pytest

from rbpx.cli.registry import asking
from rbpx.config.compose import compose
from tests.support.places import EXPERIMENTS


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_experiment_composes_under_its_verb(path: Path) -> None:
    """For `run`, but for those whose first line says otherwise; that their values hold is seen by day, of one."""
    named = re.match(r"# verb: (\w+)\n", path.read_text())
    requests = compose(asking(named[1] if named else "run"), [f"experiment={path.stem}"]).requests
    assert {request.study.name for request in requests if request.study} <= {path.stem}
    assert requests
