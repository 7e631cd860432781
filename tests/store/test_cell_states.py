"""Where cells stand: marks of processes that live, died or fell silent, and the grid that `status` prints."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rbpx.cli.tables.status import states_table
from rbpx.config.grid import Cell
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.display.table import Table
from rbpx.store import cell_states as module
from rbpx.store.cell_states import cell_states, heartbeat, read_heartbeats
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.stores import write_unsealed

NAMES = {
    "cell_key": "a" * 16, "family": "mine", "size": "xl", "dataset": "file", "protocol": "paper", "dtype": "float32",
    "revision": None, "cell": 2, "cells": 5,
}  # fmt: skip


def wait_until(holds: Any, seconds: float = 60.0) -> None:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, "it did not happen"
        time.sleep(0.02)


def rewritten(store: Store, **changed: Any) -> Path:
    """A mark of this process that another one might have left."""
    path = store.root / "running" / f"{NAMES['cell_key']}.json"
    with heartbeat(store, NAMES):
        wait_until(path.is_file)
        facts = json.loads(path.read_text())
    write_unsealed(path, facts | changed)
    return path


def test_a_mark_lives_as_long_as_its_block(tmp_path: Path) -> None:
    store, told = Store(tmp_path), []
    path = tmp_path / "running" / f"{NAMES['cell_key']}.json"
    with heartbeat(store, NAMES) as mark:
        mark.follow(200, told.append, processes=2)(50)
        wait_until(path.is_file)
        (found,) = read_heartbeats(store).values()
        assert found.alive
        assert found.facts["pid"] == os.getpid()
    assert told == [50]
    assert read_heartbeats(store) == {}


def test_a_mark_that_is_being_written_when_its_block_ends_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, plain = threading.Event(), module.atomic_write_text

    def slow(*words: Any, **more: Any) -> None:
        begun.set()
        time.sleep(0.2)
        plain(*words, **more)

    monkeypatch.setattr(module, "atomic_write_text", slow)
    with heartbeat(Store(tmp_path), NAMES):
        assert begun.wait(60)
    wait_until(lambda: "rbpx-heartbeat" not in {thread.name for thread in threading.enumerate()})
    assert list(tmp_path.glob("running/*")) == []


def test_only_the_process_that_leads_leaves_a_mark(tmp_path: Path) -> None:
    with heartbeat(Store(tmp_path), NAMES, leads=False):
        assert not (tmp_path / "running").exists()


def test_a_dead_process_and_a_silent_one_are_stopped_and_another_host_is_believed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    there = {"pid": gone.pid, "host": "another"}
    cases = {"dead": {"pid": gone.pid}, "elsewhere": there, "silent": {}, "of the future": there}
    alive = {}
    for name, changed in cases.items():
        path = rewritten(store, **changed)
        if name in ("silent", "of the future"):
            written = time.time() + (600 if name == "of the future" else -600)
            os.utime(path, (written, written))
        (found,) = read_heartbeats(store).values()
        alive[name] = found.alive
    assert alive == {"dead": False, "elsewhere": True, "silent": False, "of the future": False}


def test_a_mark_that_cannot_be_written_stops_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "running").write_text("a file where the marks would go")
    done = []
    with heartbeat(Store(tmp_path), NAMES) as mark:
        mark.follow(200, done.append)(50)
        wait_until(lambda: "rbpx-heartbeat" in {thread.name for thread in threading.enumerate()})
    assert done == [50]
    assert [path.name for path in tmp_path.iterdir()] == ["running"]


def by_size(shown: Table) -> dict[str, tuple[str, ...]]:
    rows = ([column.text(row) for column in shown.columns] for row in shown.rows)
    return {size: tuple(states) for _, size, *states in rows}


def told(*lines: str) -> list[dict[str, Any]]:
    """Rows of status: state, family, size, text, and where a line says them a dtype and a revision."""
    names = ("state", "family", "size", "dataset", "dtype", "revision")
    usual = {"protocol": "paper", "dtype": "float32", "revision": None}
    return [usual | dict(zip(names, line.split(), strict=False)) for line in lines]


def test_a_size_measured_on_one_text_is_missing_on_the_other_and_one_that_failed_is_said() -> None:
    runs = told("done mine xs file", "done mine s file", "done mine s pydoc", "done mine s pydoc bfloat16")
    shown, _ = states_table([*runs, *told("failed mine xl file")])
    assert [column.name for column in shown.columns] == ["family", "size", "file", "pydoc", "pydoc bfloat16"]
    assert by_size(shown) == {
        "xs": ("done", "missing", "missing"),
        "s": ("done", "done", "done"),
        "xl": ("failed", "missing", "missing"),
    }


def test_a_mark_is_a_row_of_status_for_programs(own_store: Path, cwd: Path) -> None:
    rewritten(Store(own_store), n_tokens=1000, tokens_done=250, tokens_per_s=50.0)
    rows = json.loads(here("status", "--store", own_store, "--format", "json", cwd=cwd, check=0).stdout)
    (row,) = [row for row in rows if row["state"] == "running"]
    assert (row["size"], row["tokens_done"]) == ("xl", 250)
    shown = here("status", "--store", own_store, cwd=cwd, check=0).stdout
    assert re.search(r"^ *mine +xl +running 25%$", shown, re.MULTILINE)
    assert "running: mine xl on file, 25% of 1,000 tokens, 50 tokens/s, 15s left, cell 2 of 5" in shown


# ------------------------------------------------------------------------- a cell whose text is not on this machine

CELL = Cell(
    family="mine", size="xl", model="m", model_hash=None, revision=None, non_embedding_params=None, dataset="file",
    text_hash=None, protocol="paper", window=512, whole=False, stride=None, padding="counted", bos="tokenizer",
    dtype="float32", limit=1000, seed=42,
)  # fmt: skip
CONFIG = {
    "dtype": "float32",
    "limit": 1000,
    "seed": 42,
    "model": {"bos": "tokenizer"},
    "protocol": {"name": "paper", "window": 512},
}


def done(store: Store, run_id: str, asked_at: str, **changed: Any) -> None:
    """A run, and the record that answers CELL by it, with some changes."""
    store.place_run(run_id, lambda folder: (folder.mkdir(), (folder / "manifest.json").write_text("{}")))
    key = run_id * 2
    record = {"cell_key": key, "run_id": run_id, "model": "m", "revision": None, "asked_at": asked_at, **CELL.names()}
    store.write_record("cells", key, {**record, "config": CONFIG, **changed, "cell_key": key})


def test_without_its_text_a_cell_is_answered_by_the_newest_of_the_same_requests(tmp_path: Path) -> None:
    store = Store(tmp_path)
    done(store, "a" * 8, "2026-01-01T00:00:00")
    done(store, "b" * 8, "2026-03-01T00:00:00")
    done(store, "c" * 8, "2026-02-01T00:00:00")
    (state,) = cell_states([CELL], store)
    assert (state.state, state.run_id) == ("done", "b" * 8)
    shutil.rmtree(store.root / "runs" / ("b" * 8))  # its run is gone
    assert cell_states([CELL], store)[0].run_id == "c" * 8
    assert cell_states([replace(CELL, text_hash="0" * 16)], store)[0].state == "missing", "that one is known by its key"


OTHERS: dict[str, dict[str, Any]] = {
    **{name: {name: "another"} for name in ("family", "size", "model", "revision", "dataset")},
    **{name: {"config": CONFIG | {name: other}} for name, other in [("dtype", "bfloat16"), ("limit", 5), ("seed", 1)]},
    "window": {"config": CONFIG | {"protocol": {"name": "paper", "window": 256}}},
    "protocol": {"config": CONFIG | {"protocol": {"name": "rolling", "window": 512}}},
    "bos": {"config": CONFIG | {"model": {"bos": "add"}}},
    "deterministic": {"config": CONFIG | {"deterministic": True}},
    "no request": {"config": None},
    "half a request": {"config": {"dtype": "float32"}},
    "no protocol": {"config": CONFIG | {"protocol": "paper"}},
    "no model": {"config": CONFIG | {"model": "m"}},
}


@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
def test_without_its_text_another_request_does_not_answer_a_cell(changed: dict[str, Any], tmp_path: Path) -> None:
    store = Store(tmp_path)
    done(store, "a" * 8, "2026-01-01T00:00:00", **changed)
    assert [state.state for state in cell_states([CELL], store)] == ["missing"]


def test_without_its_text_a_request_of_an_older_version_answers_by_what_was_implied(tmp_path: Path) -> None:
    assert ProtocolConfig().window == 512
    store, older = Store(tmp_path), {"name": "paper"}  # before windows could be chosen
    done(store, "a" * 8, "2026-01-01T00:00:00", config=CONFIG | {"model": {}, "protocol": older})
    assert [state.state for state in cell_states([CELL], store)] == ["done"]


def test_many_revisions_of_a_text_are_counted_in_one_column() -> None:
    runs = told("done mine s a", "done mine m a", "done mine m b", "done mine m a float32 step0")
    runs += told(*(f"done mine s a float32 step{n}" for n in range(12)))
    shown, _ = states_table([*told("failed mine m a float32 step1"), *runs])
    assert [column.name for column in shown.columns] == ["family", "size", "a", "b"]
    assert by_size(shown) == {"s": ("13 done", "missing"), "m": ("1 failed, 2 done", "done")}
    few, _ = states_table([run for run in runs if run["revision"] in (None, "step0")])
    assert {column.name for column in few.columns} == {"family", "size", "a", "a step0", "b"}


def test_of_many_models_those_that_are_done_everywhere_are_counted() -> None:
    runs = told(*(f"done f{n} s {text}" for n in range(70) for text in "ab"), "failed f0 l a", "failed f1 l a")
    shown, lines = states_table(runs)
    assert by_size(shown) == {"l": ("failed", "missing")}
    assert lines == ["70 of 72 models are done on all texts of their families, and not shown."]
