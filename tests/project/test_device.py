"""The program for a machine with a GPU works there: without duckdb and what draws, which such a machine may lack."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ABSENT = ("duckdb", "datasets", "altair", "vl_convert", "pandas", "joblib")


def test_its_steps_need_no_package_that_such_a_machine_may_lack(tmp_path: Path) -> None:
    for name in ABSENT:
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is imported')\n")
    words = [sys.executable, "benchmarks/device.py", "--device", "cpu", "--tiny", "--patience", "10", "--steps"]
    env = os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*words, "speed-pythia-160m", "tensor"], cwd=ROOT, env=env, capture_output=True, text=True)
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| speed", "| tensor"))]
    assert (done.returncode, len(rows)) == (0, 5), done.stdout + done.stderr
    assert sum(row.endswith(": met |") for row in rows) == 3, "ranks of a model in two processes are those of one"
    assert not [row for row in rows if "unmeasured" in row], done.stdout
