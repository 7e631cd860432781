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
from tests.support.synthetic import Truth, write_store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux alone")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


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
