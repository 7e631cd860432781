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


@pytest.mark.parametrize("line", LEAST, ids=[Path(line.split()[0]).stem for line in LEAST])
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


def test_all_that_wants_a_gpu_runs_at_tiny_sizes_on_a_cpu_and_misses_nothing(tmp_path: Path) -> None:
    words = [sys.executable, FOLDER / "device.py", "--device", "cpu", "--tiny", "--patience", "20"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    expected = {"ranks": 48, "speed": 5, "head": 3, "tests": 1, "tensor": 3, "job": 1, "vllm": 1}
    by_step = {step: [row for row in rows if row[0] == step] for step in expected}
    assert {step: len(of_step) for step, of_step in by_step.items()} == expected
    assert all(row[3].endswith("met") for row in (*by_step["ranks"], *by_step["tensor"], *by_step["job"]))
    assert not [row for row in by_step["speed"] if "tokens/s" not in row[2]]
