"""Stores that somebody else prepared: what a record names and holds is checked before anything acts on it."""

import hashlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from rbpx.files.digest import read_sealed, write_sealed
from rbpx.store.remote.bucket import Bucket
from rbpx.store.remote.outbox import Outbox
from rbpx.store.store import Store
from tests.support import fuzz_store
from tests.support.composed import here
from tests.support.object_storage import BUCKET, storage
from tests.support.objects import Objects
from tests.support.synthetic import Truth, write_store

SHA256 = "0123456789abcdef" * 4


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(tmp_path / "theirs", Truth(S=(1_000, 10_000)), seed=1, n_documents=3, n_tokens=20)


def change_manifest(store: Store, run_id: str, **values: Any) -> None:
    """Make a run say something else of itself, sealed as rbpx seals."""
    path = store.run_folder(run_id) / "manifest.json"
    write_sealed(path, read_sealed(path) | values, in_lines=True)


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
CACHES = ["rbpx.duckdb", ".checked.json", "hashes.json"]  # made again, or refused when they are written
SQL = ["runs/*/tokens.parquet", "cells/*", "vocab/*", "imports/*", "temperatures/*", "rbpx.duckdb"]
PLACES = [
    "runs/*/manifest.json", "runs/*/tokens.parquet", "cells/*", "fits/*", "rank_fits/*", "failures/*", "forecasts/*",
    "vocab/*", "imports/*", "samples/*", "temperatures/*", "running/*", *CACHES,
]  # fmt: skip


@pytest.mark.parametrize("kinds", [["pipe"], ["folder", "link to a device", "circle", "far too long"]])
@pytest.mark.usefixtures("alarm")
def test_what_is_no_file_at_any_place_where_one_is_due_is_named_and_holds_nothing_up(
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
