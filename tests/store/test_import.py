"""Other people's results come into a store whole, checked and traceable, or not at all."""

import hashlib
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.config.imports import ImportConfig
from rbpx.errors import RbpxError
from rbpx.store.imports import table
from rbpx.store.sql import ask_user, connect
from rbpx.store.store import Store
from rbpx.ties import Ties
from tests.support import imports
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.imports import imported
from tests.support.stores import snapshot

HEADER = "family,size,model,S,dataset,k,rbp,n_tokens,ce"
ROWS = [
    "toy,1b,ORG/toy-1b,1000000000,wiki,1,0.41,5000,3.1",
    "toy,1b,ORG/toy-1b,1000000000,wiki,10,0.7,5000,3.1",
    "toy,2b,ORG/toy-2b,2e9,wiki,1,0.43,5000,2.9",
    "toy,2b,ORG/toy-2b,2000000000.0,wiki,10,0.72,5000,2.9",
]
IMPORT = ("source=them", "ties=mid")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two models on one text at two k, as CSV."""
    return write(tmp_path / "results.csv", HEADER, *ROWS)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    answer = imports.bring(file, store, cwd, *(words or IMPORT), check=check)
    assert answer.stdout == ""
    return answer


def refused(answer: Answer, *says: str) -> None:
    """Exit status 2, no result, and one line that says all of `says`."""
    assert answer.returncode == 2, answer.stderr
    (line,) = answer.stderr.splitlines()
    assert line.startswith("rbpx: ")
    assert [words for words in says if words not in line] == [], line


def test_the_file_carries_where_it_is_from(results: Path, store: Path, cwd: Path) -> None:
    bring(results, store, cwd)
    (file,) = (store / "imports").iterdir()
    assert file.name.startswith("them-")
    provenance = json.loads(pq.read_schema(file).metadata[b"rbpx.import"])
    assert provenance["source"] == "them"
    assert provenance["file"] == "results.csv"
    assert provenance["sha256"] == hashlib.sha256(results.read_bytes()).hexdigest()
    assert provenance["columns"]["cross_entropy_nats"] == "ce"
    assert provenance["imported_at"] > "2026"


def test_the_relation_has_imported_results_at_their_own_k_and_rule(
    results: Path, store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(results, store, cwd)
    windows = write(tmp_path / "windows.csv", "family,size,S,dataset,k,n,p_nk", "toy,1b,1000000000,wiki,1,5,0.03")
    bring(windows, store, cwd)
    with connect(Store(store)) as connection:
        rows = ask_user(connection, "SELECT * EXCLUDE (run_id) FROM observations").to_pylist()
        for (k, ties), found in {(1, "mid"): [0.41, 0.43], (2, "mid"): [], (1, "optimistic"): []}.items():
            at_k = ask_user(connection, f"SELECT rbp FROM rbp_at({k}, '{ties}') ORDER BY rbp")
            assert at_k["rbp"].to_pylist() == found
        with pytest.raises(RbpxError, match=r"nosuch.*pessimistic"):
            ask_user(connection, "FROM rbp_at(1, 'nosuch')")
    assert sorted(rows, key=str) == sorted(imported(store), key=str)
    assert len(rows) == 5


def test_of_two_contradicting_files_that_come_at_once_one_is_refused(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = table.observations_of

    def slowly(*words: Any) -> pa.Table:
        stored = read(*words)
        time.sleep(0.1)  # so that both have read the store before one of them writes, if nothing holds it back
        return stored

    monkeypatch.setattr(table, "observations_of", slowly)
    files = [write(tmp_path / f"{rbp}.csv", HEADER, ROWS[0].replace("0.41", rbp)) for rbp in ("0.41", "0.42")]
    config = ImportConfig(source="them", ties=Ties.mid, family=None)
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(table.import_file, Store(store), file, config) for file in files]
        problems = [task.exception() for task in tasks]
    (problem,) = [each for each in problems if each is not None]
    assert isinstance(problem, RbpxError)
    assert "in the store" in str(problem)
    assert len(imported(store)) == 1


def test_status_lists_imports_beside_runs(results: Path, own_store: Path, cwd: Path) -> None:
    bring(results, own_store, cwd)
    shown = here("status", "--store", own_store, cwd=cwd, check=0).stdout
    (line,) = [line.split() for line in shown.splitlines() if "them" in line]
    assert line == ["them", "toy", "wiki", "results.csv", "2", "2", "4"]
    rows = json.loads(here("status", "--format", "json", "--store", own_store, cwd=cwd, check=0).stdout)
    assert [(row["state"], row.get("source")) for row in rows] == [("done", None)] * 4 + [("imported", "them")]
    assert rows[-1]["n_observations"] == 4


def run_ids(store: Path) -> list[str]:
    return sorted({row["run_id"] for row in imported(store, "run_id")})


def test_an_imported_run_has_one_id_that_show_explains(results: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    bring(results, store, cwd)
    ids = run_ids(store)
    assert len(ids) == 2
    shown = [json.loads(here("show", one, "--store", store, cwd=cwd, check=0).stdout) for one in ids]
    assert {one["file"] for one in shown} == {"results.csv"}
    assert {one["sha256"] for one in shown} == {hashlib.sha256(results.read_bytes()).hexdigest()}
    assert sorted(row["rbp"] for one in shown for row in one["rows"]) == [0.41, 0.43, 0.7, 0.72]
    assert all({row["size"] for row in one["rows"]} in ({"1b"}, {"2b"}) for one in shown)
    turned = write(tmp_path / "turned.csv", HEADER, *reversed(ROWS))
    bring(turned, tmp_path / "other", cwd)
    assert run_ids(tmp_path / "other") == ids


def test_a_source_that_is_removed_takes_its_fits_along_and_leaves_the_others_and_the_runs(
    results: Path, own_store: Path, cwd: Path
) -> None:
    kept, runs = Store(own_store), snapshot(own_store / "runs")
    before = {fit["fit_id"] for fit in kept.records("fits")}
    bring(results, own_store, cwd)
    for name, ids in {"whole": run_ids(own_store), "gone": ["nosuch"]}.items():
        kept.write_record("fits", name, {"fit_id": name, "run_ids": ids, "params": {}})
    bring(results, own_store, cwd, "source=them-too", "ties=mid")
    assert "dropped 1 fit whose" in here("store", "gc", "--store", own_store, cwd=cwd, check=0).stderr
    assert {fit["fit_id"] for fit in kept.records("fits")} == {*before, "whole"}
    remove = ("store", "rm", "them", "--store", own_store)
    here(*remove, cwd=cwd, check=0)
    assert {fit["fit_id"] for fit in kept.records("fits")} == before
    assert {row["source"] for row in imported(own_store)} == {"them-too"}
    assert snapshot(own_store / "runs") == runs
    refused(here(*remove, cwd=cwd), "them is neither a run_id nor an imported source")


def test_what_was_measured_can_be_imported_elsewhere(drawn: Path, store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "observations.csv"
    here("export", "observations", "--store", drawn, "--output", file, cwd=cwd, check=0)
    _, ignored, *_ = bring(file, store, cwd, "source=elsewhere").stderr.splitlines()
    assert ignored == "ignored columns of observations.csv: source, run_id"
    with connect(Store(drawn)) as connection:
        ours = ask_user(connection, "SELECT * EXCLUDE (run_id) FROM observations").to_pylist()
    assert sorted(imported(store), key=str) == sorted((row | {"source": "elsewhere"} for row in ours), key=str)
    assert len(ours) == 4 * 3 * 3


def test_a_file_that_rbpx_did_not_import_is_named(results: Path, store: Path, cwd: Path) -> None:
    bring(results, store, cwd)
    for content in (b"rbp", None):
        foreign = store / "imports" / "foreign.parquet"
        if content is None:
            pq.write_table(pa.table({"rbp": [0.5]}), foreign)
        else:
            foreign.write_bytes(content)
        refused(bring(results, store, cwd, check=None), f"{foreign} ", "move it out of the store")


def test_beside_a_corrupt_import_of_its_source_nothing_comes_in_and_beside_a_copy_it_does(
    results: Path, store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(results, store, cwd)
    (kept,) = (store / "imports").iterdir()
    shutil.copy(kept, kept.with_name(f"{kept.stem} (1).parquet"))
    more = write(tmp_path / "more.csv", HEADER, "toy,3b,,3e9,wiki,1,0.5,,")
    assert "1 observation" in bring(more, store, cwd).stderr
    assert "nothing new" in bring(results, store, cwd).stderr
    kept.with_name(f"{kept.stem} (1).parquet").unlink()
    content = bytearray(kept.read_bytes())
    content[len(content) // 3] ^= 8
    kept.write_bytes(content)
    again = write(tmp_path / "again.csv", HEADER, "toy,4b,,4e9,wiki,1,0.5,,")
    refused(bring(again, store, cwd, check=None), f"{kept} is not as rbpx imported it", "move it out of the store")


def test_an_import_of_a_study_that_names_no_file_is_one_line(store: Path, cwd: Path) -> None:
    words = ("experiment=published_gpt2_wikipedia", "imports=[{source: them, ties: mid}]")
    refused(here(*words, "--store", store, cwd=cwd), "import 1", "names no file")
    assert not store.exists()
