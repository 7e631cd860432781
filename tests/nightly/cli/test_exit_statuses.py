"""The table of exit statuses in the documentation: a real command for each row, and what it leaves."""

import re
import signal
import time
from pathlib import Path

import pytest

from rbpx.store.store import Store
from tests.support.commands import here, start
from tests.support.places import PROJECT
from tests.support.stores import SHAPES, Family, run_folders
from tests.support.warm import Warm

PAGE = PROJECT / "docs" / "howto" / "my-cluster.md"
SIGNALS = {130: signal.SIGINT, 137: signal.SIGKILL, 143: signal.SIGTERM}


def test_the_table_names_what_is_tried_here() -> None:
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(row) for row in rows] == [0, 1, 2, *SIGNALS]


def test_done_is_0_a_cell_that_fails_1_and_a_wrong_request_2(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store")
    here("measure", *family.words("xs"), "limit=2", *store, cwd=cwd, check=0)
    broken = Family({"xs": family.folders["xs"], "s": tmp_path / "s"}, family.text)
    (tmp_path / "s").mkdir()
    for path in family.folders["s"].iterdir():
        (tmp_path / "s" / path.name).write_bytes(
            path.read_bytes()[:1000] if "safetensors" in path.name else path.read_bytes()
        )
    here("measure", *broken.words(*broken.folders), "limit=3", *store, cwd=cwd, check=1)
    assert len(run_folders(tmp_path / "store")) == 2, "what went well is kept"
    here("measure", "model=nosuch", *store, cwd=cwd, check=2)


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
    told = [line for line in stderr.splitlines() if not line.startswith("[")]
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


def test_a_signal_amid_the_removal_of_a_heartbeat_leaves_none(
    family: Family, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, came = Store.end_heartbeat, list[Path]()

    def remove_when_stopped(self: Store, path: Path) -> None:
        came.append(path)
        if len(came) == 1:
            signal.raise_signal(signal.SIGINT)
        remove(self, path)

    monkeypatch.setattr(Store, "end_heartbeat", remove_when_stopped)
    here("measure", *family.words("xs"), "limit=2", "--store", tmp_path / "s", cwd=cwd, check=130, writes=True)
    assert came
    assert not list((tmp_path / "s" / "running").glob("*"))


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
    assert re.findall("^rbpx: .*|Traceback", stderr, re.MULTILINE) == [
        "rbpx: stopped by SIGTERM; what was finished is kept, and the same command continues"
    ]
