"""A lock that a process holds and does not give back: a question is answered, a line says who holds it."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rbpx.store.files import ledger as module
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


QUESTIONS = ["sql 'SELECT count(*) AS n FROM runs'", "fit k=10 resamples=20", "status"]


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
