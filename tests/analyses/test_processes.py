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
from tests.support.synthetic import Truth, write_store

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="several processes are used on Linux, with at least two cores",
)
ALL = list(range(40))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    words = [sys.executable, "-m", "tests.support.in_processes"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=command_environment(None))
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def processes(places: list[tuple[int, int]]) -> set[int]:
    """Those that computed the calls, which stand in their order."""
    assert [at for at, _ in places] == list(range(len(places)))
    return {process for _, process in places}


def test_all_processes_share_the_calls(found: dict[str, Any]) -> None:
    used = processes(found["places"])
    assert found["main"] in used
    assert len(used) == min(8, len(os.sched_getaffinity(0)))
    assert found["advanced"] == len(ALL)


def test_a_block_within_another_uses_its_processes(found: dict[str, Any]) -> None:
    assert processes(found["nested"]) == processes(found["places"])


def test_messages_stand_in_the_order_of_the_calls(found: dict[str, Any]) -> None:
    assert found["messages"] == [f"call {at}" for at in ALL]


def test_the_first_error_is_raised_and_says_where_it_was(found: dict[str, Any]) -> None:
    assert found["problem"] == "call 13"
    assert all("in _fail_late" in note for note in found["notes"])


def test_results_larger_than_a_pipe(found: dict[str, Any]) -> None:
    assert found["large"] == [5_000_000] * 12


def test_more_calls_than_a_pipe_has_room_for(found: dict[str, Any]) -> None:
    assert found["many"]


def test_calls_of_a_process_that_was_killed_are_made_again(found: dict[str, Any]) -> None:
    assert processes(found["dying"]) == processes(found["after"]) == {found["main"]}


def test_without_a_fork_that_can_begin_this_process_computes_alone(found: dict[str, Any]) -> None:
    for case in ("unready", "outside", "threaded"):
        assert processes(found[case]) == {found["main"]}, case


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
        process = start(*words, "fresh=true", "--format", "json", "--store", store, cwd=store)
    finally:
        os.sched_setaffinity(0, mine)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert psutil.pid_exists(process.pid) is False
    return [{name: value for name, value in row.items() if name != "created_at"} for row in json.loads(stdout)], stderr


@pytest.mark.parametrize("verb", ["fit", "emergence"])
def test_one_core_gives_the_same_answer(verb: str, store: Path) -> None:
    (one,) = list(os.sched_getaffinity(0))[:1]
    alone, beside = rows(verb, store=store, cores={one}), rows(verb, store=store)
    assert len({row["dataset"] for row in alone[0]}) == 3
    assert alone == beside


def test_damage_is_told_once_by_all_processes_together(store: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(store, tmp_path / "store"))
    run = min((damaged / "runs").iterdir())
    (run / "documents.parquet").write_bytes(b"changed")
    told = rows("fit", "laws=[cross_entropy]", "resamples=25", store=damaged)[1]
    assert told.count(f"run {run.name} ") == 1, told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left(number: signal.Signals, store: Path) -> None:
    words = ("emergence", "resamples=100000", "fresh=true", "--store", str(store))
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
    main = psutil.Process(command.pid)
    deadline = time.monotonic() + 60
    while not (forks := main.children()) or forks[0].cpu_times().user < 0.5:  # by then it computes
        assert command.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if number is signal.SIGINT:  # a terminal sends it to all of them
        os.killpg(command.pid, number)
    else:
        command.kill()
    _, stderr = command.communicate(timeout=60)
    assert command.returncode == (130 if number is signal.SIGINT else -signal.SIGKILL)
    if number is signal.SIGINT:
        assert re.fullmatch(r"rbpx: stopped; .*\n", stderr), stderr
    assert psutil.wait_procs(forks, timeout=60)[1] == []
