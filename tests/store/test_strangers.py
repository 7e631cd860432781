"""Stores that somebody else prepared: what a record names and holds is checked where it enters."""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.errors import RbpxError
from rbpx.store.merge import Folder, merge
from rbpx.store.records import manifest_fault, record_fault
from rbpx.store.sql import connect
from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.composed import here
from tests.support.damage import say
from tests.support.stores import reseal
from tests.support.synthetic import Truth, write_store

DAY_S = 24 * 3600
KEY = "0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(tmp_path / "theirs", Truth(S=(1_000, 10_000)), seed=1, n_documents=3, n_tokens=20)


def change_manifest(store: Store, run_id: str, **values: Any) -> None:
    """Make a run say something else of itself."""
    say(store.run_folder(run_id) / "manifest.json", **values)


def brought(store: Store, tmp_path: Path) -> tuple[list[str], list[str]]:
    """What is said where a store is merged into an empty one, and the runs that came."""
    mine = Store(tmp_path / "mine")
    return merge(mine, Folder(store)).skipped, mine.run_ids()


CELL = {"run_id": "r", "cell_key": "c", "family": "f", "size": "1", "dataset": "d", "failure_key": "k"}
FIT = {"fit_id": "f", "run_ids": ["r"], "params": {}, "tokenizer_hash": "t"}
RANK_FIT = {"run_id": "r", "distribution": "zipf", "ties": "mid"}
ELSEWHERE: tuple[Any, ...] = (
    *("../x", "/etc/passwd", "a\\b", "..", ".x", "", 5, ["r"], {}, "x" * 300, "é" * 101, "a\x00b", "a\nb"),
)


@pytest.mark.parametrize(
    ("kind", "name", "record", "key"),
    [
        *(("cells", "c", CELL, key) for key in ("run_id", "cell_key", "failure_key")),
        *(("fits", "f", FIT, key) for key in ("fit_id", "tokenizer_hash")),
        ("rank_fits", "r", RANK_FIT, "run_id"),
    ],
)
def test_a_record_that_names_what_lies_elsewhere_is_refused(kind: str, name: str, record: Any, key: str) -> None:
    assert record_fault(kind, name, record) is None
    for other in ELSEWHERE:
        assert record_fault(kind, name, record | {key: other}), other


def test_a_fit_or_a_forecast_of_no_plain_list_is_refused() -> None:
    for run_ids in (["../x"], [5], [None]):
        assert record_fault("fits", "f", FIT | {"run_ids": run_ids}) == "its run_ids are no names", run_ids
    for other in ("r", {"r": 1}, 5):
        assert str(record_fault("fits", "f", FIT | {"run_ids": other})).startswith("its run_ids is "), other
    forecast = {"name": "n", "predictions": [{"y": 1}]}
    assert record_fault("forecasts", "n-1", forecast) is None
    wrong: tuple[Any, ...] = ([], {}, "x", [1], 5)
    for each in wrong:
        assert "predictions" in str(record_fault("forecasts", "n-1", forecast | {"predictions": each})), each
    assert record_fault("cells", "other", CELL) == "it is the record c under another name"


def test_a_manifest_names_the_tables_of_a_run_by_their_hashes_and_no_other_file(store: Store) -> None:
    run_id = store.run_ids()[0]
    facts = store.manifest(run_id)
    files, sha256 = facts["files"], "0123456789abcdef" * 4
    assert manifest_fault(run_id, facts) is None
    for name in ("../VICTIM/tokens.parquet", "/etc/passwd", "manifest.json", "tokens.parquet ", "y" * 5000):
        assert manifest_fault(run_id, facts | {"files": files | {name: sha256}}) == (
            "manifest.json does not name the tables of a run"
        )
    hashes: tuple[Any, ...] = (sha256[1:], sha256 + "0", sha256.upper(), f"../../{sha256[6:]}", sha256 + "\n", None, 5)
    for each in hashes:
        assert manifest_fault(run_id, facts | {"files": files | {"tokens.parquet": each}}) == (
            "manifest.json does not give the SHA-256 of each table"
        ), each
    values: dict[str, Any] = {"files": [], "tokenizer_hash": "../../secret", "run_id": "other", "n_tokens": None}
    for key, value in values.items():
        assert manifest_fault(run_id, facts | {key: value}), key
    with pytest.raises(RbpxError, match="update rbpx"):
        manifest_fault(run_id, facts | {"format": 99})


def test_what_names_another_file_is_left_out_of_what_is_read_and_merged(store: Store, tmp_path: Path) -> None:
    secret = tmp_path / "secret.pem"
    secret.write_text("a private key")
    run_id, other = store.run_ids()
    change_manifest(store, run_id, files={str(secret): hashlib.sha256(b"a private key").hexdigest()})
    for name in ("../../elsewhere", str(tmp_path / "elsewhere")):
        cell = {**CELL, "cell_key": KEY, "run_id": name, "size": "evil"}
        (store.root / "cells" / f"{KEY}.json").write_text(json.dumps(cell))
        with connect(store) as connection:
            assert connection.execute("SELECT size FROM runs WHERE size = 'evil'").fetchall() == []
        said, came = brought(store, tmp_path)
        assert f"run {run_id}: it is corrupt: manifest.json does not name the tables of a run" in said
        assert f"cells/{KEY}.json: it names what is no name" in said
        assert came == [other]
    assert {fault.name for fault in verify(store).faults} >= {run_id, KEY}
    store.drop_run(run_id)
    assert secret.read_text() == "a private key"
    with pytest.raises(RbpxError, match="leads elsewhere"):
        store.drop_run("../../elsewhere")


def test_links_are_not_followed_out_of_a_store(store: Store, tmp_path: Path) -> None:
    key = tmp_path / "id_rsa"
    key.write_text(json.dumps(CELL | {"cell_key": KEY, "run_id": store.run_ids()[1]}))
    first, second = store.run_ids()
    table = store.part(first, "tokens")
    shutil.move(table, tmp_path / "tokens")
    table.symlink_to(tmp_path / "tokens")
    (store.root / "cells" / f"{KEY}.json").symlink_to(key)
    vocab = min((store.root / "vocab").glob("1*"))
    (store.root / "samples").mkdir()
    (store.root / "samples" / f"{KEY}.parquet").symlink_to(vocab)
    said, came = brought(store, tmp_path)
    assert came == [second]
    assert [line for line in said if line.startswith(f"run {first}: ")]
    assert not any(path.is_symlink() or path.stem == KEY for path in (tmp_path / "mine").rglob("*"))


def test_what_is_no_file_where_one_is_due_is_named_and_holds_nothing_up(store: Store, tmp_path: Path) -> None:
    places: dict[str, Callable[[Path], None]] = {
        "cells": os.mkdir,
        "fits": os.mkdir,
        "failures": lambda path: os.symlink(path, path),
    }
    for kind, make in places.items():
        (store.root / kind).mkdir(exist_ok=True)
        make(store.root / kind / f"{KEY}.json")
    with connect(store) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(2,)]
    assert [fault.name for fault in verify(store).faults] == [KEY] * 3
    assert brought(store, tmp_path)[1] == store.run_ids()


# ----------------------------------------------------------------------------------------- what a manifest says of rows


def forged(store: Store, run_id: str, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Give a run other rows, with the SHA-256 that they have."""
    path = store.part(run_id, table)
    pq.write_table(change(pq.read_table(path)), path, write_page_checksum=True)
    reseal(path.parent)


def with_first(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """Another value in the first row of a column."""

    def changed(table: pa.Table) -> pa.Table:
        at = table.column_names.index(name)
        values = [value, *table[name].to_pylist()[1:]]
        return table.set_column(at, name, pa.array(values, table.schema.field(name).type))

    return changed


_, *TOLD = Path(__file__).with_name("lies.txt").read_text(encoding="utf-8").splitlines()[1:]
OTHERWISE: dict[str, tuple[str, Callable[[pa.Table], pa.Table], str]] = {  # of tables that have other rows or columns
    "a token lost": ("tokens", lambda t: t.slice(1), "59 rows of tokens, expected 60"),
    "a column gone": ("documents", lambda t: t.drop_columns(["n_scored"]), "documents.parquet has no column n_scored"),
    "a column by another name": (
        *("tokens", lambda t: t.rename_columns({"logprob": "logqrob"})),
        "tokens.parquet has a column logqrob float, which is not of its format",
    ),
    "a column of another type": (
        *("tokens", lambda t: t.set_column(4, "greater", t["greater"].cast(pa.int64()))),
        "tokens.parquet has a column greater int64, which is not of its format",
    ),
}


@pytest.mark.parametrize("lie", [*TOLD, *OTHERWISE])
def test_a_run_that_lies_of_its_rows_is_not_merged(lie: str, store: Store, tmp_path: Path) -> None:
    run_id, other = store.run_ids()
    if lie in OTHERWISE:
        table, change, told = OTHERWISE[lie]
        forged(store, run_id, table, change)
    else:
        place, typed, told = re.split(" = | => ", lie)
        (table, name), value = place.split("."), json.loads(typed)
        if table == "manifest":
            change_manifest(store, run_id, **{name: value})
        else:
            forged(store, run_id, table, with_first(name, value))
    said, came = brought(store, tmp_path)
    (line,) = [line for line in said if line.startswith("run ")]
    assert line.startswith(f"run {run_id}: it is corrupt: ")
    assert told in line
    assert came == [other]


# ----------------------------------------------------------------------------------------------------- what is not ours


def test_gc_and_rm_leave_what_is_not_ours_and_remove_what_was_half_written(store: Store, cwd: Path) -> None:
    strangers = {
        *(store.root / name for name in (".draft.tmp", ".git.tmp/config", "notes/x.parquet", "cells/notes.txt")),
        store.root / "cells" / ".swap.tmp",
    }
    for path in strangers:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    ours = [store.root / "cells" / f".{KEY}.json.{KEY[:8]}.tmp", store.root / ".scratch.abcd_123.tmp"]
    for path in ours:
        path.write_text("half")
    for path in (*strangers, *ours):
        os.utime(path, (time.time() - 40 * DAY_S,) * 2)
    here("store", "gc", "--store", store.root, cwd=cwd, check=0)
    here("store", "rm", store.run_ids()[0], "--store", store.root, cwd=cwd, check=0)
    assert {path for path in strangers if not path.exists()} == set()
    assert [path for path in ours if path.exists()] == []
