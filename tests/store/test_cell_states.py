"""Where cells stand: marks of processes that live, died or fell silent, and the grid that `status` prints."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rbpx.cli.tables.status import of_store
from rbpx.config.grid import Cell
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.store import cell_states as module
from rbpx.store.cell_states import cell_states, heartbeat, read_heartbeats
from rbpx.store.store import Store
from tests.support.checkpoints import TINY_TEXT
from tests.support.commands import here
from tests.support.stores import Family, cell_records, write_jsonl
from tests.support.warm import Warm

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
    path.write_text(json.dumps(facts | changed))
    return path


def grid_of(shown: str) -> dict[tuple[str, ...], list[str]]:
    """Rows of the grid by family and size, words of two spaces apart."""
    lines = shown.split("state of the cells")[1].strip().splitlines()
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines if "─" not in line]
    end = next((place for place, row in enumerate(rows) if len(row) < 3), len(rows))
    return {tuple(row[:2]): row[2:] for row in rows[:end]}


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


def test_a_mark_tells_how_far_and_how_long_still(tmp_path: Path) -> None:
    store = Store(tmp_path)
    rewritten(store, n_tokens=1000, tokens_done=250, tokens_per_s=50.0)
    (found,) = read_heartbeats(store).values()
    assert (found.share, found.left_s) == (0.25, 15.0)


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


@pytest.mark.parametrize("name", [*NAMES, "host", "pid", "since", "n_tokens", "tokens_done", "tokens_per_s"])
def test_a_mark_that_lacks_a_word_breaks_no_status(name: str, own_store: Path, cwd: Path) -> None:
    path = rewritten(Store(own_store), n_tokens=1000, tokens_done=250, tokens_per_s=50.0)
    path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != name}))
    answer = here("status", "--store", own_store, cwd=cwd, check=0)
    assert ("running/" in answer.stderr) != ("running: mine xl" in answer.stdout)


@pytest.mark.parametrize(
    "changed", [{"tokens_done": 1e12}, {"n_tokens": []}, {"n_tokens": ""}, {"tokens_per_s": {}}], ids=str
)
def test_a_mark_of_more_tokens_than_there_are_or_of_none_is_none(
    changed: dict[str, Any], own_store: Path, cwd: Path
) -> None:
    rewritten(Store(own_store), **({"n_tokens": 1000, "tokens_done": 250, "tokens_per_s": 50.0} | changed))
    answer = here("status", "--store", own_store, cwd=cwd, check=0)
    assert "is not a heartbeat and is left out; remove that file" in answer.stderr
    assert "%" not in answer.stdout


def test_a_mark_that_cannot_be_written_stops_no_measurement(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "running").write_text("a file where the marks would go")
    here("measure", *family.words("xs"), "--store", store, cwd=cwd, check=0)
    assert len(cell_records(store)) == 1


def test_status_shows_a_killed_measurement_as_stopped_and_the_next_one_finishes_it(cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    text = write_jsonl(tmp_path / "text.jsonl", *(f"Letter {n}: {text}" for n in range(10) for text in TINY_TEXT))
    words = ["model=ladder", "size=3.2m", "dataset=file", f"dataset.path={text}", "--store", str(store)]
    process = Warm("measure", *words, cwd=cwd)
    wait_until(lambda: list(store.glob("running/[!.]*.json")))
    running = here("status", *words, cwd=cwd, check=0).stdout
    process.kill()
    process.communicate()
    stopped = here("status", *words, cwd=cwd, check=0).stdout
    everything = here("status", "--store", store, cwd=cwd, check=0).stdout
    here("measure", *words, "limit=1000", cwd=cwd, check=0)
    done = here("status", *words, cwd=cwd, check=0).stdout
    assert grid_of(running)["ladder", "3.2m"][0].startswith("running")
    assert f"process {process.pid} on" in running
    assert grid_of(stopped)["ladder", "3.2m"] == grid_of(everything)["ladder", "3.2m"] == ["stopped"]
    assert grid_of(done)["ladder", "3.2m"] == ["done"]
    assert list(store.glob("running/*")) == []


def test_a_size_measured_on_one_text_is_missing_on_the_other(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    text = write_jsonl(tmp_path / "other.jsonl", "The letters are read twice: once by the one who writes them.")
    here("measure", *family.words("xs", "s"), "--store", store, cwd=cwd, check=0)
    words = ["pydoc" if word == "dataset=file" else word for word in family.words("s", text=text)]
    words[words.index("pydoc")] = "dataset=pydoc"
    here("measure", *words, "--store", store, cwd=cwd, check=0)
    here("measure", *words, "dtype=bfloat16", "--store", store, cwd=cwd, check=0)
    shown = here("status", "--store", store, cwd=cwd, check=0).stdout
    assert grid_of(shown) == {
        ("family", "size"): ["file", "pydoc", "pydoc bfloat16"],
        ("mine", "xs"): ["done", "missing", "missing"],
        ("mine", "s"): ["done", "done", "done"],
    }


def test_a_named_grid_tells_done_failed_and_missing(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    here("measure", *family.words("xs"), "--store", store, cwd=cwd, check=0)
    here("measure", "model=gpt2", "size=gpt2", *family.words()[3:], "--store", store, cwd=cwd, check=1)
    words = ("-m", "model=gpt2", "size=gpt2,medium", *family.words()[3:], "--store", store)
    shown = here("status", *words, cwd=cwd, check=0).stdout
    assert "2 cells: 1 failed, 1 missing" in shown
    assert "failed: gpt2 gpt2 on file: openai-community/gpt2 is not in the hub's cache here" in shown
    assert "python -m rbpx download model=gpt2 size=gpt2 dataset=file" in shown
    mine = json.loads(here("status", *family.words("xs", "s"), "--store", store, "--format", "json", cwd=cwd).stdout)
    assert [(row["size"], row["state"]) for row in mine] == [("xs", "done"), ("s", "missing")]
    by_name = [word for word in family.words("xs", "s") if not word.startswith("dataset.path=")]
    named = json.loads(here("status", *by_name, "--store", store, "--format", "json", cwd=cwd, check=0).stdout)
    assert [(row["run_id"], row["state"]) for row in named] == [(row["run_id"], row["state"]) for row in mine]


def test_a_mark_is_a_row_of_status_for_programs(own_store: Path, cwd: Path) -> None:
    rewritten(Store(own_store), n_tokens=1000, tokens_done=250, tokens_per_s=50.0)
    rows = json.loads(here("status", "--store", own_store, "--format", "json", cwd=cwd, check=0).stdout)
    (row,) = [row for row in rows if row["state"] == "running"]
    assert (row["size"], row["tokens_done"]) == ("xl", 250)
    shown = here("status", "--store", own_store, cwd=cwd, check=0).stdout
    assert grid_of(shown)["mine", "xl"] == ["running 25%"]
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
    (store.root / "runs" / run_id).mkdir(parents=True)
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
    (store.root / "runs" / ("b" * 8)).rmdir()  # its run is gone
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
    usual = {"family": "mine", "protocol": "paper", "dtype": "float32", "non_embedding_params": 1000}
    cells = [("s", "a", None), ("m", "a", None), ("m", "b", None)]
    cells += [("s", "a", f"step{n}") for n in range(12)] + [("m", "a", "step0")]
    runs = [usual | {"size": size, "dataset": text, "revision": revision} for size, text, revision in cells]
    failed = [usual | {"size": "m", "dataset": "a", "revision": "step1"}]
    shown = of_store(runs, failed, {})
    assert shown is not None
    assert [column.header for column in shown.columns] == ["family", "size", "a", "b"]
    rows = zip(*(list(column.cells) for column in shown.columns), strict=True)
    assert {row[1]: row[2:] for row in rows} == {"s": ("13 done", "missing"), "m": ("1 failed, 2 done", "done")}
    few = of_store([run for run in runs if run["revision"] in (None, "step0")], [], {})
    assert few is not None
    assert [column.header for column in few.columns] == ["family", "size", "a", "a step0", "b"]
