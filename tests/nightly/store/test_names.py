"""Copies that file syncing leaves in a store are not counted, deletions are noticed, and both are said."""

import json
import shutil
from pathlib import Path

import pytest

from rbpx.store.checks.verify import Fault, verify
from rbpx.store.files.inside import WRITTEN
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.synthetic import Truth, write_store

COPIES = ["{} (1)", "{}.sync-conflict-20261122-051040-ABCDEFG", "{}-HOST", "{} - Copy", "Copy of {}"]


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


def counts(store: Store, cwd: Path) -> tuple[dict[str, int], list[str]]:
    """Rows of what is made of records and files, and what was said while they were counted."""
    relations = ("runs", "fits", "rank_fits", "failures", "vocab", "observations", "rbp_at(10, 'mid')")
    columns = ", ".join(f'(SELECT count(*) FROM {each}) AS "{each}"' for each in relations)
    answer = here("sql", f"SELECT {columns}", "--format", "json", "--store", store.root, cwd=cwd, check=0)
    (row,) = json.loads(answer.stdout)
    return row, answer.stderr.splitlines()


def first(store: Store, kind: str) -> Path:
    return sorted(path for path in (store.root / kind).iterdir() if path.suffix in (".json", ".parquet"))[0]


@pytest.mark.parametrize("kind", ["cells", "fits", "rank_fits", "failures", "vocab", "imports"])
def test_a_copy_of_any_kind_beside_its_original_counts_for_nothing_and_is_said(
    kind: str, store: Store, cwd: Path
) -> None:
    expected, silence = counts(store, cwd)
    assert silence == []
    path = first(store, kind)
    for number, name in enumerate(COPIES):
        copy = path.with_name(name.format(path.stem) + path.suffix)
        shutil.copy(path, copy)
        if number:  # all are found by verify, one is enough to read
            continue
        found, (line,) = counts(store, cwd)
        assert found == expected
        assert f"{kind}/{copy.name}" in line
        assert f"is not counted: it is a copy of {kind}/{path.name}" in line
    names = {fault.name for fault in verify(store).faults}
    assert names == {name.format(path.stem) for name in COPIES}


def test_a_fit_copied_over_another_is_one_fit(store: Store, cwd: Path) -> None:
    expected, _ = counts(store, cwd)
    one, other = sorted((store.root / "fits").iterdir())[:2]
    shutil.copy(one, other)
    found, (line,) = counts(store, cwd)
    assert found == expected | {"fits": expected["fits"] - 1}
    assert f"fits/{other.name}" in line
    (fault,) = verify(store).faults
    assert (fault.kind, fault.name, fault.remedy) == ("fit", other.stem, f"remove fits/{other.name}")
    other.unlink()
    (fault,) = verify(store).faults
    assert "was written and is gone" in fault.fault


def test_a_record_that_was_renamed_is_to_be_named_as_before(store: Store, cwd: Path) -> None:
    path = first(store, "cells")
    path.rename(path.with_name("renamed.json"))
    faults = {fault.name: fault for fault in verify(store).faults}
    assert faults["renamed"].remedy == f"rename cells/renamed.json to {path.name}"
    path.with_name("renamed.json").rename(path)
    assert verify(store).faults == []


def test_copies_of_folders_and_of_runs_are_said(store: Store, cwd: Path) -> None:
    expected, _ = counts(store, cwd)
    run_id = store.run_ids()[0]
    shutil.copytree(store.root / "cells", store.root / "cells 2")
    shutil.copytree(store.root / "runs", store.root / "runs - Copy")
    shutil.copytree(store.run_folder(run_id), store.root / "runs" / f"{run_id} (1)")
    tokens = store.run_folder(run_id) / "tokens.parquet"
    shutil.copy(tokens, tokens.with_name("tokens (1).parquet"))
    (store.root / "fits of last year").mkdir()
    found, lines = counts(store, cwd)
    assert found == expected
    assert [f"{run_id} (1)" in line for line in lines] == [True, False]
    assert "cells 2, runs - Copy" in lines[1]
    assert {(fault.kind, fault.name) for fault in verify(store).faults} == {
        ("folder", "cells 2"),
        ("folder", "runs - Copy"),
        ("run", f"{run_id} (1)"),
        ("run", run_id),
    }
    here("store", "rm", f"{run_id} (1)", "--store", store.root, cwd=cwd, check=0)
    assert counts(store, cwd)[0] == expected


@pytest.mark.parametrize("kind", ["cells", "fits", "rank_fits", "vocab", "imports"])
def test_a_deletion_is_noticed_and_said_once(kind: str, store: Store, cwd: Path) -> None:
    path = first(store, kind)
    path.unlink()
    _, (line,) = counts(store, cwd)
    assert f"{kind}/{path.name}" in line
    assert "gone" in line
    assert path.stem in [fault.name for fault in verify(store).faults if "gone" in fault.fault]
    here("store", "verify", "--store", store.root, cwd=cwd, check=1)


def test_what_is_removed_by_store_rm_and_gc_is_not_missed(store: Store, cwd: Path) -> None:
    here("store", "rm", store.run_ids()[0], "--store", store.root, cwd=cwd, check=0)
    here("store", "rm", "them", "--store", store.root, cwd=cwd, check=0)
    assert verify(store).faults == []
    assert counts(store, cwd)[1] == []


def test_a_deletion_that_was_meant_is_forgotten_by_gc(store: Store, cwd: Path) -> None:
    for kind in ("cells", "fits"):
        first(store, kind).unlink()
    answer = here("store", "gc", "--store", store.root, cwd=cwd, check=0)
    assert "2 files deleted by hand are no longer missed" in answer.stderr
    assert verify(store).faults == []


def test_a_store_from_before_the_ledger_is_whole_and_is_entered_when_it_is_indexed(store: Store, cwd: Path) -> None:
    shutil.rmtree(store.root / WRITTEN)
    assert verify(store).faults == []
    copy = first(store, "fits").with_name("copy.json")
    shutil.copy(first(store, "fits"), copy)
    here("store", "rebuild", "--store", store.root, cwd=cwd, check=0)
    copy.unlink()
    assert verify(store).faults == [], "a copy is not entered"
    first(store, "fits").unlink()
    assert len(verify(store).faults) == 1


def test_a_file_that_lies_in_the_cloud_is_said(store: Store, cwd: Path) -> None:
    path = first(store, "fits")
    path.rename(path.with_name(f".{path.name}.icloud"))
    (fault,) = verify(store).faults
    assert fault == Fault("fit", path.stem, f"fits/{path.name} is in iCloud, not on this machine", "download it")
    shutil.copy(path.with_name(f".{path.name}.icloud"), path)
    assert verify(store).faults == []


def test_a_merge_leaves_copies_behind(store: Store, cwd: Path, tmp_path: Path) -> None:
    for kind in ("cells", "fits", "vocab", "imports"):
        path = first(store, kind)
        shutil.copy(path, path.with_name(f"{path.stem} (1){path.suffix}"))
    answer = here("store", "merge", store.root, "--store", tmp_path / "other", cwd=cwd, check=1)
    assert answer.stderr.count("kept out: ") == 4
    other = Store(tmp_path / "other")
    assert verify(other).faults == []
    first(other, "fits").unlink()
    assert len(verify(other).faults) == 1, "what was merged is missed too"
