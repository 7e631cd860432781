"""Stores that somebody else prepared: what a record names and holds is checked before anything acts on it."""

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.files.digest import read_sealed, write_sealed
from rbpx.store.checks.values import named_tables
from rbpx.store.remote.bucket import Bucket
from rbpx.store.remote.outbox import Outbox
from rbpx.store.store import Store
from tests.support import fuzz_store
from tests.support.composed import here
from tests.support.object_storage import BUCKET, storage
from tests.support.objects import Objects
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


# ------------------------------------------------------------------------------------------------ what a manifest names


@pytest.mark.parametrize(
    "name", ["SECRET", "../../secret.pem", "../VICTIM/tokens.parquet", "notes.parquet", "", "a\nb"]
)
def test_a_run_that_names_another_file_is_left_out_everywhere(
    name: str, store: Store, cwd: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.pem"
    secret.write_text("a private key")
    run_id, other = store.run_ids()
    name = str(secret) if name == "SECRET" else name
    files = store.manifest(run_id)["files"]
    change_manifest(store, run_id, files=files | {name: hashlib.sha256(b"a private key").hexdigest()})
    at = ("--store", store.root)
    told = "manifest.json does not describe a run: its files names "
    assert f"run {run_id}" in here("status", *at, cwd=cwd, check=0).stderr
    assert told in here("store", "verify", *at, cwd=cwd, check=1).stdout
    merged = here("store", "merge", store.root, "--store", tmp_path / "mine", cwd=cwd, check=1)
    assert f"kept out: run {run_id}: it is corrupt: {told}" in merged.stderr
    assert "Traceback" not in merged.stderr
    assert Store(tmp_path / "mine").run_ids() == [other]
    answer = here("sql", "SELECT run_id FROM runs", "--format", "csv", *at, cwd=cwd, check=0)
    assert answer.stdout.split() == ["run_id", other]
    here("store", "rm", run_id, *at, cwd=cwd, check=0)
    assert secret.read_text() == "a private key"


def test_no_file_of_the_user_is_pushed(store: Store, cwd: Path, tmp_path: Path) -> None:
    secret = tmp_path / "id_rsa.pem"
    secret.write_text("a private key")
    run_id, other = store.run_ids()
    files = store.manifest(run_id)["files"] | {str(secret): hashlib.sha256(b"a private key").hexdigest()}
    change_manifest(store, run_id, files=files)
    with storage() as server:
        env = server.environment(tmp_path / "here")
        pushed = here("store", "push", f"s3://{BUCKET}/mine", "--store", store.root, cwd=cwd, env=env, check=1)
        keys = server.keys("mine")
    assert f"kept out: run {run_id}: it is corrupt: manifest.json does not describe a run" in pushed.stderr
    assert not [key for key in keys if "rsa" in key or key.startswith(f"runs/{run_id}")]
    assert [key for key in keys if key.startswith(f"runs/{other}/manifest.json")]


@pytest.mark.parametrize("name", ["SECRET", "../VICTIM/tokens.parquet"])
def test_a_run_in_the_outbox_that_names_another_file_is_not_sent_and_its_note_stays(
    name: str, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "secret.parquet"
    secret.write_text("a private key")
    run_id, _ = store.run_ids()
    theirs = (store.run_folder(run_id) / "manifest.json").read_bytes()
    change_manifest(
        store, run_id, files=store.manifest(run_id)["files"] | {str(secret) if name == "SECRET" else name: SHA256}
    )
    bucket = Objects()
    bucket.held = {f"runs/VICTIM/tokens-{SHA256[:16]}.parquet": b"theirs", f"runs/{run_id}/manifest.json": theirs}
    before = dict(bucket.held)
    outbox = Outbox(store.root, cast(Bucket, bucket))
    outbox.note(store.run_folder(run_id))
    outbox.send_all()
    assert (bucket.held, bucket.done) == (before, [])
    assert outbox.names() == {f"runs/{run_id}", f"runs/{run_id}/manifest.json"}
    assert f"run {run_id} in {store.root} is not sent: manifest.json does not describe a run" in caplog.text


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


# ------------------------------------------------------------------------------------- where a file is due, and none is


@pytest.fixture
def alarm() -> Iterator[None]:
    """What waits for a pipe would wait for ever."""

    def ring(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


STRANGE = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "link to a device": lambda path: os.symlink("/dev/zero", path),
    "circle": lambda path: os.symlink(path, path),
    "far too long": lambda path: path.open("wb").truncate(2**40),
}
CACHES = ["answers/*", "rbpx.duckdb", ".checked.json", "hashes.json"]  # made again, or refused when they are written
SQL = ["runs/*/tokens.parquet", "cells/*", "vocab/*", "imports/*", "temperatures/*", "rbpx.duckdb"]
PLACES = [
    "runs/*/manifest.json", "runs/*/tokens.parquet", "cells/*", "fits/*", "rank_fits/*", "failures/*", "forecasts/*",
    "vocab/*", "imports/*", "samples/*", "temperatures/*", "running/*", *CACHES,
]  # fmt: skip


@pytest.mark.parametrize("kinds", [["pipe"], ["folder", "link to a device", "circle", "far too long"]])
@pytest.mark.usefixtures("alarm")
def test_what_is_no_file_where_one_is_due_is_named_and_holds_nothing_up(
    kinds: list[str], cwd: Path, tmp_path: Path
) -> None:
    whole = fuzz_store.sound()[0].root
    for number, place in enumerate(PLACES):
        kind = kinds[number % len(kinds)]
        store, target = tmp_path / f"store{number}", tmp_path / f"new{number}"
        shutil.copytree(whole, store)
        path = min(store.glob(place), default=store / place)
        path.unlink(missing_ok=True)
        STRANGE[kind](path)
        lines = [["status"], ["store", "verify"], ["sql", "SELECT count(*) FROM tokens"]][: 3 if place in SQL else 2]
        answers = [here(*words, "--store", store, cwd=cwd) for words in lines]
        merged = here("store", "merge", store, "--store", target, cwd=cwd)
        assert "Traceback" not in "".join(answer.stderr for answer in (*answers, merged))
        assert not any(each.is_symlink() or each.stat().st_size > 2**22 for each in target.rglob("*"))
        assert path.is_symlink() or path.exists(), "what is not ours stays"
        if place not in CACHES:
            name = path.parent.name if place.startswith("runs/") else path.stem
            said = answers[0].stderr if place == "running/*" else answers[1].stdout + answers[1].stderr
            assert name in said, (place, kind)
            assert name in merged.stderr or place == "running/*", (place, kind, merged.stderr)


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


def test_a_manifest_of_150_mib_is_not_read(store: Store, cwd: Path, tmp_path: Path) -> None:
    run_id, other = store.run_ids()
    change_manifest(store, run_id, config={"padding": "x" * (17 * 2**20)})
    merged = here("store", "merge", store.root, "--store", tmp_path / "mine", cwd=cwd, check=1)
    assert (
        f"run {run_id}: it is corrupt: manifest.json is corrupt (17 MiB long, more than the 16 MiB allowed)"
        in merged.stderr
    )
    assert Store(tmp_path / "mine").run_ids() == [other]


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
def test_a_run_that_lies_of_its_rows_is_not_merged_though_its_hashes_are_right(
    lie: str, store: Store, cwd: Path, tmp_path: Path
) -> None:
    run_id, other = store.run_ids()
    tell, told = LIES[lie]
    tell(store, run_id)
    for words in (["store", "pull", store.root, "--store", tmp_path / "mine"],
                  ["store", "push", tmp_path / "pushed", "--store", store.root]):  # fmt: skip
        merged = here(*words, cwd=cwd, check=1)
        (line,) = [line for line in merged.stderr.splitlines() if line.startswith("kept out: run")]
        assert line.startswith(f"kept out: run {run_id}: it is corrupt: ")
        assert told in line
    assert Store(tmp_path / "mine").run_ids() == Store(tmp_path / "pushed").run_ids() == [other]
    assert told in here("store", "verify", "--store", store.root, cwd=cwd, check=1).stdout
