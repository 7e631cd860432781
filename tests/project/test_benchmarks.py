"""Every benchmark runs, at its smallest, as its page says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import PROJECT

FOLDER = PROJECT / "benchmarks"
LEAST = re.findall(r"^python (benchmarks/.+)$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_says_the_least_of_every_program() -> None:
    programs = {path.name for path in FOLDER.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")}
    assert sorted(Path(line.split()[0]).name for line in LEAST) == sorted(programs)


@pytest.mark.slow
@pytest.mark.parametrize("line", LEAST, ids=lambda line: Path(line.split()[0]).stem)
def test_a_benchmark_runs_at_its_smallest_as_its_page_says(
    line: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    places = {"FOLDER": tmp_path}
    if "DATA" in line.split():
        places["DATA"] = request.getfixturevalue("shared_data") / "data"
    words = [str(places.get(word, word)) for word in shlex.split(line)]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "RBPX_STORE": str(tmp_path / "store")}
    done = subprocess.run(
        [sys.executable, PROJECT / words[0], *words[1:]], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3
