"""What is damaged in a store is found, named, and left out with one line; never a traceback, never a wrong number."""

import hashlib
import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.errors import MeasureError, RbpxError
from rbpx.runs.documents import document_ranks
from rbpx.store.merge import Folder, merge
from rbpx.store.messages import collected_messages
from rbpx.store.sql import ask_user, connect
from rbpx.store.store import Store
from rbpx.store.verify import run_fault, verify
from rbpx.ties import Ties
from tests.support.asking import imported
from tests.support.composed import here
from tests.support.damage import HARMS, Harm, faults, flip, run_of, say, truncated
from tests.support.stores import columns_of, manifests, run_folders, write_unsealed

IMPORTED = Path(__file__).parents[1] / "same_answers" / "stores" / "imported"
FILES = ("tokens.parquet", "rank_counts.parquet", "documents.parquet", "manifest.json")


def counted(store: Path, *relations: str) -> tuple[list[int], list[str]]:
    """How many rows relations have, and what was said while they were counted."""
    with collected_messages() as said, connect(Store(store)) as connection:
        counts = [(connection.execute(f"SELECT count(*) FROM {name}").fetchone() or [0])[0] for name in relations]
    return counts, said


# --------------------------------------------------------------------------------------------------------------- verify


def test_a_whole_store_verifies_and_says_what_it_holds(own_store: Path, cwd: Path) -> None:
    answer = here("store", "verify", "--store", own_store, cwd=cwd, check=0)
    n_tokens = sum(len(columns_of(folder, "tokens")["position"]) for folder in run_folders(own_store).values())
    n_records = len(list(own_store.glob("[cf]*/*.json")))
    assert f"4 runs, {n_tokens:,} tokens" in answer.stdout
    assert f"{n_records} records" in answer.stdout
    assert answer.stderr == ""
    found = verify(Store(own_store))
    n_bytes = sum(path.stat().st_size for folder in run_folders(own_store).values() for path in folder.iterdir())
    assert (found.faults, found.n_bytes) == ([], n_bytes)


@pytest.mark.parametrize(("harm", "name"), list(zip(HARMS, [*FILES, FILES[0]], strict=True)))
def test_a_harmed_file_is_named_by_verify_with_what_to_do(harm: Harm, name: str, own_store: Path) -> None:
    run_id = run_of(own_store, "m")
    harm(own_store / "runs" / run_id / name)
    found = [fault for fault in faults(own_store) if fault.kind == "run"]
    assert [fault.name for fault in found] == [run_id]
    assert name in found[0].fault or name == "manifest.json"
    assert f"store rm {run_id}" in found[0].remedy


def test_no_single_bit_of_a_table_flips_unseen(own_store: Path) -> None:
    store, chance = Store(own_store), random.Random(0)
    run_id = run_of(own_store, "s")
    for number in range(60):
        path = store.run_folder(run_id) / FILES[number % 3]
        at, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
        flip(path, at, bit)
        assert f"{path.name} has changed" in str(run_fault(run_id, path.parent)), f"byte {at}, bit {bit}"
        flip(path, at, bit)
    assert run_fault(run_id, store.run_folder(run_id)) is None


def test_what_points_nowhere_is_a_row_for_programs_and_the_exit_status(own_store: Path, cwd: Path) -> None:
    run_id = run_of(own_store, "m")
    shutil.rmtree(own_store / "runs" / run_id)
    answer = here("store", "verify", "--format", "json", "--store", own_store, cwd=cwd, check=1)
    (cell,), fits = ([row for row in json.loads(answer.stdout) if row["kind"] == kind] for kind in ("cell", "fit"))
    assert f"{run_id} (mine m on file)" in cell["fault"]
    assert {row["name"] for row in fits} == {path.stem for path in (own_store / "fits").glob("*.json")}
    counts, (line,) = counted(own_store, "runs")
    assert counts == [3]
    assert f"run {run_id} in store={own_store} is left out: mine m on file is gone; run the line that" in line


@pytest.fixture
def with_import(own_store: Path) -> Path:
    """The store with one observation of somebody else."""
    return imported(own_store, "family,size,S,dataset,k,rbp\ntoy,1b,1000000000,wiki,1,0.41\n", ties="mid")


def test_other_harmed_files_are_named_left_out_and_said(with_import: Path, cwd: Path) -> None:
    n_fits = len(list((with_import / "fits").iterdir()))
    harmed = {kind: sorted((with_import / kind).glob("[!_]*"))[0] for kind in ("cells", "fits", "vocab", "imports")}
    for path in harmed.values():
        truncated(path)
    found = {fault.name: fault.remedy for fault in faults(with_import)}
    assert all(f"remove {kind}/{path.name}" in found[path.stem] for kind, path in harmed.items())
    counts, said = counted(with_import, "runs", "fits", "vocab", "observations WHERE source = 'them'")
    assert counts == [3, n_fits - 1, 0, 0]
    for kind, path in harmed.items():
        assert len([line for line in said if f"{kind}/{path.name}" in line]) == 1
    listed = here("status", "--store", with_import, cwd=cwd, check=0).stderr
    assert listed.count(f"imports/{harmed['imports'].name} in store") == 1


def test_an_import_whose_rows_were_changed_is_found_by_the_digest_in_its_name(tmp_path: Path, cwd: Path) -> None:
    store = Store(shutil.copytree(IMPORTED, tmp_path / "store"))
    assert verify(store).faults == []
    path = store.files("imports")[0]
    table = pq.read_table(path)
    at = table.column_names.index("n_tokens")
    changed = pa.array([1, *table["n_tokens"].to_pylist()[1:]], table.schema.types[at])
    pq.write_table(table.set_column(at, table.field(at), changed), path, write_page_checksum=True)
    (fault,) = verify(store).faults
    assert (fault.kind, fault.name, fault.fault) == ("import", path.stem, "its rows are of another name")


# -------------------------------------------------------------------------------------------------------------- reading


def test_a_flipped_bit_in_a_page_is_an_error_that_names_the_relation_and_verify(own_store: Path, cwd: Path) -> None:
    """Not where the run is told: that would read every byte before each question."""
    run_id = run_of(own_store, "m")
    path = own_store / "runs" / run_id / "tokens.parquet"
    group = pq.read_metadata(path).row_group(0)
    (place,) = [each for n in range(group.num_columns) if (each := group.column(n)).path_in_schema == "logprob"]
    end = place.data_page_offset + place.total_compressed_size
    with connect(Store(own_store)) as connection:
        for at in range(end - 1, place.data_page_offset + place.total_compressed_size // 2, -20):
            flip(path, at)
            with pytest.raises(MeasureError, match=r"^tokens cannot be read: .*; rbpx store verify names the file and"):
                ask_user(connection, "SELECT sum(logprob) FROM tokens")
            flip(path, at)
        flip(path, end - 1)
        whole = run_of(own_store, "l")
        assert document_ranks(connection, whole, Ties.mid).num_rows, "no damaged run hinders another"
        with pytest.raises(MeasureError, match=r"^tokens cannot be read: tokens\.parquet has changed since it was "):
            document_ranks(connection, run_id, Ties.mid)
    here("export", own_store.parent / "all.duckdb", "--store", own_store, cwd=cwd, check=1)
    assert not (own_store.parent / "all.duckdb").exists()
    answer = here("sql", "FROM tokens", "--store", own_store, cwd=cwd, check=1)
    (line,) = answer.stderr.splitlines()
    assert line.startswith("rbpx: tokens cannot be read: ")
    (fault,) = faults(own_store)
    assert (fault.kind, fault.name) == ("run", run_id)


@pytest.mark.parametrize("table", ["tokens", "documents"])
def test_a_run_with_a_flipped_bit_is_left_out_of_a_law_and_the_others_answer(
    table: str, own_store: Path, cwd: Path
) -> None:
    run_id, words = run_of(own_store, "m"), ("fit", "k=1", "resamples=20", "--format", "json")
    path = own_store / "runs" / run_id / f"{table}.parquet"
    flip(path, pq.read_metadata(path).row_group(0).column(1).data_page_offset + 12)
    answer = here(*words, "--store", own_store, cwd=cwd, check=0)
    remedy = f"rbpx store rm {run_id}, then run the line that measured it again"
    why = f"{table}.parquet has changed since it was written (its sha256 is not the manifest's)"
    assert f"rbpx: run {run_id} in store={own_store} is left out: {why}; {remedy}\n" in answer.stderr
    Store(own_store).drop_run(run_id)
    assert here(*words, "--store", own_store, cwd=cwd, check=0).stdout == answer.stdout
    assert {row["n_points"] for row in json.loads(answer.stdout)} == {3}


def test_a_flipped_bit_beside_the_runs_is_no_other_text_and_no_other_number(with_import: Path) -> None:
    places = {kind: sorted((with_import / kind).glob("[!_]*"))[0] for kind in ("vocab", "imports")}
    for path in places.values():
        flip(path, pq.read_metadata(path).row_group(0).column(1).data_page_offset + 12)
    counts, (line,) = counted(with_import, "observations WHERE source = 'them'", "runs")
    assert counts == [0, 4], "an unreadable import hinders no verb"
    assert line.startswith(f"imports/{places['imports'].name} in store={with_import} is left out: ")
    with connect(Store(with_import)) as connection, pytest.raises(MeasureError, match=r"^vocab cannot be read: "):
        ask_user(connection, "SELECT count(*) FROM vocab")


def test_bytes_that_an_error_quotes_are_a_fault_of_the_file_and_no_error_of_decoding(own_store: Path) -> None:
    path = own_store / "runs" / run_of(own_store, "m") / "rank_counts.parquet"
    counts = pq.read_table(path)
    damaged = pa.array([b"\xff"] * counts.num_rows)
    at = counts.column_names.index("greater")
    pq.write_table(counts.set_column(at, "greater", damaged), path, write_page_checksum=True)
    assert [fault.kind for fault in faults(own_store) if fault.kind == "run"] == ["run"]
    with connect(Store(own_store)) as connection, pytest.raises(RbpxError) as raised:
        ask_user(connection, "SELECT sum(greater) FROM rank_counts")
    assert "\n" not in str(raised.value)


def test_a_store_of_a_newer_format_is_refused_in_one_line(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    run_id = run_of(own_store, "m")
    manifest = own_store / "runs" / run_id / "manifest.json"
    say(manifest, format=99)
    lines = (
        ["sql", "SELECT 1", "--store", own_store],
        ["store", "verify", "--store", own_store],
        ["store", "merge", own_store, "--store", tmp_path / "other"],
    )
    for words in lines:
        answer = here(*words, cwd=cwd, check=2)
        (line,) = answer.stderr.splitlines()
        assert "format 99" in line
        assert "update rbpx" in line
        assert answer.stdout == ""


def test_a_store_of_format_1_is_read_as_it_was(own_store: Path) -> None:
    """Format 1 had no n_bytes_scored and no format, its pages no checksums and its records no seals."""
    asked = "SELECT size, k, ties, rbp, n_tokens, cross_entropy_nats FROM observations ORDER BY ALL"
    with connect(Store(own_store)) as connection:
        before = connection.execute(asked).fetchall()
    for run_id, folder in run_folders(own_store).items():
        facts = manifests(own_store)[run_id]
        for name in ("format", "n_bytes_scored", "bos", "stride", "padding"):
            facts.pop(name, None)
        for name in ("tokens", "rank_counts", "documents"):
            path = folder / f"{name}.parquet"
            table = pq.read_table(path)
            pq.write_table(table.drop_columns(["n_bytes_scored"]) if name == "documents" else table, path)
            facts["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        write_unsealed(folder / "manifest.json", facts)
    for path in own_store.glob("[!.]*/[!.]*.json"):
        write_unsealed(path, json.loads(path.read_text()))
    assert faults(own_store) == []
    assert merge(Store(own_store.parent / "new"), Folder(Store(own_store))).skipped == []
    assert faults(own_store.parent / "new") == []
    with connect(Store(own_store)) as connection:
        assert connection.execute(asked).fetchall() == before
        assert connection.execute("SELECT count(*), count(n_bytes_scored) FROM documents").fetchone() == (32, 0)
    assert len(before) == 4 * 3 * 3
