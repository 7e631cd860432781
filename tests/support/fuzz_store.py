"""Fuzz targets for what is read from a store: each puts any bytes in the place of one file and asks everything of it.

The file is read, or left out with a line that says so, or refused in one line; whatever else lies in the store is read
as before. A record without a seal, as early versions wrote them, and one that is sealed anew say what they like of
themselves; any other change leaves the record out.
"""

import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from rbpx.config.grid import Cell
from rbpx.config.imports import ImportConfig
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.samples import SAMPLE, sample_here, sample_request
from rbpx.errors import DamageError, RbpxError
from rbpx.files.digest import digest, read_sealed, write_sealed
from rbpx.files.entries import atomic_write_text
from rbpx.files.visible import visible_line
from rbpx.store import publish, schema
from rbpx.store.cell_states import cell_states, read_heartbeats
from rbpx.store.checks.integrity import doubt
from rbpx.store.checks.verify import verify
from rbpx.store.files.inside import KINDS, RUNNING, is_ours
from rbpx.store.forecasts import register
from rbpx.store.imports.kept import dataset_names, list_imports
from rbpx.store.imports.table import import_file
from rbpx.store.index import refresh_index
from rbpx.store.merge import merge
from rbpx.store.messages import collected_messages
from rbpx.store.remote import mirror
from rbpx.store.remote.bucket import Bucket
from rbpx.store.remote.outbox import Outbox
from rbpx.store.sql import relations
from rbpx.store.sql.queries import RELATIONS, ask_user, connect
from rbpx.store.store import Store, now
from rbpx.ties import Ties
from tests.support.objects import Objects
from tests.support.synthetic import Truth, write_store

SECRET = b"a private key"
_CELL = {name: None for name in Cell.__dataclass_fields__} | {
    "family": "drawn", "size": "1000", "model": "drawn-1000", "dataset": "synthetic", "protocol": "paper",
    "window": 512, "whole": False, "padding": "counted", "bos": "tokenizer", "dtype": "float32", "seed": 0,
    "deterministic": False,
}  # fmt: skip
_SECOND_HAND = ("cell", "fit", "rank_fit", "vocab")  # what names, or is named by, something that was kept out
OF_RUNS = ("tokens", "rank_counts", "documents")
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
        rows = {name: _written(relations.table(store, name)) for name in ("runs", *relations.BY_RECORD)}
        cell_states([Cell(**_CELL)], store)
    return rows, lines, len(lines)


def everything(store: Store) -> tuple[Rows, list[str], int]:
    """The rows of all relations, what was said while they were read, and how many faults are found."""
    rows: Rows = {}
    with collected_messages() as lines:
        try:
            rows = _rows(store)
        except DamageError:
            doubt(store)
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


def _hold(path: Path, content: bytes, exact: bool, whole: bool = True) -> None:
    """What reads a store can do so with other bytes in a file; where it is `exact`, no row is other than it was."""
    store, expected, _ = sound()
    with _instead(path, content):
        try:
            rows, lines, n_faults = (everything if whole else of_records)(store)
        except RbpxError as problem:
            _said(str(problem))
            return
        others = {name: [row for row in rows[name] if row not in expected[name]] for name in rows}
        missed = sum(len(expected[name]) - len(rows[name]) for name in rows)
        if exact:
            assert not any(others.values()), others
            assert not missed or (lines and n_faults), "rows are missing, and nothing says so"
        if whole:
            _merged(store)


def _merged(store: Store) -> None:
    """What another store takes from it is sound."""
    with tempfile.TemporaryDirectory() as folder:
        other = Store(Path(folder) / "other")
        try:
            skipped = merge(other, store).skipped
        except RbpxError as problem:
            skipped = [str(problem)]
        _said(*skipped)
        here = verify(other).faults if other.root.is_dir() else []
        assert not [fault for fault in here if fault.kind not in _SECOND_HAND], here


# ------------------------------------------------------------------------------------------------------------- targets


def record(kind: str, content: bytes, whole: bool = True) -> None:
    """A record of one of `KINDS`, `runs` for a manifest, and what it means for the store.

    Not `whole`: for the relations that are made of records.
    """
    store, *_ = sound()
    path = _path(store, kind)
    before = read_sealed(path)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "a.json"
        copy.write_bytes(content)
        try:
            now_there = read_sealed(copy)
        except ValueError:
            now_there = before
    _hold(path, content, now_there == before, whole)


def _path(store: Store, kind: str) -> Path:
    pattern = {"runs": "runs/*/manifest.json", "heartbeats": f"{RUNNING}/*.json"}
    return sorted(store.root.glob(pattern.get(kind, f"{kind}/*.json")))[0]


def heartbeat(content: bytes) -> None:
    """A heartbeat of a process, which nothing seals."""
    store, *_ = sound()
    with _instead(_path(store, "heartbeats"), content), collected_messages() as lines:
        beats = read_heartbeats(store)
        for beat in beats.values():
            assert beat.share is None or beat.share >= 0
            assert beat.left_s is None or isinstance(beat.left_s, float)
        cell_states([Cell(**_CELL)], store)
    assert len(beats) + len(lines) == 1, "it is read, or left out with a line"


def ledger(content: bytes) -> None:
    """A name in the ledger: what it names is missed, in one line; one that no file of a store has means nothing."""
    store, expected, _ = sound()
    name = os.fsdecode(content.replace(b"/", b"").replace(b"\0", b"")[:200])
    if name in ("", ".", "..") or name.startswith("."):
        return
    entry = store.root / "written" / "fits" / name
    existed, means = entry.exists(), int(is_ours("fits", name))
    entry.touch()
    try:
        rows, lines, n_faults = everything(store)
        assert rows == expected
        assert existed or (len(lines) == means and n_faults == means)
    finally:
        if not existed:
            entry.unlink()


def table(kind: str, content: bytes) -> None:
    """A Parquet file of `vocab`, `imports`, `temperatures` or, sealed anew or not, one of `OF_RUNS`."""
    path = table_path(kind)
    if kind not in OF_RUNS:
        _hold(path, content, exact=False)
        return
    _hold(path, content, exact=True)
    manifest = path.with_name("manifest.json")
    facts, before = read_sealed(manifest), manifest.read_bytes()
    write_sealed(manifest, facts | {"files": facts["files"] | {path.name: hashlib.sha256(content).hexdigest()}})
    try:
        _hold(path, content, exact=False)
    finally:
        manifest.write_bytes(before)


def table_path(kind: str) -> Path:
    """The Parquet file of a kind that a target puts bytes in the place of."""
    store, *_ = sound()
    if kind in OF_RUNS:
        return _path(store, "runs").parent / f"{kind}.parquet"
    return sorted(store.root.glob(f"{kind}/*.parquet"))[0]


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
        _merged(store)
    if drawn is None:
        return
    assert [d.doc_id for d in drawn.documents] == list(range(len(drawn.documents)))
    assert drawn.documents
    assert all(isinstance(d.text, str) for d in drawn.documents)
    assert drawn.commit is None or isinstance(drawn.commit, str)


def index(content: bytes) -> None:
    """The index, which is never the only copy: it is made again, with all rows."""
    store, expected, _ = sound()
    path = store.root / "rbpx.duckdb"
    with _instead(path, content):
        refresh_index(store)
        with duckdb.connect(str(path), read_only=True) as connection:
            for name in ("runs", *relations.BY_RECORD):
                (n,) = connection.execute(f"SELECT count(*) FROM {name}").fetchone() or ()
                assert n == len(expected[name]), name


def push(content: bytes) -> None:
    """A manifest of a run that is sent to a bucket: its own tables go there, and nothing else of this machine."""
    store, *_ = sound()
    path, bucket = _path(store, "runs"), Objects()
    (store.root.parent / "secret.pem").write_bytes(SECRET)
    victims = {f"runs/VICTIM/tokens-{hashlib.sha256(SECRET).hexdigest()[:16]}.parquet": b"theirs"}
    with tempfile.TemporaryDirectory() as folder, collected_messages() as lines:
        run = Path(shutil.copytree(path.parent, Path(folder).resolve() / "runs" / path.parent.name))
        (run / "manifest.json").write_bytes(content)
        bucket.held |= victims | {f"runs/{run.name}/manifest.json": path.read_bytes()}  # another machine was faster
        Outbox(run.parent.parent, cast(Bucket, bucket)).send(run)
    _said(*lines)
    own = {each.read_bytes() for each in path.parent.iterdir()}
    assert {bytes for name, bytes in bucket.held.items() if name not in victims} <= own
    assert victims.items() <= bucket.held.items()
    assert all(name.startswith(f"runs/{run.name}/") for _, name in bucket.done)


def pull(content: bytes) -> None:
    """A manifest of a run in a bucket: what is pulled from there is sound, and no run that is there is spoilt."""
    store, *_ = sound()
    manifest, bucket = _path(store, "runs"), Objects()
    for path in store.root.rglob("*"):
        if path.is_file() and is_ours(path.parent.relative_to(store.root).as_posix(), path.name):
            bucket.held[path.relative_to(store.root).as_posix()] = path.read_bytes()
    bucket.held[manifest.relative_to(store.root).as_posix()] = content
    before = dict(bucket.held)
    with tempfile.TemporaryDirectory() as cache, collected_messages() as lines:
        instead = {"Bucket": lambda url: bucket, "cache_folder": lambda: Path(cache), "endpoint_of": lambda url: None}
        with ExitStack() as patched:
            for name, value in instead.items():
                patched.enter_context(patch.object(mirror, name, value))
            try:
                there = mirror.Mirror(bucket.url, writes=False)
            except RbpxError as problem:
                _said(str(problem))
            else:
                _merged(there)
    _said(*lines)
    assert bucket.held == before


def published(content: bytes) -> None:
    """A manifest of a store that is published: no file of this machine, and no path of it, is sent."""
    store, *_ = sound()
    path = _path(store, "runs")
    (store.root.parent / "secret.pem").write_bytes(SECRET)
    sent: dict[str, bytes] = {}

    def send(folder: Path, repo: str) -> None:
        sent.update({each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*.*")})

    with _instead(path, content), patch.object(publish, "_send", send), collected_messages() as lines:
        try:
            publish.publish(store, "hf://datasets/us/ours")
        except RbpxError as problem:
            _said(str(problem))
    _said(*lines)
    names = re.compile(
        r"README\.md|(observations|runs|fits|vocab)\.parquet|(tokens|rank_counts|documents)/\w+\.parquet"
    )
    assert all(names.fullmatch(name) for name in sent), sent.keys()
    assert not [name for name, each in sent.items() if SECRET in each or str(store.root.parent).encode() in each]


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


def _sealed(values: dict[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_sealed(Path(folder) / "a.json", values, durable=False)
        return (Path(folder) / "a.json").read_bytes()


@st.composite
def changed_record(draw: st.DrawFn, kind: str) -> bytes:
    """A record in which some values are others, or gone: sealed anew, or without a seal."""
    values = json.loads(_path(sound()[0], kind).read_bytes())
    values.pop("seal", None)
    for name in draw(st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=3)):
        if draw(st.booleans()):
            values[name] = draw(st.sampled_from(_STRANGE))
        else:
            values.pop(name, None)
    return _sealed(values) if values and draw(st.booleans()) else json.dumps(values).encode()


def files_of(kind: str) -> list[bytes]:
    """Whole records of a kind, and what is no record."""
    whole = _path(sound()[0], kind).read_bytes()
    unsealed = {name: value for name, value in json.loads(whole).items() if name != "seal"}
    deep = b'{"params": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    others = [b"", b"[]", b"{}", b"null", deep, b'{"a": NaN}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}"]
    named = [_sealed(unsealed | {"files": files}) for files in hostile_files(unsealed)] if kind == "runs" else []
    return [whole, json.dumps(unsealed).encode(), whole[: len(whole) // 2], *others, *named]


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
        origin = draw(st.sampled_from([b"", b"[", b"[]", b"{}", b"null", b'{"source": 1}', b"[" * 100_000]))
        whole = whole.replace_schema_metadata({b"rbpx.import": origin, b"rbpx": origin})
    else:
        values = {"text": "x", "null": None, "list": [1], "bytes": b"\xff"}[change]
        whole = whole.set_column(at, name, pa.array([values] * whole.num_rows))
    sink = io.BytesIO()
    pq.write_table(whole, sink, write_page_checksum=True)
    return sink.getvalue()


def indexes() -> list[bytes]:
    """A whole index, and what is none."""
    store, *_ = sound()
    whole = refresh_index(store).read_bytes()
    return [whole, whole[: len(whole) // 2], whole[:4096], b"", b"DUCK"]


def tables_of(kind: str) -> list[bytes]:
    """A whole file of a kind, and what is none."""
    whole = table_path(kind).read_bytes()
    return [whole, whole[:-9], whole[: len(whole) // 2], b"", b"PAR1PAR1"]


RECORDS = ("runs", *KINDS)
TABLES = (*OF_RUNS, "vocab", "imports", "temperatures")
NAMES = [b"f" * 16 + b".json", b"a.json", b"a\nb.json", b"\xff.json", b"x" * 200, b"=cmd()", b"\x1b[2J"]
Target = Callable[[bytes], None]
TARGETS = [
    *(f"record {kind}" for kind in RECORDS),
    *(f"table {kind}" for kind in TABLES),
    *("heartbeat", "ledger", "sample", "index", "push", "pull", "publish"),
]


def target_of(name: str, whole: bool) -> tuple[Target, list[bytes], st.SearchStrategy[bytes]]:
    """What takes any bytes, whole files to begin from, and changed ones; `whole` asks everything of the store."""
    what, _, kind = name.partition(" ")
    if what == "ledger":
        return ledger, NAMES, st.binary(max_size=40)
    if what == "sample":
        return sample, tables_of("samples"), changed_table("samples")
    if what == "index":
        return index, indexes(), st.binary(max_size=40)
    if what == "table":
        return partial(table, kind), tables_of(kind), changed_table(kind)
    if what in ("push", "pull", "publish"):
        run = {"push": push, "pull": pull, "publish": published}[what]
        return run, files_of("runs"), changed_record("runs")
    kind = kind or f"{what}s"
    alone = heartbeat if what == "heartbeat" else partial(record, kind, whole=whole)
    return alone, files_of(kind), changed_record(kind)
