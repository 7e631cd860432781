"""Threads and jobs share the cores that they are given: what OpenMP and a plan are told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rbpx import cores
from rbpx.cores import machine_mib, n_cores, share_cores
from rbpx.measure.plan.memory import free_memory
from tests.support.commands import here
from tests.support.places import PROJECT

OURS = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "SLURM_CPUS_PER_TASK")

two_cores = pytest.mark.skipif(n_cores() < 2, reason="one core has nothing to share")


def told(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What OpenMP is told where the environment has these variables alone."""
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cores, "_set_here", set())
    monkeypatch.setattr(cores, "_PROC", Path("/nosuch"))
    share_cores()
    found = {name: os.environ[name] for name in OURS if name in os.environ}
    for name in found.keys() - given.keys():
        monkeypatch.delenv(name)
    return found


def test_threads_do_not_spin_for_each_other_and_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, added in (
        ({}, {"GOMP_SPINCOUNT": "1000"}),
        ({"GOMP_SPINCOUNT": "7"}, {}),
        ({"OMP_WAIT_POLICY": "passive"}, {}),
        ({"SLURM_CPUS_PER_TASK": "1"}, {"OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "1000"}),
        ({"SLURM_CPUS_PER_TASK": "1", "OMP_NUM_THREADS": "2"}, {"GOMP_SPINCOUNT": "1000"}),
    ):
        assert told(given, monkeypatch) == {**given, **added}


def test_openmp_is_told_before_torch_is_read() -> None:
    """By a command, and by a notebook as it opens a store."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    for begin in ("import rbpx.__main__", "import rbpx; rbpx.open('nowhere', create=True)"):
        code = f"{begin}\nimport os, sys\nprint(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"
        environment = kept | {"PYTHONPATH": str(PROJECT)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["1000", "False"]


@two_cores
def test_workers_of_joblib_divide_the_cores_that_slurm_gave_to_all_of_them() -> None:
    code = (
        "import os, joblib\nfrom rbpx.cores import share_among_jobs, share_cores\nshare_cores(); share_among_jobs()\n"
        "print(*joblib.Parallel(2)(joblib.delayed(os.getenv)('OMP_NUM_THREADS') for _ in range(2)))"
    )
    kept = {name: value for name, value in os.environ.items() if name not in (*OURS, "LOKY_MAX_CPU_COUNT")}
    environment = kept | {"PYTHONPATH": str(PROJECT), "SLURM_CPUS_PER_TASK": "2"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]


@two_cores
@pytest.mark.parametrize(("asked", "found"), [("1", 1), ("999", n_cores()), ("", n_cores()), ("many", n_cores())])
def test_processes_count_the_cores_that_slurm_gives(asked: str, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", asked)
    assert n_cores() == found


VERSIONS = {
    2: ("0::{path}", "", {"cpu.max": "{quota} {period}"}),
    1: ("4:cpu,cpuacct:{path}", "cpu,cpuacct", {"cpu.cfs_quota_us": "{quota}", "cpu.cfs_period_us": "{period}"}),
}


def place_in_group(monkeypatch: pytest.MonkeyPatch, folder: Path, line: str, mount: str) -> None:
    """Let this process be in the control group /slurm/job/step, as Linux tells it; the one around it has the limits."""
    (folder / "mounts" / mount / "slurm" / "job" / "step").mkdir(parents=True)
    (folder / "cgroup").write_text(f"7:pids:/elsewhere\n{line.format(path='/slurm/job/step')}\n")
    monkeypatch.setattr(cores, "_PROC", folder / "cgroup")
    monkeypatch.setattr(cores, "_GROUPS", folder / "mounts")


@two_cores
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("quota", "found"), [("100000", 1), ("60000", 1), ("9900000", n_cores()), ("max", n_cores())])
def test_a_control_group_around_a_process_gives_it_cores(
    version: int, quota: str, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, mount, files = VERSIONS[version]
    place_in_group(monkeypatch, tmp_path, line, mount)
    for name, text in files.items():
        value = text.format(quota="-1" if (version, quota) == (1, "max") else quota, period=100_000)
        (tmp_path / "mounts" / mount / "slurm" / "job" / name).write_text(f"{value}\n")
    assert n_cores() == found


@pytest.mark.parametrize(
    ("line", "mount", "files"),
    [
        ("0::{path}", "", ("memory.max", "memory.current", "inactive_file")),
        ("3:memory:{path}", "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")),
    ],
)
def test_sql_and_a_plan_count_with_the_memory_of_a_control_group(
    line: str, mount: str, files: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine_mib()
    place_in_group(monkeypatch, tmp_path, line, mount)
    group = tmp_path / "mounts" / mount / "slurm" / "job"
    (group / "step" / files[0]).write_text("max\n")
    for n_bytes, told_mib in ((2**62, whole), (300 * 2**20, 300)):
        (group / files[0]).write_text(f"{n_bytes}\n")
        assert machine_mib() == told_mib
    (group / files[1]).write_text(f"{200 * 2**20}\n")
    (group / "memory.stat").write_text(f"anon 5\n{files[2]} {40 * 2**20}\n")
    assert free_memory("cpu", tmp_path).cpu_mib == 300 - 200 + 40


def test_a_plan_counts_with_the_cores_and_the_memory_that_slurm_gives(cwd: Path, tmp_path: Path) -> None:
    given = {"SLURM_MEM_PER_CPU": "16", "SLURM_CPUS_ON_NODE": "4"}
    words = ("plan", "model=pythia", "size=70m", "dataset=pydoc", "--store", tmp_path / "store")
    answer = here(*words, cwd=cwd, env={**given, "SLURM_CPUS_PER_TASK": "1", "COLUMNS": "120"}, check=0)
    assert "This process has 1 core, 64 MiB of free memory" in answer.stdout
    row = next(line for line in answer.stdout.splitlines() if line.split()[:1] == ["70m"])
    assert row.split()[-2] in ("split", "no"), "269 MiB of weights do not fit"
