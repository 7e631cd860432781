"""Fuzz targets for what is read from a store: each puts any bytes in the place of one file and asks everything of it.

The file is read, or left out with a line that says so, or refused in one line; whatever else lies in the store is read
as before. A record says what it likes of itself; of the tables of a run `verify` finds every change.
"""

import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from obstore.store import MemoryStore

from rbpx.config.grid import Cell
from rbpx.config.imports import ImportConfig
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.samples import SAMPLE, sample_here, sample_request
from rbpx.errors import RbpxError
from rbpx.files.digest import digest
from rbpx.files.entries import atomic_write_text
from rbpx.files.escapes import visible_line
from rbpx.store import schema
from rbpx.store.cell_states import cell_states, read_heartbeats
from rbpx.store.forecasts import register
from rbpx.store.imports.storage import dataset_names, list_imports
from rbpx.store.imports.table import import_file
from rbpx.store.merge import Folder, Source, merge
from rbpx.store.messages import collected_messages
from rbpx.store.relations import BY_RECORD, RELATIONS, records_alone
from rbpx.store.sql import ask_user, connect
from rbpx.store.store import NO_ROWS, RECORDS, RUN_TABLES, RUNNING, Store, now
from rbpx.store.transfer import Bucket, push
from rbpx.store.verify import verify
from rbpx.ties import Ties
from tests.support.synthetic import Truth, write_store

SECRET = b"a private key"
_CELL = {name: None for name in Cell.__dataclass_fields__} | {
    "family": "drawn", "size": "1000", "model": "drawn-1000", "dataset": "synthetic", "protocol": "paper",
    "window": 512, "whole": False, "padding": "counted", "bos": "tokenizer", "dtype": "float32", "seed": 0,
    "deterministic": False,
}  # fmt: skip
_SECOND_HAND = ("cell", "fit", "rank_fit", "vocab")  # what names, or is named by, something that was kept out
_HUB = DatasetConfig(name="drawn", kind="hub", hub="ORG/drawn")
Rows = dict[str, list[str]]


@cache
def sound() -> tuple[Store, Rows, tempfile.TemporaryDirectory[str]]:
    """A store with something of each kind in it, and its rows."""
    folder = tempfile.TemporaryDirectory(prefix="fuzz-")
    store = write_store(Path(folder.name) / "store", Truth(S=(1000, 2000)), seed=0, n_documents=2, n_tokens=3)
    (run_id, _) = store.run_ids()
    fit: dict[str, Any] = {column.name: None for column in schema.FITS} | {
        "fit_id": "f" * 16, "law": "rbp", "source": "measured", "k": 10, "C": 4.0, "alpha": 0.1, "status": "ok",
        "params": {"E": 0.5}, "run_ids": store.run_ids(), "created_at": now(), "n_points": 2,
    }  # fmt: skip
    rank_fit = {"run_id": run_id, "distribution": "lognormal", "ties": "mid", "params": {"mu": 1.5}, "loglik": -9.5}
    failure = {"cell_key": "a" * 16, "failure_key": "e" * 16, "family": "x", "size": "1", "dataset": "y", "error": "no"}
    store.write_record("fits", "f" * 16, fit)
    store.write_record("rank_fits", f"{run_id}-mid-lognormal", rank_fit | {"created_at": now(), "status": "ok"})
    store.write_record("failures", "e" * 16, failure | {"at": now()})
    answer: dict[str, Any] = {
        "law": "rbp",
        "k": 10,
        "S": 1e6,
        "D": None,
        "y": 0.5,
        "lo": 0.4,
        "hi": 0.6,
        "fit_id": "f" * 16,
    }
    names = {"source": "measured", "family": "drawn", "dataset": "synthetic", "ties": "mid", "versions": {"rbpx": "1"}}
    register(store, "june", names, [answer | {"run_ids": store.run_ids(), "weights": {"bend": 1.0}}])
    warm = {"run_id": [run_id], "doc_id": [0], "beta": [1.0], "n_tokens": [6], "sum_loss_nats": [1.5]}
    warm |= {"sum_slope_nats": [0.5], "sum_curvature_nats": [0.25]}
    store.write_beside("temperatures", run_id, pa.table(warm, schema=schema.TEMPERATURES))
    rows = store.root / "rows.csv"
    rows.write_text("family,size,S,dataset,k,rbp\ntoy,1b,1000000000,wiki,1,0.41\ntoy,1b,1000000000,wiki,10,0.5\n")
    import_file(store, rows, ImportConfig(source="them", ties=Ties.mid, family=None))
    beat = {"cell_key": "b" * 16, "family": "x", "size": "1", "dataset": "y", "host": "elsewhere", "pid": 1}
    beat |= {"since": now(), "cell": 1, "cells": 2, "n_tokens": 10, "tokens_done": 5, "tokens_per_s": None}
    atomic_write_text(store.root / RUNNING / f"{'b' * 16}.json", json.dumps(beat))
    drawn = {"doc_id": [0, 1], "source_id": ["0", "1"], "text": ["one", "two"]}
    request = sample_request(_HUB, 3, 0)
    facts = {b"rbpx": json.dumps({"request": request, "commit": "c" * 40, "at": now()})}
    store.write_sample(
        store.sample_file(digest(request)).stem,
        pa.table(drawn, schema=SAMPLE).replace_schema_metadata(facts),
    )
    rows_of_store, lines, faults = everything(store)
    assert (lines, faults) == ([], 0)
    return store, rows_of_store, folder


def of_records(store: Store) -> tuple[Rows, list[str], int]:
    """As `everything`, but for the relations that are made of records, without SQL and without a verification."""
    with collected_messages() as lines:
        with records_alone(store, *BY_RECORD) as connection:
            rows = {name: _written(connection.sql(f"FROM {name}").to_arrow_table()) for name in BY_RECORD}
        cell_states([Cell(**_CELL)], store)
    return rows, lines, len(lines)


def everything(store: Store) -> tuple[Rows, list[str], int]:
    """The rows of all relations, what was said while they were read, and how many faults are found."""
    with collected_messages() as lines:
        rows = _rows(store)
        read_heartbeats(store)
        cell_states([Cell(**_CELL)], store)
        with suppress(RbpxError):
            list_imports(store)
            dataset_names(store)
        n_faults = len(verify(store).faults)
    _said(*lines)
    return rows, lines, n_faults


def _said(*lines: str) -> None:
    assert all(line and line.encode() and "\n" not in visible_line(line) for line in lines), lines


def _rows(store: Store) -> Rows:
    with connect(store) as connection:
        return {name: _written(ask_user(connection, f"FROM {name}")) for name in RELATIONS}


def _written(rows: pa.Table) -> list[str]:
    return sorted(json.dumps(row, default=str) for row in rows.to_pylist())


@contextmanager
def _instead(path: Path, content: bytes) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def _hold(kind: str, path: Path, content: bytes, whole: bool = True) -> None:
    """What reads a store can do so with other bytes in a file; the rows of other files are as they were, or missed."""
    store, expected, _ = sound()
    is_other = content != path.read_bytes()
    with _instead(path, content):
        try:
            rows, lines, n_faults = (everything if whole else of_records)(store)
        except RbpxError as problem:
            _said(str(problem))
            rows, lines, n_faults = {}, [str(problem)], len(verify(store).faults) if whole else 0
        missed = [name for name in rows if len(rows[name]) < len(expected[name])]
        assert not missed or lines, f"rows of {missed} are missing, and nothing says so"
        if whole:
            assert n_faults or not is_other or kind not in RUN_TABLES, "verify finds what changed in a table"
            _merged(Folder(store))


def _merged(there: Source) -> None:
    """What another store takes from one is sound."""
    with tempfile.TemporaryDirectory() as folder:
        other = Store(Path(folder) / "other")
        try:
            skipped = merge(other, there).skipped
        except RbpxError as problem:
            skipped = [str(problem)]
        _said(*skipped)
        here = verify(other).faults if other.root.is_dir() else []
        assert not [fault for fault in here if fault.kind not in _SECOND_HAND], here


# ------------------------------------------------------------------------------------------------------------- targets


def record(kind: str, content: bytes, whole: bool = True) -> None:
    """A record of one of `RECORDS`, `runs` for a manifest, and what it means for the store.

    Not `whole`: for the relations that are made of records.
    """
    _hold(kind, _path(sound()[0], kind), content, whole)


def _path(store: Store, kind: str) -> Path:
    return min(store.root.glob("runs/*/manifest.json" if kind == "runs" else f"{kind}/*.json"))


def table(kind: str, content: bytes) -> None:
    """A Parquet file of `vocab`, `imports`, `temperatures` or one of `RUN_TABLES`."""
    _hold(kind, table_path(kind), content)


def table_path(kind: str) -> Path:
    """The Parquet file of a kind that a target puts bytes in the place of."""
    store, *_ = sound()
    if kind in RUN_TABLES:
        return _path(store, "runs").parent / f"{kind}.parquet"
    return next(path for path in sorted(store.root.glob(f"{kind}/*.parquet")) if path.stem != NO_ROWS)


def sample(content: bytes) -> None:
    """The documents that were drawn from a hub: read as they were drawn, or refused in one line."""
    store, *_ = sound()
    path = table_path("samples")
    with _instead(path, content):
        try:
            drawn = sample_here(_HUB, 3, 0, store)
        except RbpxError as problem:
            _said(str(problem))
            drawn = None
        _merged(Folder(store))
    if drawn is None:
        return
    assert [d.doc_id for d in drawn.documents] == list(range(len(drawn.documents)))
    assert drawn.documents
    assert all(isinstance(d.text, str) for d in drawn.documents)
    assert drawn.commit is None or isinstance(drawn.commit, str)


def pushed(content: bytes) -> None:
    """A manifest of a run that is sent to a bucket: its own tables go there, and nothing else of this machine."""
    whole, *_ = sound()
    (whole.root.parent / "secret.pem").write_bytes(SECRET)
    with tempfile.TemporaryDirectory() as folder, _bucket() as bucket, collected_messages() as lines:
        store = Store(shutil.copytree(whole.root, Path(folder) / "store"))
        path = _path(store, "runs")
        path.write_bytes(content)
        try:
            lines += push(store, bucket).skipped
        except RbpxError as problem:
            lines.append(str(problem))
        own = {each.read_bytes() for each in store.root.rglob("*.*") if each.is_file()}
        sent = {name: bytes(obstore.get(bucket._store, name).bytes()) for name in Bucket(bucket.name).paths}
    _said(*lines)
    assert set(sent.values()) <= own
    assert all(name.split("/")[0] in ("runs", *RECORDS, "vocab", "samples", "imports", "temperatures") for name in sent)


def pulled(content: bytes) -> None:
    """A manifest of a run in a bucket: what is pulled from there is sound."""
    store, *_ = sound()
    with _bucket() as bucket, collected_messages() as lines:
        push(store, bucket)
        obstore.put(bucket._store, _path(store, "runs").relative_to(store.root).as_posix(), content)
        _merged(Bucket(bucket.name))
    _said(*lines)


@contextmanager
def _bucket() -> Iterator[Bucket]:
    held = MemoryStore()
    with patch("rbpx.store.transfer._connect", lambda url: held):
        yield Bucket("s3://memory/store")


# ------------------------------------------------------------------------------------------------------------- corpora

_STRANGE: list[Any] = [
    None,
    True,
    -1,
    0,
    2**31,
    10**400,
    0.5,
    1e300,
    "",
    "x",
    "../../up",
    "a/b",
    "\ud800",
    "a\nb",
    "\0",
]
_STRANGE += ["y" * 5000, [], [None], ["x", 1], {}, {"a": {"b": []}}, "2026-01-01", "2026-01-01T00:00:00+01:00", "nan"]


@st.composite
def changed_record(draw: st.DrawFn, kind: str) -> bytes:
    """A record in which some values are others, or gone."""
    values = json.loads(_path(sound()[0], kind).read_bytes())
    for name in draw(st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=3)):
        if draw(st.booleans()):
            values[name] = draw(st.sampled_from(_STRANGE))
        else:
            values.pop(name, None)
    return json.dumps(values).encode()


def files_of(kind: str) -> list[bytes]:
    """Whole records of a kind, and what is no record."""
    whole = _path(sound()[0], kind).read_bytes()
    deep = b'{"params": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    others = [b"", b"[]", b"{}", b"null", deep, b'{"a": NaN}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}"]
    facts = json.loads(whole)
    named = [json.dumps(facts | {"files": each}).encode() for each in hostile_files(facts)] if kind == "runs" else []
    return [whole, json.dumps(facts | {"seal": "0" * 16}).encode(), whole[: len(whole) // 2], *others, *named]


def hostile_files(manifest: dict[str, Any]) -> list[Any]:
    """What a manifest may name in the place of its tables."""
    own, sha256 = manifest["files"], hashlib.sha256(SECRET).hexdigest()
    outside = str(sound()[0].root.parent / "secret.pem")
    names = (
        outside,
        "../../../secret.pem",
        "../VICTIM/tokens.parquet",
        "manifest.json",
        "",
        ".",
        "notes.parquet",
        "a\nb",
    )
    less = {name: own[name] for name in own if name != "tokens.parquet"}
    wrong = ["", "0" * 63, "0" * 65, "../../" + "0" * 58, "O" * 64, None, 5, [sha256]]
    return [
        *(own | {name: sha256} for name in names),
        *(own | {"tokens.parquet": each} for each in wrong),
        less,
        {},
        [],
        5,
    ]


@st.composite
def changed_table(draw: st.DrawFn, kind: str) -> bytes:
    """A Parquet file with columns gone, named otherwise or of another type, or other provenance."""
    whole = pq.read_table(table_path(kind))
    at = draw(st.integers(0, whole.num_columns - 1))
    name = whole.column_names[at]
    change = draw(st.sampled_from(["gone", "other name", "text", "null", "list", "bytes", "rows", "origin"]))
    if change == "gone":
        whole = whole.drop_columns([name])
    elif change == "other name":
        whole = whole.rename_columns([f"{each}{'x' * (each == name)}" for each in whole.column_names])
    elif change == "rows":
        whole = whole.take(pa.array(draw(st.lists(st.integers(0, whole.num_rows - 1), max_size=4)), pa.int64()))
    elif change == "origin":
        origin = draw(st.sampled_from([b"", b"[", b"[]", b"{}", b"null", b'{"source": 1}']))
        whole = whole.replace_schema_metadata({b"rbpx.import": origin, b"rbpx": origin})
    else:
        values = {"text": "x", "null": None, "list": [1], "bytes": b"\xff"}[change]
        whole = whole.set_column(at, name, pa.array([values] * whole.num_rows))
    sink = io.BytesIO()
    pq.write_table(whole, sink, write_page_checksum=True)
    return sink.getvalue()


def tables_of(kind: str) -> list[bytes]:
    """A whole file of a kind, and what is none."""
    whole = table_path(kind).read_bytes()
    return [whole, whole[:-9], whole[: len(whole) // 2], b"", b"PAR1PAR1"]


RECORDS = ("runs", *RECORDS)
TABLES = (*RUN_TABLES, "vocab", "imports", "temperatures")
Target = Callable[[bytes], None]
TARGETS = [
    *(f"record {kind}" for kind in RECORDS),
    *(f"table {kind}" for kind in TABLES),
    *("sample", "push", "pull"),
]


def target_of(name: str, whole: bool) -> tuple[Target, list[bytes], st.SearchStrategy[bytes]]:
    """What takes any bytes, whole files to begin from, and changed ones; `whole` asks everything of the store."""
    what, _, kind = name.partition(" ")
    if what == "sample":
        return sample, tables_of("samples"), changed_table("samples")
    if what == "table":
        return partial(table, kind), tables_of(kind), changed_table(kind)
    if what in ("push", "pull"):
        return {"push": pushed, "pull": pulled}[what], files_of("runs"), changed_record("runs")
    return partial(record, kind, whole=whole), files_of(kind), changed_record(kind)
