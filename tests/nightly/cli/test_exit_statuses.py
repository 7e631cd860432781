"""Commands that are stopped amid a cell or a sweep, in processes of their own, by each signal of the table."""

import re
import signal
import time
from pathlib import Path

import pytest

from tests.support.commands import here, start
from tests.support.stores import SHAPES, Family, run_folders
from tests.support.warm import Warm

SIGNALS = {130: signal.SIGINT, 137: signal.SIGKILL, 143: signal.SIGTERM}


@pytest.mark.parametrize("sweeps", [False, True], ids=["cell", "sweep"])
@pytest.mark.parametrize("status", SIGNALS)
def test_a_command_that_is_stopped_ends_with_the_status_of_its_signal_and_the_same_continues(
    status: int, sweeps: bool, family: Family, long_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = [
        "measure",
        *(["-m", "limit=590,600"] if sweeps else []),
        *family.words(text=long_jsonl),
        "tokens_per_batch=1",
    ]
    command = Warm(*words, "--store", store, cwd=cwd)
    while not run_folders(store) and command.poll() is None:
        time.sleep(0.002)
    command.send_signal(SIGNALS[status])
    _, stderr = command.communicate()
    assert command.returncode in (status, 128 - status), "a shell shows 128 and the number of what killed a process"
    told = [line for line in stderr.splitlines() if not line.startswith("[") and ": scores " not in line]
    by = {130: "", 143: " by SIGTERM"}
    said = f"rbpx: stopped{by.get(status)}; what was finished is kept, and the same command continues"
    assert told == ([said] if status in by else [])
    kept = {name: folder.stat().st_ino for name, folder in run_folders(store).items()}
    n_cells = len(SHAPES) * (2 if sweeps else 1)
    assert 1 <= len(kept) < n_cells
    heartbeats = list((store / "running").glob("[!.]*.json"))
    assert status == 137 or not heartbeats, "only what is killed, and not between two cells, leaves one"
    here(*words, "--store", store, cwd=cwd, check=0)
    assert len(run_folders(store)) == n_cells
    assert kept.items() <= {name: folder.stat().st_ino for name, folder in run_folders(store).items()}.items()


def test_sigterm_in_a_shell_is_143(family: Family, long_jsonl: Path, cwd: Path, tmp_path: Path) -> None:
    """A whole interpreter, from its start: a scheduler may send it twice, and again while the command ends."""
    command = start("measure", *family.words(text=long_jsonl), "tokens_per_batch=1", "--store", tmp_path / "s", cwd=cwd)
    while not list((tmp_path / "s" / "running").glob("[!.]*.json")) and command.poll() is None:
        time.sleep(0.01)
    while command.poll() is None:
        command.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    _, stderr = command.communicate()
    assert command.returncode == 143
    assert re.findall("^rbpx: stopped.*|Traceback", stderr, re.MULTILINE) == [
        "rbpx: stopped by SIGTERM; what was finished is kept, and the same command continues"
    ]
