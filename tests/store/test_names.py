"""Copies that file syncing leaves in a store are not counted, deletions are noticed, and both are said."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from rbpx.store.checks.verify import verify
from rbpx.store.files import ledger
from rbpx.store.files.inside import is_plain
from rbpx.store.messages import collected_messages
from rbpx.store.sql.queries import connect
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.synthetic import Truth, write_store


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs, fits of them, fits of their ranks, an import and a failure; only for copies."""
    folder = tmp_path_factory.mktemp("fitted")
    cwd = folder / "cwd"
    cwd.mkdir()
    store = write_store(folder / "store", Truth(S=(10**4, 10**5, 10**6, 10**7)), seed=1, n_documents=5, n_tokens=20)
    (folder / "rows.csv").write_text("family,size,S,dataset,k,rbp\ntoy,1b,1000000000,wiki,1,0.41\n")
    here("import", folder / "rows.csv", "source=them", "ties=mid", "--store", store.root, cwd=cwd, check=0)
    for question in ("fit", "ranks"):
        here(question, "resamples=20", "k=10", "source=measured", "--store", store.root, cwd=cwd, check=0)
    failure = {"cell_key": "a" * 16, "failure_key": "f" * 16, "family": "x", "size": "1", "dataset": "y"}
    store.write_record("failures", "f" * 16, failure | {"error": "none", "at": "2026-01-01T00:00:00"})
    assert verify(store).faults == []
    return store.root


@pytest.fixture
def store(fitted: Path, tmp_path: Path) -> Store:
    return Store(Path(shutil.copytree(fitted, tmp_path / "store")))


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("a.json", True), ("", False), (".a", False), ("..", False), ("a/b", False), ("a\\b", False), ("a\0", False),
     ("é" * 100, True), ("é" * 101, False)],
)  # fmt: skip
def test_a_plain_name_leads_nowhere_else(name: str, is_one: bool) -> None:
    assert is_plain(name) is is_one


@pytest.mark.parametrize("name", ["a?b", "a\\b"])
def test_a_path_that_duckdb_does_not_take_has_no_index(name: str, store: Store, cwd: Path) -> None:
    moved = cwd / name / "store"
    shutil.copytree(store.root, moved)
    for line in (("status",), ("fit", "k=1", "resamples=20"), ("sql", "FROM runs"), ("store", "rebuild")):
        answer = here(*line, "--store", moved, cwd=cwd, check=0)
        assert answer.stdout or line[0] == "store"
    assert answer.stderr.count("\n") == 1
    assert "where DuckDB can open no index; answered from the files" in answer.stderr


def test_entries_are_never_ahead_of_their_files(tmp_path: Path) -> None:
    """Whatever moment a process is killed at, nothing is missed that was not deleted."""
    seen: list[list[Path]] = []
    store = Store(tmp_path)
    record: dict[str, Any] = {"fit_id": "a" * 16}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("enter", "forget"):
            do = getattr(ledger, name)
            patch.setattr(ledger, name, lambda path, do=do: (seen.append(ledger.missing(tmp_path)), do(path))[1])
        store.write_record("fits", "a" * 16, record)
        store.write_record("fits", "a" * 16, record)
        seen.append(ledger.missing(tmp_path))
        store.drop_record("fits", "a" * 16)
        seen.append(ledger.missing(tmp_path))
    assert len(seen) == 6
    assert not any(seen)


COPIES = ["{} (1)", "{}.sync-conflict-20261122-051040-ABCDEFG", "{}-HOST", "{} - Copy", "Copy of {}"]
HARMLESS = ["Thumbs.db", ".DS_Store", "desktop.ini", "._{}.json", ".~lock.{}.json#"]


def counted(store: Path) -> tuple[tuple[int, ...], list[str]]:
    """Rows of what is made of records and files, and what was said while they were counted."""
    columns = ", ".join(f"(SELECT count(*) FROM {name})" for name in ("runs", "fits", "vocab"))
    with collected_messages() as said, connect(Store(store)) as connection:
        counts: tuple[int, ...] = connection.execute(f"SELECT {columns}").fetchone() or ()
    return counts, said


def test_a_copy_beside_its_original_counts_for_nothing_and_is_said(own_store: Path) -> None:
    expected, silence = counted(own_store)
    assert silence == []
    path = min((own_store / "cells").iterdir())
    for name in COPIES:
        shutil.copy(path, path.with_name(f"{name.format(path.stem)}.json"))
    found, said = counted(own_store)
    assert found == expected
    assert all(f"is not counted: it is a copy of cells/{path.name}" in line for line in said)
    assert {fault.name for fault in verify(Store(own_store)).faults} == {name.format(path.stem) for name in COPIES}


def test_what_file_systems_leave_is_passed_over_in_silence(own_store: Path) -> None:
    expected, _ = counted(own_store)
    for kind in ("cells", "fits", "vocab", "runs"):
        for name in HARMLESS:
            (own_store / kind / name.format("0123456789abcdef")).write_text("{}")
        (own_store / kind / "@eaDir").mkdir()
    assert counted(own_store) == (expected, [])
    assert verify(Store(own_store)).faults == []


def test_a_deletion_is_noticed_and_said(own_store: Path) -> None:
    path = min((own_store / "cells").iterdir())
    path.unlink()
    _, (line,) = counted(own_store)
    assert f"cells/{path.name}" in line
    assert "gone" in line
