"""What a store's JSON says: sealed where it is written, with types and ranges, and cells that agree with their runs."""

import hashlib
import json
import os
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rbpx.store.cell_states import heartbeat
from rbpx.store.forecasts import register
from rbpx.store.merge import Folder, merge
from rbpx.store.messages import collected_messages
from rbpx.store.records import read_json
from rbpx.store.sql import connect
from rbpx.store.store import Store, now
from rbpx.store.verify import verify
from tests.support.composed import here
from tests.support.damage import faults, flip, run_of, say
from tests.support.filled import filled
from tests.support.stores import cell_records

S = "non_embedding_params"


def answered(store: Path) -> tuple[dict[str, int], list[str]]:
    """S of each size in the relation `runs`, and what was said."""
    with collected_messages() as said, connect(Store(store)) as connection:
        return dict(connection.execute(f"SELECT size, {S} FROM runs").fetchall()), said


def manifest(store: Path, size: str = "m") -> Path:
    return store / "runs" / run_of(store, size) / "manifest.json"


def cell(store: Path, size: str = "m") -> Path:
    (key,) = [record["cell_key"] for record in cell_records(store) if record["size"] == size]
    return store / "cells" / f"{key}.json"


# ---------------------------------------------------------------------------------------------------------------- seals


def test_whatever_record_a_store_writes_ends_in_the_sha256_of_the_text_before_it(own_store: Path) -> None:
    store = Store(own_store)
    store.write_record("failures", "f" * 16, {"family": "é", "size": "s", "dataset": "d", "error": "e", "at": now()})
    store.write_record("rank_fits", "r", {"run_id": "r", "ties": "mid", "distribution": "zipf"})
    register(store, "june", {}, [{"y": 1.5}])
    with heartbeat(store, {"cell_key": "k"}):
        while not list(own_store.glob("running/[!.]*")):
            pass
        texts = {path: path.read_text() for path in own_store.glob("[!.]*/[!.]*.json")}
    texts |= {path: path.read_text() for path in own_store.glob("runs/*/manifest.json")}
    kinds = {"cells", "fits", "rank_fits", "failures", "forecasts", "running"}
    assert {path.parent.name for path in texts} >= kinds
    for path, text in texts.items():
        before, _, seal = text.partition(', "seal": ')
        assert seal == f'"{hashlib.sha256(before.encode()).hexdigest()}"}}', path
        assert list(json.loads(text))[-1] == "seal"


@pytest.mark.parametrize("of", [manifest, cell])
def test_no_bit_of_a_record_flips_unseen_where_it_says_something_else(
    of: Callable[[Path], Path], own_store: Path
) -> None:
    path, chance = of(own_store), random.Random(0)
    whole = path.read_bytes()
    said = json.loads(whole)
    for _ in range(400):
        at, bit = chance.randrange(len(whole)), chance.randrange(8)
        flip(path, at, bit)
        with pytest.raises((ValueError, OSError)):
            read_json(path)
        path.write_bytes(whole)
    assert read_json(path) == {name: value for name, value in said.items() if name != "seal"}


def test_a_flipped_digit_is_named_by_verify_left_out_of_answers_and_not_merged(own_store: Path, tmp_path: Path) -> None:
    before, _ = answered(own_store)
    path, other = manifest(own_store), cell(own_store, "l")
    for each, digit in ((path, f'"{S}": 16000'), (other, '"asked_at": "2')):
        text = each.read_text()
        assert digit in text
        each.write_text(text.replace(digit, digit[:-1] + "1"))
    run_id = path.parent.name
    found, said = answered(own_store)
    assert found == {size: value for size, value in before.items() if size not in ("m", "l")}
    assert sum(f"run {run_id} in store" in line and "has changed since it was written" in line for line in said) == 1
    assert sum(f"cells/{other.name} in store" in line and "has changed since" in line for line in said) == 1
    named = {(fault.kind, fault.name) for fault in faults(own_store) if "has changed since" in fault.fault}
    assert named == {("run", run_id), ("cell", other.stem)}
    kept_out = merge(Store(tmp_path / "new"), Folder(Store(own_store))).skipped
    assert [line.split(" has changed")[0] for line in kept_out if "fits" not in line] == [
        *(f"cells/{other.name}: it", f"run {run_id}: it is corrupt: it"),
    ]


# ------------------------------------------------------------------------------------------------------------ manifests

WRONG: dict[str, dict[str, Any]] = {
    **{f"S {name}": {S: value} for name, value in {
        "null": None, "a list": [1], "below 0": -5, "zero": 0, "text": "16000", "true": True, "large": 2**63,
        "half": 0.5,
    }.items()},
    "V": {"vocab_size": 0}, "tokens": {"n_tokens": 1.5}, "window": {"window": -1}, "dtype": {"dtype": 5},
    "cross-entropy": {"cross_entropy_nats": -0.1}, "memory": {"peak_mib": "much"}, "format": {"format": [2]},
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_fact_of_no_type_or_range_of_its_column_leaves_that_run_out_and_names_it(
    wrong: str, own_store: Path, tmp_path: Path
) -> None:
    path = manifest(own_store)
    say(path, **WRONG[wrong])
    (name,) = WRONG[wrong]
    found, (line,) = answered(own_store)
    assert sorted(found) == ["l", "s", "xs"]
    assert f"run {path.parent.name} in store={own_store} is left out: manifest.json " in line
    assert name in line
    (fault,) = [fault for fault in faults(own_store) if fault.kind == "run"]
    assert (fault.name, name in fault.fault) == (path.parent.name, True)
    skipped = merge(Store(tmp_path / "new"), Folder(Store(own_store))).skipped
    assert [line for line in skipped if line.startswith(f"run {path.parent.name}: it is corrupt: manifest.json ")]


# ---------------------------------------------------------------------------------------------------------------- cells

LIES: dict[str, dict[str, Any]] = {
    "S": {S: 5}, "text": {"text_hash": "f" * 16}, "protocol": {"protocol": "harness"}, "tokens": {"n_tokens": 1},
    "what the run does not say": {"engine": "vllm"},
    "S of the family": {"config": {"model": {"sizes": {"m": {S: 17_000}}}}},
    "protocol as asked": {"config": {"protocol": {"name": "official"}}},
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_cell_that_contradicts_its_run_is_named_left_out_and_kept_out(lie: str, own_store: Path, cwd: Path) -> None:
    """Facts of a run come from its manifest alone; a stranger's cell must not move a law of mine."""
    mine, path = Store(shutil.copytree(own_store, own_store.parent / "mine")), cell(own_store)
    (mine.root / "cells" / path.name).unlink()
    say(path, **LIES[lie])
    found, (line,) = answered(own_store)
    assert found == {"xs": 1_000, "s": 4_000, "l": 64_000}
    assert f"cells/{path.name} in store={own_store} is left out: it says that " in line
    (fault,) = faults(own_store)
    assert (fault.kind, fault.name) == ("cell", path.stem)
    assert "and its run " in fault.fault
    answer = here("store", "merge", own_store, "--store", mine.root, cwd=cwd, check=1)
    assert f"kept out: cells/{path.name}: it says that " in answer.stderr
    assert not (mine.root / "cells" / path.name).exists()


def test_a_cell_may_ask_for_what_its_run_is_under_any_names(own_store: Path) -> None:
    say(cell(own_store), family="theirs", size="16k", training_tokens=10**9, protocol="paper", text_hash="7" * 16)
    assert answered(own_store) == ({"xs": 1_000, "s": 4_000, "16k": 16_000, "l": 64_000}, [])
    assert faults(own_store) == []


def test_a_run_without_a_cell_is_named_by_each_verb_that_answers_without_it(own_store: Path, cwd: Path) -> None:
    run_id = run_of(own_store, "m")
    cell(own_store).unlink()
    for words in ("fit k=1 resamples=20", "status", "store verify"):
        answer = here(*words.split(), "--store", own_store, cwd=cwd, check=1 if "verify" in words else 0)
        lines = [line for line in (answer.stdout + answer.stderr).splitlines() if "no cell names it" in line]
        assert len(lines) == 1, words
        assert f"run {run_id}" in lines[0]
        assert "run the line that measured it again" in lines[0]


# ----------------------------------------------------------------------------------------------------- beside a writer


def test_a_run_that_a_writer_is_about_to_link_is_not_named(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    path = cell(store.root)
    text = path.read_text()
    path.unlink()
    later = threading.Timer(0.3, lambda: path.write_text(text))
    later.start()
    assert answered(store.root)[1] == []
    later.join()


def test_what_is_measured_while_a_store_is_read_is_missing_or_whole_and_never_gone(
    own_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are listed before runs: between both a writer brings a run with its cell."""
    other, plain, brought = filled(tmp_path / "other", dataset="more"), Store.run_ids, list[int]()

    def beside(store: Store) -> list[str]:
        if store.root == own_store and not brought:
            brought.append(1)
            merge(store, Folder(other))
        return plain(store)

    monkeypatch.setattr(Store, "run_ids", beside)
    assert answered(own_store) == ({"xs": 1_000, "s": 4_000, "m": 16_000, "l": 64_000}, [])
    assert len(Store(own_store).runs()) == 8


# ----------------------------------------------------------------------------------------------------- no regular files


def test_pipes_and_marks_without_their_keys_hold_no_verb_up_and_are_named_once(own_store: Path, cwd: Path) -> None:
    names = [
        "cells/p.json",
        "running/p.json",
        "vocab/p.parquet",
        "imports/p-0123456789abcdef.parquet",
        "best/p.parquet",
        "rbpx.duckdb",
    ]
    for name in names:
        (own_store / name).parent.mkdir(exist_ok=True)
        os.mkfifo(own_store / name)
    (own_store / "running" / "no-cell.json").write_text('{"host": "here", "pid": 1}')
    (own_store / "running" / "no-pid.json").write_text(json.dumps({"cell_key": "k", "family": "f", "size": "s",
        "dataset": "d", "host": "h", "since": "2026", "pid": "all"}))  # fmt: skip
    verbs = ("status", "fit k=1 resamples=20", "store verify", "store gc", "sql FROM\tvocab", "export runs", "status")
    for words in verbs:
        answer = here(*words.split(" "), "--store", own_store, cwd=cwd, check=1 if "verify" in words else 0)
        said = answer.stdout + answer.stderr
        assert "Traceback" not in said
        assert said.count("cells/p.json") == ("gc" not in words), words
        if words == "status":
            assert [said.count(f"{name} in store") for name in ("running/p.json", "running/no-cell.json")] == [1, 1]
            assert "running/no-pid.json in store" in said
    found = {(fault.kind, fault.name) for fault in verify(Store(own_store)).faults}
    assert found == {("cell", "p"), ("vocab", "p"), ("import", "p-0123456789abcdef"), ("best", "p")}
    new = own_store.parent / "new"
    assert here("store", "merge", own_store, "--store", new, cwd=cwd, check=1).stderr.count("no regular file") == 3
    assert faults(new) == []


def test_a_pipe_in_the_place_of_a_table_is_a_damaged_run(own_store: Path, tmp_path: Path) -> None:
    path = manifest(own_store).with_name("tokens.parquet")
    path.unlink()
    os.mkfifo(path)
    assert sorted(answered(own_store)[0]) == ["l", "s", "xs"]
    assert [fault.fault for fault in faults(own_store)] == ["tokens.parquet is no regular file"]
    (line,) = merge(Store(tmp_path / "new"), Folder(Store(own_store))).skipped
    assert line.endswith("tokens.parquet is no regular file")
