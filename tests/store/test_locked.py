"""A lock that a process holds and does not give back: a question is answered, a line says who holds it."""

import os
import threading
from pathlib import Path

import pytest

from rbpx.store.files import ledger as module
from rbpx.store.files.ledger import HeldError, locked


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SILENT_S", 0.1)


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
