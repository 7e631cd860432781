"""Questions in several processes: the same answers as in one, and nothing left behind when one of them ends early."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.commands import command_environment, start
from tests.support.places import PROJECT
from tests.support.processes import ALL, Found, done, processes
from tests.support.synthetic import Truth, write_store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux alone")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


@pytest.fixture(scope="module", params=[1, 3])
def several(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path, Found]:
    folder = tmp_path_factory.mktemp("several")
    return request.param, folder, done(str(request.param), folder)


def test_as_many_processes_as_asked_for_share_the_calls(several: tuple[int, Path, Found]) -> None:
    n, _, found = several
    used = processes(found["places"])
    assert len(used) == n
    assert (found["main"] in used) is (n == 1)  # with more this one waits
    assert processes(found["again"]) <= used
    assert found["advanced"] == len(ALL)


def test_the_first_error_is_raised_and_says_where_it_was(several: tuple[int, Path, Found]) -> None:
    n, _, found = several
    assert found["problem"] == "call 13"
    assert ["in _fail_late" in note for note in found["notes"]] == [True] * (n > 1)


@pytest.mark.parametrize("case", ["killed", "killed-loky"])
def test_what_a_killed_process_leaves_is_computed_here_and_said_in_a_line(case: str, tmp_path: Path) -> None:
    found = done(case, tmp_path)
    assert found["results"] == [bytes([at]).hex() for at in ALL]
    (line,) = found["messages"]
    assert re.match(
        r"a process was killed while computing, .*; \d+ tasks? of 40, .* are computed one after another", line
    )
    assert processes(found["after"]) == {found["main"]}
    assert len(processes(found["next"]) - {found["main"]}) == 2


def test_a_process_with_threads_is_not_forked_and_has_others_for_many_calls(tmp_path: Path) -> None:
    found = done("threads", tmp_path)
    forks, others = processes(found["unready"]), processes(found["threaded"])
    assert len(forks - {found["main"]}) == len(others - {found["main"]}) == 2
    assert not forks & others
    assert processes(found["few afterwards"]) <= others


def test_a_fork_connects_once(store: Path) -> None:
    found = done("connections", store)
    for block in ("first", "second"):
        of_process: dict[int, set[int]] = {}
        for process, connection in found[block]:
            of_process.setdefault(process, set()).add(connection)
        assert [len(connections) for connections in of_process.values()] == [1, 1]


def test_a_cluster_of_dask_gives_the_same_answer(store: Path, tmp_path: Path) -> None:
    found = done("dask", Path(shutil.copytree(store, tmp_path / "store")))
    assert processes(found["places"]) == set(found["workers"])
    assert [len({row["dataset"] for row in found[case]}) for case in ("rows", "later")] == [3, 4]
    here, there = (
        [{name: value for name, value in row.items() if name != "created_at"} for row in found[case]]
        for case in ("alone", "later")
    )
    assert here == there
    assert found["messages"] == [f"call {at}" for at in ALL]


def test_the_page_on_other_tools_shows_a_script_of_dask_that_runs(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    page = (PROJECT / "docs" / "howto" / "other-tools.md").read_text(encoding="utf-8")
    (script,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "dask" in code)
    (tmp_path / "script.py").write_text(script)
    words = [sys.executable, "script.py"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=command_environment(None))
    assert ended.returncode == 0, ended.stderr
    assert "laws pass every check" in ended.stdout


# ----------------------------------------------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("processes") / "store"
    for seed, dataset in enumerate(("first", "second", "third")):
        write_store(root, Truth(scatter=0.02), seed, dataset=dataset)
    return root


def rows(*words: str, store: Path, cores: set[int] | None = None) -> tuple[list[dict[str, Any]], str]:
    """What a question says in a process on some cores: its rows without their time, and its messages."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine if cores is None else cores)
    try:
        process = start(*words, "--format", "json", "--store", store, cwd=store)
    finally:
        os.sched_setaffinity(0, mine)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert psutil.pid_exists(process.pid) is False
    return [{name: value for name, value in row.items() if name != "created_at"} for row in json.loads(stdout)], stderr


@pytest.mark.skipif(CORES < 2, reason="one core has one process")
@pytest.mark.parametrize("verb", ["fit", "emergence"])
def test_one_core_gives_the_same_answer(verb: str, store: Path) -> None:
    (one,) = list(os.sched_getaffinity(0))[:1]
    alone, beside = rows(verb, store=store, cores={one}), rows(verb, store=store)
    assert len({row["dataset"] for row in alone[0]}) == 3
    assert alone == beside


def test_damage_is_told_once_by_all_processes_together(store: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(store, tmp_path / "store"))
    run = min((damaged / "runs").glob("[!_]*"))
    (run / "documents.parquet").write_bytes(b"changed")
    told = rows("fit", "laws=[cross_entropy]", "resamples=25", store=damaged)[1]
    assert told.count(f"run {run.name} ") == 1, told


def computing(command: subprocess.Popen[str], used_s: float = 0.5) -> list[psutil.Process]:
    """The forks of a command, once one of them has computed for so long."""
    main = psutil.Process(command.pid)
    deadline = time.monotonic() + 60
    while not (forks := main.children()) or forks[0].cpu_times().user < used_s:
        assert command.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return forks


@pytest.mark.skipif(CORES < 2, reason="one core has one process")
def test_a_command_goes_on_without_a_fork_that_was_killed(store: Path) -> None:
    words = ("fit", "laws=[rbp,cross_entropy]", "resamples=100000", "--format", "csv", "--store", store)
    told = []
    for kills in (True, False):
        command = start(*words, cwd=store)
        if kills:
            computing(command, 0.2)[0].kill()
        stdout, stderr = command.communicate(timeout=120)
        assert command.returncode == 0, stderr
        assert stderr.count("was killed") == kills
        told.append(re.sub(r"\d{4}-\d\d-\d\dT[^,]*", "", stdout))
    assert told[0] == told[1]


@pytest.mark.skipif(CORES < 2, reason="one core has one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(number: signal.Signals, store: Path) -> None:
    words = ("emergence", "resamples=100000", "--store", str(store))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background would pass on none
    try:
        command = subprocess.Popen(
            [sys.executable, "-m", "rbpx", *words],
            env=command_environment(None),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    forks = computing(command)
    if number is signal.SIGKILL:
        command.kill()
    else:  # a terminal sends it to all of them, and so does a scheduler
        os.killpg(command.pid, number)
    _, stderr = command.communicate(timeout=60)
    assert command.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    if number is not signal.SIGKILL:
        assert re.fullmatch(r"rbpx: stopped( by SIGTERM)?; .*\n", stderr), stderr
    assert psutil.wait_procs(forks, timeout=60)[1] == []
