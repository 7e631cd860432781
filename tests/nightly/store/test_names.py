"""Copies that file syncing leaves in a store are not counted, in commands and in rbpx.duckdb, and are said."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from rbpx.store.merge import Folder, merge
from rbpx.store.relations import write_views
from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.composed import here
from tests.support.synthetic import Truth, write_store

COPIES = ["{} (1)", "{}.sync-conflict-20261122-051040-ABCDEFG", "{}-HOST", "{} - Copy"]
RELATIONS = ("runs", "fits", "tokens", "rank_counts", "documents", "vocab", "observations", "rbp_at(10, 'mid')")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs, fits of them and an import; only for copies."""
    folder = tmp_path_factory.mktemp("fitted")
    cwd = folder / "cwd"
    cwd.mkdir()
    store = write_store(folder / "store", Truth(S=(10**4, 10**5, 10**6, 10**7)), seed=1, n_documents=5, n_tokens=20)
    (folder / "rows.csv").write_text("family,size,S,dataset,k,rbp\ntoy,1b,1000000000,wiki,1,0.41\n")
    here("import", folder / "rows.csv", "source=them", "ties=mid", "--store", store.root, cwd=cwd, check=0)
    here("fit", "resamples=20", "k=10", "source=measured", "--store", store.root, cwd=cwd, check=0)
    assert verify(store).faults == []
    return store.root


@pytest.fixture
def store(fitted: Path, tmp_path: Path) -> Store:
    return Store(Path(shutil.copytree(fitted, tmp_path / "store")))


def counts(store: Store, cwd: Path) -> tuple[list[int], list[str]]:
    """Rows of the relations, the same in rbpx.duckdb, and what was said while they were counted."""
    query = "SELECT " + ", ".join(f'(SELECT count(*) FROM {each}) AS "{each}"' for each in RELATIONS)
    answer = here("sql", query, "--format", "json", "--store", store.root, cwd=cwd, check=0)
    (row,) = json.loads(answer.stdout)
    write_views(store)
    with duckdb.connect(str(store.root / "rbpx.duckdb"), read_only=True) as views:
        assert views.execute(query).fetchall() == [tuple(row.values())]
    return list(row.values()), answer.stderr.splitlines()


def first(store: Store, kind: str) -> Path:
    return sorted(path for path in (store.root / kind).iterdir() if path.name[0] not in "._")[0]


@pytest.mark.parametrize("kind", ["cells", "fits", "vocab", "imports", "runs"])
def test_a_copy_of_any_kind_beside_its_original_counts_for_nothing_and_is_said(
    kind: str, store: Store, cwd: Path
) -> None:
    expected, silence = counts(store, cwd)
    assert silence == []
    path, copies = first(store, kind), set[str]()
    for name in COPIES:
        copy = path.with_name(name.format(path.stem) + path.suffix)
        (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
        copies.add(copy.stem if path.suffix else copy.name)
    found, lines = counts(store, cwd)
    assert found == expected
    assert [any(copy in line for line in lines) for copy in copies] == [True] * len(COPIES)
    assert {fault.name for fault in verify(store).faults} == copies


def test_a_fit_copied_over_another_is_one_fit(store: Store, cwd: Path) -> None:
    expected, _ = counts(store, cwd)
    one, other = sorted((store.root / "fits").iterdir())[:2]
    shutil.copy(one, other)
    found, (line,) = counts(store, cwd)
    assert found == [expected[0], expected[1] - 1, *expected[2:]]
    assert f"fits/{other.name}" in line
    (fault,) = verify(store).faults
    assert (fault.kind, fault.name) == ("fit", other.stem)


@pytest.mark.parametrize("kind", ["cells", "vocab", "runs"])
def test_a_deletion_by_hand_is_no_traceback_and_what_verify_names_can_be_done(
    kind: str, store: Store, cwd: Path
) -> None:
    path = first(store, kind)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    _, lines = counts(store, cwd)
    assert [path.name in line for line in lines] == ([True] if kind == "runs" else [])
    found = verify(store)
    kinds = {"cells": set(), "vocab": {"run"}, "runs": {"cell", "fit"}}[kind]
    assert {fault.kind for fault in found.faults} == kinds
    assert found.n_orphaned == (kind == "cells")


def test_what_is_removed_by_store_rm_and_gc_is_not_missed(store: Store, cwd: Path) -> None:
    for name in (store.run_ids()[0], "them"):
        here("store", "rm", name, "--store", store.root, cwd=cwd, check=0)
    here("store", "gc", "--store", store.root, cwd=cwd, check=0)
    assert verify(store).faults == []
    assert counts(store, cwd)[1] == []


def test_a_merge_leaves_copies_behind(store: Store, tmp_path: Path) -> None:
    for kind in ("cells", "fits", "vocab", "imports"):
        path = first(store, kind)
        shutil.copy(path, path.with_name(f"{path.stem} (1){path.suffix}"))
    other = Store(tmp_path / "other")
    assert len(merge(other, Folder(store)).skipped) == 4
    assert verify(other).faults == []
