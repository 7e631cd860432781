"""A store that is read-only, or on a full disk, answers every question, keeps nothing, and says so in one line."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rbpx.errors import MeasureError, RbpxError
from rbpx.store import store as store_module
from rbpx.store.messages import collected_messages
from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.composed import here
from tests.support.stores import snapshot
from tests.support.synthetic import Truth, write_store


@pytest.fixture
def read_only(own_store: Path, tmp_path: Path) -> Iterator[Path]:
    """A store on a read-only mount; for who may not mount, in folders without the right to write."""
    mount = tmp_path / "mount"
    mount.mkdir()
    if os.geteuid() != 0:
        folders = (own_store, *(path for path in own_store.rglob("*") if path.is_dir()))
        for each in folders:
            each.chmod(0o555)
        yield own_store
        for each in folders:
            each.chmod(0o755)
        return
    if subprocess.run(["mount", "--bind", own_store, mount], capture_output=True).returncode:
        pytest.skip("root without the right to mount: no folder is read-only to it")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", mount], check=True)
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


def test_a_question_is_answered_and_nothing_kept(read_only: Path, cwd: Path) -> None:
    before = snapshot(read_only)
    answer = here("fit", "resamples=20", "laws=[rbp]", "k=7", "--store", read_only, cwd=cwd, check=0)
    assert "mine on file" in answer.stdout
    (line,) = answer.stderr.splitlines()
    assert line.startswith(f"rbpx: store={read_only} cannot be written: ")
    assert line.endswith("; the answer is not kept in it")
    silent = here("sql", "SELECT count(*) FROM tokens", "--store", read_only, cwd=cwd, check=0)
    assert silent.stdout
    assert silent.stderr == ""
    assert snapshot(read_only) == before


def test_nothing_is_measured_into_it(read_only: Path) -> None:
    """A measurement makes the folder ready before it loads anything."""
    with pytest.raises(RbpxError, match=r'cannot be written: .*; name another folder: store="DIR"$'):
        Store(read_only).prepare()


@pytest.mark.parametrize("number", ["EROFS", "EACCES", "EPERM", "ENOSPC", "EIO"])
def test_only_a_disk_that_fails_hinders_an_answer(number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An immutable folder refuses with EPERM, and a full disk hinders no answer; one that fails does."""
    code = getattr(errno, number)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(store_module, "atomic_write_text", refuse)
    store = Store(tmp_path)
    with collected_messages() as said:
        if number == "EIO":
            with pytest.raises(MeasureError, match=os.strerror(code)):
                store.write_record("fits", "a" * 16, {"fit_id": "a" * 16})
        else:
            store.write_record("fits", "a" * 16, {"fit_id": "a" * 16})
            assert said == [f"store={tmp_path} cannot be written: {os.strerror(code)}; the answer is not kept in it"]
    with pytest.raises(RbpxError, match=os.strerror(code)):  # a forecast cannot be computed again
        store.write_record("forecasts", "a" * 16, {"forecast_id": "a" * 16})


def test_a_run_for_which_there_is_no_room_is_refused_and_no_part_of_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_table = pq.write_table

    def full(table: Any, path: Path, **how: Any) -> None:
        whole_table(table, path, **how)
        if path.name == "documents.parquet":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module.pq, "write_table", full)
    store = Store(tmp_path / "store")
    with pytest.raises(RbpxError, match=r"No space left on device; make room and run the same"):
        write_store(store.root, Truth(S=(1000,)), seed=0, n_documents=2, n_tokens=5)
    assert (store.run_ids(), store.leftovers()) == ([], [])
    monkeypatch.undo()
    write_store(store.root, Truth(S=(1000,)), seed=0, n_documents=2, n_tokens=5)
    assert verify(store).faults == []
    assert len(store.run_ids()) == 1


@pytest.mark.parametrize("words", [["gc"], ["rm", "them"], ["merge", "."]])
def test_what_changes_a_store_is_refused_in_one_line(words: list[str], read_only: Path, cwd: Path) -> None:
    other = [str(read_only.parent / "store") if word == "." else word for word in words]
    answer = here("store", *other, "--store", read_only, cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert f"store={read_only} cannot be written: " in line


def test_views_that_cannot_be_written_hinder_no_command(read_only: Path, cwd: Path) -> None:
    answer = here("status", "--store", read_only, cwd=cwd, check=0)
    assert answer.stdout.startswith(f"{read_only}: 4 runs of 4 models on 1 text\n")
    assert "Traceback" not in answer.stderr
    assert not (read_only / "rbpx.duckdb").exists()
