"""What OpenMP, torch and joblib make of the cores that they are given, in real processes."""

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
@pytest.mark.parametrize(("given", "threads"), [({"SLURM_CPUS_PER_TASK": "2"}, 1), ({"OMP_NUM_THREADS": "3"}, 3)])
def test_workers_of_joblib_divide_the_cores_unless_the_user_says_their_threads(
    given: dict[str, str], threads: int
) -> None:
    """As two jobs of a sweep on the cores that Slurm gave to both together."""
    script = (
        "import os, joblib\nfrom rbpx.cores import share_among_jobs, share_cores\nshare_cores(); share_among_jobs()\n"
        "print(*joblib.Parallel(2)(joblib.delayed(os.getenv)('OMP_NUM_THREADS') for _ in range(2)))"
    )
    kept = {name: value for name, value in os.environ.items() if name not in (*OURS, "LOKY_MAX_CPU_COUNT")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=kept | {"PYTHONPATH": str(PROJECT)} | given,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(threads)] * 2
