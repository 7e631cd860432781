"""What is finished is kept: kills, two processes at once, cells that fail, and what a second start still has to do."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.commands import here
from tests.support.stores import (
    SHAPES,
    Family,
    assert_same_tokens,
    build_member,
    cell_records,
    run_folders,
    write_jsonl,
)
from tests.support.warm import Warm

SLOWLY = "tokens_per_batch=1"  # one document at a time: long enough to be caught at it


def answers(store: Path) -> dict[tuple[str, str, str], str]:
    """Which run answers which request, by what people call it."""
    return {(r["family"], r["size"], r["dataset"]): r["run_id"] for r in cell_records(store)}


def wait_for(done: Callable[[], bool], what: str, timeout_s: float = 120.0) -> None:
    until = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < until, f"no {what} within {timeout_s:.0f} s"
        time.sleep(0.002)


def test_a_sweep_that_is_killed_continues_where_it_was_and_ends_as_if_undisturbed(
    family: Family, tiny_text: list[str], cwd: Path, tmp_path: Path
) -> None:
    store, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    text = write_jsonl(tmp_path / "text.jsonl", *(f"Letter {n}: {tiny_text[0]}" for n in range(100)))
    words = ["measure", *family.words(text=text)]
    process = Warm(*words, SLOWLY, "--store", store, cwd=cwd)
    wait_for(lambda: bool(run_folders(store)) or process.poll() is not None, "first run")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    kept, n_answered = run_folders(store), len(cell_records(store))
    assert 1 <= len(kept) < len(SHAPES)
    assert len(kept) - n_answered in (0, 1)  # the kill may fall between a run and the record that names it
    before = {name: (folder / "manifest.json").stat().st_mtime_ns for name, folder in kept.items()}

    torn = store / "runs" / ".0123456789abcdef.01234567.tmp"  # what a kill while writing leaves
    torn.mkdir()
    (torn / "tokens.parquet").write_bytes(b"PAR1")
    (store / "cells").mkdir(exist_ok=True)
    (store / "cells" / f".{'0' * 16}.json.123.tmp").write_text('{"run_id": ')

    again = here(*words, "--store", store, cwd=cwd, check=0)
    assert again.stderr.count("tokens/s") == len(SHAPES) - n_answered
    assert {name: (store / "runs" / name / "manifest.json").stat().st_mtime_ns for name in kept} == before

    here(*words, "--store", undisturbed, cwd=cwd, check=0)
    assert answers(store) == answers(undisturbed)
    assert sorted(run_folders(store)) == sorted(run_folders(undisturbed)) == sorted(answers(store).values())
    for run_id in run_folders(undisturbed):
        assert_same_tokens(store / "runs" / run_id, undisturbed / "runs" / run_id)


def test_leftovers_of_a_kill_are_removed_when_they_are_old_and_left_to_others_when_new(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    old, new = (store / "runs" / f".{name * 16}.01234567.tmp" for name in "ab")
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "tokens.parquet").write_bytes(b"PAR1")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    here("measure", *family.words("xs"), "limit=4", "--store", store, cwd=cwd, check=0)
    assert not old.exists()
    assert new.exists()  # another process may be writing it
    assert len(run_folders(store)) == 1


# ------------------------------------------------------------------------------------------------------ cells that fail


def test_a_cell_that_fails_is_kept_with_its_reason_until_it_is_repaired_and_stops_no_other(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store, folder = tmp_path / "store", build_member(tmp_path / "s", "s")
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    fragile = Family({"xs": family.folders["xs"], "s": folder, "m": family.folders["m"]}, family.text)
    words = ["measure", *fragile.words("xs", "s", "m"), "limit=4", "--store", store]
    for _ in range(2):
        answer = here(*words, cwd=cwd, check=1)
        (line,) = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: mine s on file failed")]
        assert "cannot be loaded" in line
        assert "Traceback" not in answer.stderr
        (failure,) = [json.loads(path.read_text()) for path in (store / "failures").glob("*.json")]
        assert (failure["family"], failure["size"], failure["dataset"]) == ("mine", "s", "file")
        assert failure["error"] in line
        assert failure["at"].startswith("20")
        assert {size for _, size, _ in answers(store)} == {"xs", "m"}
    finished = {name: (path / "manifest.json").stat().st_mtime_ns for name, path in run_folders(store).items()}
    weights.write_bytes(whole)
    assert here(*words, cwd=cwd, check=0).stderr.count("tokens/s") == 1
    assert {size for _, size, _ in answers(store)} == {"xs", "s", "m"}
    assert {name: (store / "runs" / name / "manifest.json").stat().st_mtime_ns for name in finished} == finished
    assert list((store / "failures").glob("*.json")) == []
