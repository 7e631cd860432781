"""What a command that is stopped ends with, and what it leaves."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rbpx.cli.signals import stop_in_order
from rbpx.store.cell_states import Heartbeat
from tests.support.commands import here
from tests.support.stores import Family, run_folders


@contextlib.contextmanager
def stopping_in_order() -> Iterator[None]:
    before: Any = signal.getsignal(signal.SIGTERM)
    try:
        stop_in_order()
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(("number", "by"), [(signal.SIGINT, ""), (signal.SIGTERM, " by SIGTERM")])
def test_a_command_that_is_stopped_ends_with_the_status_of_its_signal_and_the_same_continues(
    number: signal.Signals, by: str, family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes between the first cell and the next, amid the removal of a heartbeat."""
    end, came = Heartbeat.end, list[Heartbeat]()

    def end_when_stopped(self: Heartbeat) -> None:
        came.append(self)
        if len(came) == 1:
            signal.raise_signal(number)
        end(self)

    words = ("measure", *family.words("xs", "s"), "limit=2", "--store", tmp_path / "store")
    with monkeypatch.context() as patch, stopping_in_order():
        patch.setattr(Heartbeat, "end", end_when_stopped)
        answer = here(*words, cwd=cwd, check=128 + number)
    assert answer.stderr.splitlines()[-1] == (
        f"rbpx: stopped{by}; what was finished is kept, and the same command continues"
    )
    assert "Traceback" not in answer.stderr
    assert not list((tmp_path / "store" / "running").glob("*"))
    kept = {name: folder.stat().st_ino for name, folder in run_folders(tmp_path / "store").items()}
    assert len(kept) == 1
    here(*words, cwd=cwd, check=0)
    runs = {name: folder.stat().st_ino for name, folder in run_folders(tmp_path / "store").items()}
    assert len(runs) == 2
    assert kept.items() <= runs.items()


@pytest.mark.parametrize("where", ["rbpx.cli.launch.compose", "rbpx.measure.cell.load_cell"])
@pytest.mark.parametrize(("number", "by"), [(signal.SIGINT, ""), (signal.SIGTERM, " by SIGTERM")])
def test_a_stop_that_a_library_turns_into_an_error_of_its_own_is_a_stop(
    number: signal.Signals, by: str, where: str, family: Family, cwd: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    def interrupted(*args: Any, **options: Any) -> None:
        """As omegaconf, which clears up what it has half built."""
        try:
            signal.raise_signal(number)
        finally:
            raise AttributeError("'str' object has no attribute '_invalidate_flags_cache'")

    store = tmp_path / "store"
    monkeypatch.setattr(where, interrupted)
    with stopping_in_order():
        answer = here("measure", *family.words("xs", "s"), "--store", store, cwd=cwd, check=128 + number)
    told = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert told == [f"rbpx: stopped{by}; what was finished is kept, and the same command continues"]
    assert not list(store.glob("failures/*"))
    assert not list(store.glob("running/*"))
