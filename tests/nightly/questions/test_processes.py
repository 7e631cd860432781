"""A cluster of Dask answers what one process answers, by the script that a page shows."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import command_environment
from tests.support.places import PROJECT
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("processes") / "store"
    for seed, dataset in enumerate(("first", "second", "third")):
        write_store(root, Truth(scatter=0.02), seed, dataset=dataset)
    return root


def test_the_page_on_other_tools_shows_a_script_of_dask_that_runs(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    page = (PROJECT / "docs" / "howto" / "other-tools.md").read_text(encoding="utf-8")
    (script,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "dask" in code)
    (tmp_path / "script.py").write_text(script)
    words = [sys.executable, "script.py"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=command_environment(None))
    assert ended.returncode == 0, ended.stderr
    assert "laws pass every check" in ended.stdout
