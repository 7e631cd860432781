"""A lock that a process holds and does not give back: a question is answered, a line says who holds it."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rbpx.store.files import ledger as module
from rbpx.store.files.ledger import HeldError, locked
from tests.support.composed import here

HOLDER = """
import sys, time
from pathlib import Path
from rbpx.store.files.ledger import locked
with locked(Path(sys.argv[1]), ".rbpx.duckdb.lock"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def stopped(own_store: Path) -> Iterator[int]:
    """A stopped process that holds the lock of a store's index."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(own_store)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SILENT_S", 0.1)


QUESTIONS = ["sql 'SELECT count(*) AS n FROM runs'", "fit k=10 resamples=20 fresh=true", "status"]


@pytest.mark.parametrize("line", QUESTIONS)
def test_a_question_is_answered_and_says_who_holds_the_index(
    line: str, stopped: int, own_store: Path, cwd: Path
) -> None:
    answer = here(*shlex.split(line), "--store", own_store, cwd=cwd, check=0)
    assert answer.stdout
    assert answer.stderr == (
        f"rbpx: {own_store / '.rbpx.duckdb.lock'} is held by process {stopped} on {os.uname().nodename}; answered from "
        "the files, without the index\n"
    )


def test_what_has_to_wait_says_for_whom_and_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    order = []

    def wait() -> None:
        with locked(tmp_path, ".imports.lock"):
            order.append("waited")

    with locked(tmp_path, ".imports.lock"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        while not caplog.messages:
            waiting.join(0.05)
        order.append("released")
    waiting.join(60)
    assert order == ["released", "waited"]
    assert caplog.messages[0].endswith("; waiting for it")
    assert f"process {os.getpid()} on" in caplog.messages[0]


def test_what_need_not_wait_is_told_who_holds_it(tmp_path: Path) -> None:
    with locked(tmp_path, ".imports.lock"):
        told: list[str] = []

        def ask() -> None:
            try:
                with locked(tmp_path, ".imports.lock", waits=False):
                    told.append("held twice")
            except HeldError as problem:
                told.append(str(problem))

        asking = threading.Thread(target=ask)
        asking.start()
        asking.join(60)
    assert told == [f"{tmp_path / '.imports.lock'} is held by process {os.getpid()} on {os.uname().nodename}"]
