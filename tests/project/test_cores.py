"""Threads share the cores of a machine: what OpenMP and torch are told before they are loaded, in real processes."""

import os
import re
import subprocess
import sys

import pytest

from rbpx.cores import n_cores
from tests.support.places import PROJECT

OURS = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "SLURM_CPUS_PER_TASK")
BY_COMMAND = "import rbpx.__main__"
BY_NOTEBOOK = "import rbpx; rbpx.open('nowhere', create=True)"

two_cores = pytest.mark.skipif(n_cores() < 2, reason="one core has nothing to share")


def told(begin: str, **environment: str) -> tuple[int, str]:
    """Threads of torch, and what libgomp says that it was told."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(
        [sys.executable, "-c", f"{begin}\nimport torch\nprint(torch.get_num_threads())"],
        env=kept | {"OMP_DISPLAY_ENV": "VERBOSE", "PYTHONPATH": str(PROJECT)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)
    if found is None:
        pytest.skip("this torch has another OpenMP than GNU's")
    return int(done.stdout), found[1]


@pytest.mark.parametrize("begin", [BY_COMMAND, BY_NOTEBOOK], ids=["command", "notebook"])
def test_threads_do_not_spin_for_each_other(begin: str) -> None:
    assert told(begin) == (told("")[0], "1000")


def test_what_the_user_has_set_stays() -> None:
    assert told(BY_COMMAND, GOMP_SPINCOUNT="7")[1] == "7"
    assert told(BY_COMMAND, OMP_WAIT_POLICY="passive")[1] == told("", OMP_WAIT_POLICY="passive")[1]


@two_cores
def test_slurm_says_the_number_of_threads_where_the_user_does_not() -> None:
    assert told(BY_COMMAND, SLURM_CPUS_PER_TASK="1")[0] == 1
    assert told(BY_COMMAND, SLURM_CPUS_PER_TASK="1", OMP_NUM_THREADS="2")[0] == 2


@two_cores
@pytest.mark.parametrize(("asked", "found"), [("1", 1), ("999", n_cores()), ("", n_cores()), ("many", n_cores())])
def test_processes_count_the_cores_that_slurm_gives(asked: str, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", asked)
    assert n_cores() == found
