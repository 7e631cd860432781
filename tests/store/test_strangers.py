"""Stores that somebody else prepared: what a record names and holds is checked before anything acts on it."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.files.digest import read_sealed, write_sealed
from rbpx.store.checks.values import named_tables
from rbpx.store.checks.verify import verify
from rbpx.store.merge import merge
from rbpx.store.messages import collected_messages
from rbpx.store.sql.queries import connect
from rbpx.store.store import Store
from tests.support import fuzz_store
from tests.support.composed import here
from tests.support.synthetic import Truth, write_store

SHA256 = "0123456789abcdef" * 4
TABLES = ("tokens.parquet", "rank_counts.parquet", "documents.parquet")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(tmp_path / "theirs", Truth(S=(1_000, 10_000)), seed=1, n_documents=3, n_tokens=20)


def change_manifest(store: Store, run_id: str, **values: Any) -> None:
    """Make a run say something else of itself, sealed as rbpx seals."""
    path = store.run_folder(run_id) / "manifest.json"
    write_sealed(path, read_sealed(path) | values, in_lines=True)


def read(store: Store, tmp_path: Path) -> tuple[list[str], list[str], list[str]]:
    """What is said where a store is merged into an empty one, the runs that came, and those that SQL sees."""
    mine = Store(tmp_path / "mine")
    said = merge(mine, store).skipped
    with connect(store) as connection:
        seen = connection.execute("SELECT run_id FROM runs ORDER BY ALL").fetchall()
    return said, mine.run_ids(), [run_id for (run_id,) in seen]


@pytest.mark.parametrize("name", ["SECRET", "../VICTIM/tokens.parquet", "a\nb"])
def test_a_run_that_names_another_file_is_left_out_of_what_is_read_and_merged(
    name: str, store: Store, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.pem"
    secret.write_text("a private key")
    run_id, other = store.run_ids()
    name = str(secret) if name == "SECRET" else name
    files = store.manifest(run_id)["files"]
    change_manifest(store, run_id, files=files | {name: hashlib.sha256(b"a private key").hexdigest()})
    told = "manifest.json does not describe a run: its files names "
    said, came, seen = read(store, tmp_path)
    assert any(line.startswith(f"run {run_id}: it is corrupt: {told}") for line in said)
    assert came == seen == [other]
    assert told in next(fault.fault for fault in verify(store).faults if fault.name == run_id)
    store.drop_run(run_id)
    assert secret.read_text() == "a private key"


def test_what_is_no_file_where_one_is_due_is_named_and_holds_nothing_up(tmp_path: Path) -> None:
    store = Store(Path(shutil.copytree(fuzz_store.sound()[0].root, tmp_path / "store")))
    whole, ids = store.run_ids()[0], {}
    strange: dict[str, Callable[[Path], object]] = {
        f"runs/{whole}/tokens.parquet": os.mkfifo,
        "cells/*": lambda path: os.symlink("/dev/zero", path),
        "fits/*": os.mkdir,
        "rank_fits/*": lambda path: os.symlink(path, path),
        "failures/*": lambda path: path.open("wb").truncate(2**40),
    }
    for place, make in strange.items():
        path = min(store.root.glob(place))
        path.unlink()
        make(path)
        ids[path] = whole if place.startswith("runs/") else path.stem
    faults = [f"{fault.name} {fault.fault}" for fault in verify(store).faults]
    with collected_messages() as messages:
        said, came, seen = read(store, tmp_path)
    for path, name in ids.items():
        assert any(name in line for line in faults), path
        assert any(name in line for line in said), path
        assert path.is_symlink() or path.exists(), "what is not ours stays"
    assert whole not in (*came, *seen)
    assert messages
    assert not any(each.is_symlink() or each.stat().st_size > 2**22 for each in (tmp_path / "mine").rglob("*"))


def test_a_manifest_of_17_mib_is_not_read(store: Store, tmp_path: Path) -> None:
    run_id, other = store.run_ids()
    path = store.run_folder(run_id) / "manifest.json"
    path.write_bytes(b'{"run_id": "' + b" " * (17 * 2**20))
    said, came, seen = read(store, tmp_path)
    long = "manifest.json is corrupt (17 MiB long, more than the 16 MiB allowed)"
    assert any(line.startswith(f"run {run_id}: it is corrupt: {long}") for line in said)
    assert came == seen == [other]


def test_the_tables_of_a_manifest_are_those_of_the_format_by_64_digits() -> None:
    whole = dict.fromkeys(TABLES, SHA256)
    assert named_tables({"files": whole}) == whole
    for sha256 in (SHA256[1:], SHA256 + "0", SHA256.upper(), f"../../{SHA256[6:]}", None, 5, [SHA256], b""):
        with pytest.raises(ValueError, match=r"its files gives no SHA-256 of tokens\.parquet"):
            named_tables({"files": whole | {"tokens.parquet": sha256}})
    for name in ("manifest.json", "Tokens.parquet", "tokens.parquet ", "tokens", "/etc/passwd", "y" * 5000):
        with pytest.raises(ValueError, match="which is no table of a run") as raised:
            named_tables({"files": whole | {name: SHA256}})
        assert len(str(raised.value)) < 300
    for files in ([], 5, None, "x"):
        with pytest.raises(ValueError, match="its files is not an object"):
            named_tables({"files": files})


def test_a_run_that_lacks_a_table_or_leads_elsewhere_by_its_tokenizer_is_left_out(store: Store, cwd: Path) -> None:
    run_id, other = store.run_ids()
    less = {name: sha256 for name, sha256 in store.manifest(run_id)["files"].items() if name != "tokens.parquet"}
    change_manifest(store, run_id, files=less)
    change_manifest(store, other, tokenizer_hash="../../secret")
    answer = here("store", "verify", "--format", "json", "--store", store.root, cwd=cwd, check=1)
    faults = {row["name"]: row["fault"] for row in json.loads(answer.stdout) if row["kind"] == "run"}
    assert faults[run_id] == "manifest.json does not describe a run: its files does not name tokens.parquet"
    assert faults[other] == "manifest.json does not describe a run: its tokenizer_hash is not a valid name"


def test_samples_are_merged_as_what_they_were_drawn_as(store: Store, cwd: Path, tmp_path: Path) -> None:
    whole = min((fuzz_store.sound()[0].root / "samples").iterdir())
    (store.root / "samples").mkdir()
    key = tmp_path / "id_rsa"
    key.write_text("a private key")
    shutil.copy(whole, store.root / "samples" / whole.name)
    shutil.copy(whole, store.root / "samples" / f"{'0' * 16}.parquet")
    shutil.copy(next(store.root.glob("vocab/*")), store.root / "samples" / f"{'1' * 16}.parquet")
    (store.root / "samples" / f"{'2' * 16}.parquet").symlink_to(key)
    (store.root / "samples" / "key").symlink_to(key)
    (store.root / "samples" / "folder").mkdir()
    merged = here("store", "merge", store.root, "--store", tmp_path / "mine", cwd=cwd, check=1)
    assert [path.name for path in (tmp_path / "mine" / "samples").iterdir()] == [whole.name]
    for name, told in (
        ("0" * 16 + ".parquet", f"it is a copy of samples/{whole.name}"),
        ("1" * 16 + ".parquet", "it does not say what was asked for"),
        ("2" * 16 + ".parquet", "a link, not a file"),
        ("key", "a link, not a file"),
        ("folder", "a folder, not a file"),
    ):
        assert f"kept out: samples/{name}: it is corrupt: {told}" in merged.stderr, merged.stderr


# ----------------------------------------------------------------------------------------- what a manifest says of rows


def forged(store: Store, run_id: str, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Give a run other rows, with the SHA-256 that they have."""
    path = store.run_folder(run_id) / f"{table}.parquet"
    pq.write_table(change(pq.read_table(path)), path, write_page_checksum=True)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    change_manifest(store, run_id, files=store.manifest(run_id)["files"] | {path.name: sha256})


def with_column(name: str, change: Callable[[Any], Any]) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        at = table.column_names.index(name)
        values = [change(value) for value in table[name].to_pylist()]
        return table.set_column(at, name, pa.array(values, table.schema.field(name).type))

    return changed


LIES: dict[str, tuple[Callable[[Store, str], None], str]] = {
    "n_tokens": (lambda s, r: change_manifest(s, r, n_tokens=10**9), "60 rows of tokens, expected 1,000,000,000"),
    "n_bytes": (lambda s, r: change_manifest(s, r, n_bytes=7), "n_bytes in documents, expected 7"),
    "cross-entropy": (lambda s, r: change_manifest(s, r, cross_entropy_nats=0.5), "its manifest says 0.5"),
    "S": (lambda s, r: change_manifest(s, r, non_embedding_params=0), "its non_embedding_params is 0, of "),
    "S beyond all": (
        lambda s, r: change_manifest(s, r, non_embedding_params=10**15, total_params=10**6),
        "its non_embedding_params is 1,000,000,000,000,000, of 1,000,000 parameters in all",
    ),
    "vocabulary": (lambda s, r: change_manifest(s, r, vocab_size=3), "tokens that no vocabulary of 3 has"),
    "ranks": (
        lambda s, r: forged(s, r, "rank_counts", with_column("greater", lambda g: g + 1)),
        "ranks that rank_counts counts differently",
    ),
    "sums": (
        lambda s, r: forged(s, r, "rank_counts", with_column("sum_logprob", lambda x: x / 2)),
        "ranks whose log-probabilities rank_counts adds up differently",
    ),
    "another run's ranks": (
        lambda s, r: forged(s, r, "rank_counts", with_column("run_id", lambda _: s.run_ids()[1])),
        "rows of another run",
    ),
    "another run's tokens": (
        lambda s, r: forged(s, r, "tokens", lambda _: pq.read_table(s.part(s.run_ids()[1], "tokens"))),
        "rows of tokens, expected",
    ),
    "an id beyond": (
        lambda s, r: forged(s, r, "tokens", with_column("token_id", lambda _: 2**31 - 1)),
        "60 tokens that no vocabulary of",
    ),
    "no tables": (
        lambda s, r: forged(s, r, "documents", lambda t: t.select(["run_id"])),
        "0 scored tokens in documents, expected 60",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_run_that_lies_of_its_rows_is_not_merged(lie: str, store: Store, tmp_path: Path) -> None:
    run_id, other = store.run_ids()
    tell, told = LIES[lie]
    tell(store, run_id)
    mine = Store(tmp_path / "mine")
    (line,) = [line for line in merge(mine, store).skipped if line.startswith("run ")]
    assert line.startswith(f"run {run_id}: it is corrupt: ")
    assert told in line
    assert mine.run_ids() == [other]
