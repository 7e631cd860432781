"""A store with links in it, and with files of somebody else: nothing outside changes, nothing strange is removed."""

import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.errors import RbpxError
from rbpx.store.checks.verify import verify
from rbpx.store.files.inside import FOLDERS, RUNNING, UNSENT, WRITTEN, inside
from rbpx.store.merge import merge
from rbpx.store.messages import collected_messages
from rbpx.store.sql.queries import connect
from rbpx.store.store import Store
from tests.support import fuzz_store
from tests.support.composed import here

PLACES = [*FOLDERS, RUNNING, WRITTEN, f"{WRITTEN}/cells", UNSENT, f"{UNSENT}/runs"]
KEY = "0123456789abcdef"
DAY_S = 24 * 3600


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with something of each kind in it."""
    return Path(shutil.copytree(fuzz_store.sound()[0].root, tmp_path / "data" / "store"))


def seen(folder: Path) -> dict[str, tuple[float, bytes]]:
    """All that lies in a folder: when it was written, and what it holds."""
    paths = [path for path in folder.rglob("*") if path.is_file() or path.is_symlink()]
    return {str(path.relative_to(folder)): (path.lstat().st_mtime, path.read_bytes()[:1000]) for path in paths}


@pytest.mark.parametrize("place", PLACES)
def test_a_link_in_the_place_of_a_folder_is_refused(place: str, store: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    folder = store / place
    folder.parent.mkdir(exist_ok=True)
    shutil.move(folder, theirs) if folder.is_dir() else theirs.mkdir()
    folder.symlink_to(theirs)
    told = f"{folder} is a link to {theirs}, which is left alone; put the folder in its place, or delete the link"
    with pytest.raises(RbpxError, match=f"^{re.escape(told)}$"):
        Store(store)


def test_a_run_or_a_record_that_is_a_link_is_left_out_and_said(store: Path, tmp_path: Path) -> None:
    paths = [min((store / kind).iterdir()) for kind in ("runs", "fits", "vocab")]
    for n, path in enumerate(paths):
        path.rename(tmp_path / str(n))
        path.symlink_to(tmp_path / str(n))
    with collected_messages() as said, connect(Store(store)) as connection:
        counts = connection.execute("SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM fits)").fetchone()
    assert counts == (1, 0)
    for path in paths:
        assert any(path.stem in line and "a link" in line for line in said)
    assert {fault.name for fault in verify(Store(store)).faults} >= {path.stem for path in paths}
    skipped = merge(Store(tmp_path / "new"), Store(store)).skipped
    assert any(line.startswith(f"run {paths[0].name}: it is corrupt: it is a link") for line in skipped)
    assert not any(path.is_symlink() for path in (tmp_path / "new").rglob("*"))


def test_gc_leaves_what_is_not_ours(store: Path, cwd: Path) -> None:
    run_id = "f" * 16
    strangers = {
        *(store / "temperatures" / name for name in ("mine.parquet", f"{KEY}.parquet", "notes.txt")),
        *(store / name for name in (".draft.tmp", ".draft.12345678.tmp.old", ".git.tmp/config")),
        *(store / "notes" / name for name in (f".{KEY}.json.{KEY[:8]}.tmp",)),
        *(store / "cells" / name for name in (".swap.tmp", "notes.txt", "a.json.tmp")),
        store / "written" / "fits" / "notes.txt",
    }
    for path in strangers:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    ours = [store / "cells" / f".{KEY}.json.{KEY[:8]}.tmp", store / f".rbpx.duckdb.{KEY[:8]}.tmp.wal"]
    ours.append(store / ".scratch.abcd_123.tmp")
    for path in ours:
        path.write_text("half")
    (warm,) = (store / "temperatures").glob("synthetic*.parquet")
    orphan = store / "temperatures" / f"{run_id}.parquet"
    _as_of_run(warm, run_id, orphan)
    for path in (*strangers, *ours):
        os.utime(path, (time.time() - 40 * DAY_S,) * 2)
        if path.parent.name == ".git.tmp":
            os.utime(path.parent, (0, 0))
    here("store", "gc", "--store", store, cwd=cwd, check=0)
    assert {path for path in strangers if not path.exists()} == set()
    assert [path for path in (*ours, orphan) if path.exists()] == []


def _as_of_run(path: Path, run_id: str, to: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "run_id", pa.array([run_id] * table.num_rows)), to)


def test_a_run_with_somebody_elses_file_in_its_folder_is_not_removed(store: Path, cwd: Path) -> None:
    run = next((store / "runs").iterdir())
    (run / ".DS_Store").write_text("")
    (run / "notes.txt").write_text("mine")
    before = seen(run)
    answer = here("store", "rm", run.name, "--store", store, cwd=cwd, check=2)
    assert (
        answer.stderr
        == f"rbpx: {run / 'notes.txt'} is not a file of a run and would be deleted with it; move it elsewhere first\n"
    )
    assert seen(run) == before
    assert (store / "cells").exists()
    (run / "notes.txt").unlink()
    here("store", "rm", run.name, "--store", store, cwd=cwd, check=0)
    assert not run.exists()


def test_a_file_in_the_place_of_a_folder_is_one_line(tmp_path: Path, cwd: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "cells").write_text("")
    answer = here("status", "--store", tmp_path / "store", cwd=cwd, check=2)
    assert (
        answer.stderr
        == f"rbpx: {tmp_path / 'store' / 'cells'} is a file where a store has a folder; move it elsewhere\n"
    )


# ---------------------------------------------------------------------------------------------------------- the rule

PARTS = st.sampled_from(["..", ".", "runs", "cells", "written", "x", KEY, f"{KEY}.json", "manifest.json", "link", ""])


@settings(max_examples=40, deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=5).map("/".join))
def test_whatever_is_asked_for_lies_inside_or_is_refused(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "store"
        for name in ("runs", "cells", "written"):
            (root / name).mkdir(parents=True)
            (root / name / "link").symlink_to(folder)
            (root / name / "link.json").symlink_to(folder)
        try:
            found = inside(root, path)
        except (RbpxError, ValueError):
            return
        assert found.resolve().is_relative_to(root)
        assert ".." not in found.parts
