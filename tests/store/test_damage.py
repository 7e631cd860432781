"""What is damaged in a store is found, named, and left out with one line; never a traceback, never a wrong number."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.files.digest import read_sealed, write_sealed
from rbpx.files.entries import stamp
from rbpx.store.checks import integrity
from rbpx.store.checks.integrity import doubt, run_fault, sound_runs
from rbpx.store.checks.verify import verify
from rbpx.store.store import Store
from tests.support.commands import Answer, here
from tests.support.stores import Family, cell_records, columns_of, manifests, run_folders
from tests.support.synthetic import Truth, write_store

FILES = ("tokens.parquet", "rank_counts.parquet", "documents.parquet", "manifest.json")


def flip(path: Path, at: int, bit: int = 3) -> None:
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1 << bit
    path.write_bytes(whole)


def flipped(path: Path) -> None:
    flip(path, path.stat().st_size // 2)


def flipped_with_the_old_times(path: Path) -> None:
    stat = path.stat()
    flipped(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


HARMS: list[Callable[[Path], None]] = [flipped, flipped_with_the_old_times, truncated, emptied, Path.unlink]


def run_of(store: Path, size: str) -> str:
    (run_id,) = [record["run_id"] for record in cell_records(store) if record["size"] == size]
    return str(run_id)


def told(answer: Answer) -> list[str]:
    assert "Traceback" not in answer.stderr, answer.stderr[-2000:]
    return answer.stderr.splitlines()


def faults(store: Path, cwd: Path, check: int = 1) -> list[dict[str, Any]]:
    answer = here("store", "verify", "--format", "json", "--store", store, cwd=cwd, check=check)
    assert "Traceback" not in answer.stderr
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


# --------------------------------------------------------------------------------------------------------------- verify


def test_a_whole_store_verifies_and_says_what_it_holds(own_store: Path, cwd: Path) -> None:
    answer = here("store", "verify", "--store", own_store, cwd=cwd, check=0)
    n_tokens = sum(len(columns_of(folder, "tokens")["position"]) for folder in run_folders(own_store).values())
    assert f"4 runs, {n_tokens:,} tokens" in answer.stdout
    assert "4 cells" in answer.stdout
    n_bytes = sum(path.stat().st_size for folder in run_folders(own_store).values() for path in folder.iterdir())
    assert verify(Store(own_store)).n_bytes == n_bytes
    assert answer.stderr == ""
    assert faults(own_store, cwd, check=0) == []


@pytest.mark.parametrize(("harm", "name"), list(zip(HARMS, [*FILES, FILES[0]], strict=True)))
def test_a_harmed_file_is_named_by_verify_with_what_to_do(
    harm: Callable[[Path], None], name: str, own_store: Path, cwd: Path
) -> None:
    run_id = run_of(own_store, "m")
    harm(own_store / "runs" / run_id / name)
    (fault,) = faults(own_store, cwd)
    assert (fault["kind"], fault["name"]) == ("run", run_id)
    assert name in fault["fault"]
    assert f"store rm {run_id}" in fault["remedy"]


def test_no_single_bit_of_a_run_flips_unseen(own_store: Path) -> None:
    store, chance = Store(own_store), random.Random(0)
    run_id = run_of(own_store, "s")
    assert run_fault(store, run_id) is None
    for number in range(200):
        path = store.run_folder(run_id) / FILES[number % len(FILES)]
        at, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
        flip(path, at, bit)
        assert run_fault(store, run_id) is not None, f"{path.name}, byte {at}, bit {bit}"
        flip(path, at, bit)
    assert run_fault(store, run_id) is None


@pytest.mark.parametrize("in_lines", [True, False])
def test_no_single_bit_of_a_record_flips_unseen_not_even_in_a_digit_that_no_float_holds(
    in_lines: bool, tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    record = {"S": 9, "wall_s": 9.123456789012345, "text": "é", "nothing": None, "of": [0.1, 1e-5]}
    write_sealed(path, record, in_lines)
    assert read_sealed(path) == record
    for at in range(path.stat().st_size):
        for bit in range(8):
            flip(path, at, bit)
            with pytest.raises(ValueError, match=r"\S"):
                read_sealed(path)
            flip(path, at, bit)
    assert read_sealed(path) == record


def test_a_record_of_a_version_without_seals_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text('{"S": 9, "last": "seal"}')
    assert read_sealed(tmp_path / "record.json") == {"S": 9, "last": "seal"}


TOKENS, COUNTS, DOCUMENTS = "tokens", "rank_counts", "documents"
UNSOUND: dict[str, tuple[str, Callable[[pa.Table], pa.Table], str]] = {
    "a token twice": (TOKENS, lambda t: t.take([0, *range(t.num_rows - 1)]), "(doc_id, position)"),
    "a token lost": (TOKENS, lambda t: t.slice(1), "rows of tokens"),
    "another rank": (TOKENS, lambda t: plus_one(t, "greater"), "ranks"),
    "tokens of another run": (COUNTS, lambda t: plus_one(t, "n_tokens"), "tokens in rank_counts"),
    "ranks swapped": (COUNTS, lambda t: swapped(t, "n_tokens"), "ranks that rank_counts counts differently"),
    "a document lost": (DOCUMENTS, lambda t: t.slice(1), "scored tokens in documents"),
    "documents swapped": (DOCUMENTS, lambda t: swapped(t, "doc_id", "n_scored"), "documents whose number of tokens"),
    "another probability": (TOKENS, lambda t: plus_one(t, "logprob"), "cross-entropy"),
}  # fmt: skip


def plus_one(table: pa.Table, name: str) -> pa.Table:
    values = table[name].to_pylist()
    values[0] += 1
    return table.set_column(table.column_names.index(name), name, pa.array(values, table.schema.field(name).type))


def swapped(table: pa.Table, name: str, other: str | None = None) -> pa.Table:
    """The values of the first two rows, exchanged; where they are alike, one is moved to the other."""
    values = table[other or name].to_pylist()
    a = values[0]
    b = next(i for i, value in enumerate(values) if value != a) if other is None else 1
    values[0], values[b] = (values[b], a) if other is None else (a + 1, values[b] - 1)
    at = table.column_names.index(other or name)
    return table.set_column(at, other or name, pa.array(values, table.schema.types[at]))


@pytest.mark.parametrize("case", UNSOUND)
def test_rows_that_do_not_add_up_are_named_though_their_hashes_are_right(case: str, tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(S=(1000,)), seed=0, n_documents=5, n_tokens=20)
    assert verify(store).faults == []
    (run_id,) = store.run_ids()
    relation, change, says = UNSOUND[case]
    tables = {name: pq.read_table(store.run_folder(run_id) / f"{name}.parquet") for name in (TOKENS, COUNTS, DOCUMENTS)}
    facts = store.manifest(run_id)
    shutil.rmtree(store.run_folder(run_id))
    store.write_run(run_id, facts, tables | {relation: change(tables[relation])})
    (fault,) = verify(store).faults
    assert fault.name == run_id
    assert says in fault.fault


def test_what_points_nowhere_is_named(own_store: Path, cwd: Path) -> None:
    run_id = run_of(own_store, "m")
    shutil.rmtree(own_store / "runs" / run_id)
    found = faults(own_store, cwd)
    kinds = [fault["kind"] for fault in found]
    assert kinds.count("cell") == 1
    assert kinds.count("fit") == len(list((own_store / "fits").glob("*.json")))
    (cell,) = [fault for fault in found if fault["kind"] == "cell"]
    assert f"{run_id} (mine m on file)" in cell["fault"]
    answer = here("sql", "SELECT count(*) AS n FROM runs", "--store", own_store, "--format", "csv", cwd=cwd, check=0)
    assert answer.stdout == "n\n3\n"
    (line,) = told(answer)
    assert run_id in line
    assert "gone" in line


@pytest.mark.parametrize("kind", ["cells", "fits", "vocab", "imports"])
def test_other_harmed_files_are_named_left_out_and_said(kind: str, own_store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("family,size,S,dataset,k,rbp\ntoy,1b,1000000000,wiki,1,0.41\n")
    here("import", rows, "source=them", "ties=mid", "--store", own_store, cwd=cwd, check=0)
    assert faults(own_store, cwd, check=0) == []
    path = sorted((own_store / kind).iterdir())[0]
    flip(path, path.stat().st_size // 3)
    (fault,) = faults(own_store, cwd)
    assert fault["name"] == path.stem
    assert f"remove {kind}/{path.name}" in fault["remedy"]
    relation = {"cells": "runs", "imports": "observations"}.get(kind, kind)
    whole = {"runs": 4, "fits": len(list((own_store / "fits").iterdir())), "vocab": 299, "observations": 37}[relation]
    answer = here(
        "sql", f"SELECT count(*) AS n FROM {relation}", "--store", own_store, "--format", "csv", cwd=cwd, check=0
    )
    (line,) = told(answer)
    assert f"{kind}/{path.name}" in line
    left = int(answer.stdout.split()[1])
    assert left < whole
    assert left == whole - 1 or kind == "vocab"


def test_very_much_damage_is_told_in_a_few_lines_and_where_to_read_the_rest(own_store: Path, cwd: Path) -> None:
    records = sorted((own_store / "fits").iterdir())
    for path in records:
        flipped(path)
    answer = here("sql", "SELECT count(*) AS n FROM fits", "--store", own_store, "--format", "csv", cwd=cwd, check=0)
    assert answer.stdout == "n\n0\n"
    *named, rest = told(answer)
    assert len(named) == 5 < len(records)
    assert all(f"fits/{path.name}" in line for path, line in zip(records, named, strict=False))
    assert f"rbpx store verify --store {own_store} names all of it" in rest
    assert len(faults(own_store, cwd)) == len(records)


def test_what_a_kill_leaves_is_counted_and_is_no_fault(own_store: Path, cwd: Path) -> None:
    torn = own_store / "runs" / ".0123456789abcdef.01234567.tmp"
    torn.mkdir()
    (torn / "tokens.parquet").write_bytes(b"PAR1")
    answer = here("store", "verify", "--store", own_store, cwd=cwd, check=0)
    assert "1 unfinished file of" in answer.stdout


# -------------------------------------------------------------------------------------------------------------- reading


READERS = {
    "sql": ["sql", "SELECT DISTINCT run_id FROM tokens ORDER BY run_id", "--format", "csv"],
    "fit": ["fit", "resamples=50", "laws=[rbp]", "k=10", "--format", "json"],
    "status": ["status", "--format", "json"],
    "export": ["export", "runs"],
    "klaw": ["klaw", "resamples=50", "--format", "json"],
    "units": ["units", "resamples=50", "--format", "csv"],
    "run": ["run", "resamples=50", "--format", "json"],
}


@pytest.mark.parametrize(
    ("reader", "name"), [*((reader, "tokens.parquet") for reader in READERS), *(("sql", name) for name in FILES[1:])]
)
def test_readers_leave_a_damaged_run_out_and_say_so_once(
    reader: str, name: str, own_store: Path, family: Family, cwd: Path
) -> None:
    run_id = run_of(own_store, "m")
    flipped(own_store / "runs" / run_id / name)
    words = [READERS[reader][0], *(family.words() if reader == "run" else []), *READERS[reader][1:]]
    answer = here(*words, "--store", own_store, cwd=cwd, check=0)
    lines = told(answer)
    assert [run_id in line and "left out" in line and f"store rm {run_id}" in line for line in lines] == [True]
    assert "mine m on file" in lines[0]
    assert run_id not in answer.stdout
    assert run_of(own_store, "l") in answer.stdout


def test_the_cure_that_is_named_makes_the_store_whole(own_store: Path, family: Family, cwd: Path) -> None:
    run_id = run_of(own_store, "m")
    rows = columns_of(own_store / "runs" / run_id, "tokens")
    flipped(own_store / "runs" / run_id / "tokens.parquet")
    here("store", "rm", run_id, "--store", own_store, cwd=cwd, check=0)
    here("measure", *family.words(), "--store", own_store, cwd=cwd, check=0)
    assert faults(own_store, cwd, check=0) == []
    again = columns_of(own_store / "runs" / run_id, "tokens")
    assert all((again[name] == rows[name]).all() for name in ("doc_id", "position", "token_id"))


def test_the_index_leaves_a_damaged_run_out_too(own_store: Path, cwd: Path) -> None:
    import duckdb

    run_id = run_of(own_store, "m")
    here("status", "--store", own_store, cwd=cwd, check=0)
    flipped(own_store / "runs" / run_id / "rank_counts.parquet")
    here("status", "--store", own_store, cwd=cwd, check=0)
    with duckdb.connect(str(own_store / "rbpx.duckdb"), read_only=True) as index:
        assert index.execute("SELECT count(*) FROM runs").fetchone() == (3,)
        assert index.execute("SELECT count(DISTINCT run_id) FROM tokens").fetchone() == (3,)


@pytest.mark.parametrize("verb", ["sql", "units"])
def test_a_bit_that_flips_without_a_trace_in_a_large_store_is_found_when_its_page_is_read(
    verb: str, own_store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache says that the file was as written, and its stamp is made to agree, as where a disk itself errs."""
    monkeypatch.setattr(integrity, "_REMEMBERED_FROM_BYTES", 0)
    run_id = run_of(own_store, "m")
    here("status", "--store", own_store, cwd=cwd, check=0)
    cache = own_store / ".checked.json"
    path = own_store / "runs" / run_id / "tokens.parquet"
    page = pq.ParquetFile(path).metadata.row_group(0).column(6).data_page_offset
    flip(path, page + 300)
    known = json.loads(cache.read_text())
    known["runs"][run_id] = [
        integrity._seen([stamp(p) for p in integrity.run_files(Store(own_store), run_id)]),
        None,
    ]
    cache.write_text(json.dumps(known))
    words = {"sql": ["sql", "SELECT run_id, avg(logprob) FROM tokens GROUP BY ALL", "--format", "csv"]}
    answer = here(*words.get(verb, READERS["units"]), "--store", own_store, cwd=cwd, check=0)
    assert [run_id in line for line in told(answer)] == [True]
    assert run_id not in answer.stdout


# -------------------------------------------------------------------------------------------------------------- formats


def test_a_store_of_a_newer_format_is_refused_in_one_line_by_all_that_read(
    own_store: Path, family: Family, cwd: Path, tmp_path: Path
) -> None:
    run_id = run_of(own_store, "m")
    manifest = own_store / "runs" / run_id / "manifest.json"
    facts = json.loads(manifest.read_text())
    facts.pop("seal")
    manifest.write_text(json.dumps(facts | {"format": 99}))
    for words in (*READERS.values(), ["store", "verify"], ["measure", *family.words("s", "m")], ["show", run_id]):
        if words[0] == "run":
            continue
        answer = here(*words, "--store", own_store, cwd=cwd, check=2)
        (line,) = told(answer)
        assert "format 99" in line
        assert "update rbpx" in line
        assert answer.stdout == ""
    (line,) = told(here("store", "merge", own_store, "--store", tmp_path / "other", cwd=cwd, check=2))
    assert "format 99" in line


def test_a_store_of_format_1_is_read_as_it_was(own_store: Path, cwd: Path) -> None:
    """Format 1 had no n_bytes_scored, no format and no seal, and its pages no checksums."""
    import hashlib

    here("fit", "resamples=50", "--store", own_store, cwd=cwd, check=0)
    asked = ["fit", "resamples=50", "--format", "json", "--store", own_store]
    before = json.loads(here(*asked, cwd=cwd, check=0).stdout)
    for run_id, folder in run_folders(own_store).items():
        facts = manifests(own_store)[run_id]
        for name in ("format", "seal", "n_bytes_scored", "bos", "stride", "padding"):
            facts.pop(name, None)
        for name in ("tokens", "rank_counts", "documents"):
            path = folder / f"{name}.parquet"
            table = pq.read_table(path)
            pq.write_table(table.drop_columns(["n_bytes_scored"]) if name == "documents" else table, path)
            facts["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(facts))
    for path in (own_store / "cells").glob("*.json"):
        record = json.loads(path.read_text())
        record.pop("seal")
        path.write_text(json.dumps(record))
    assert faults(own_store, cwd, check=0) == []
    after = json.loads(here(*asked, cwd=cwd, check=0).stdout)
    assert len(before) > 5
    for old, new in zip(before, after, strict=True):
        assert (old["law"], old["C"], old["alpha"]) == (new["law"], new["C"], new["alpha"])
    answer = here("units", "--store", own_store, "--format", "csv", cwd=cwd)
    assert "Traceback" not in answer.stderr


def test_a_store_that_is_doubted_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system whose times say nothing."""
    write_store(tmp_path / "store", Truth(), seed=1, n_documents=3, n_tokens=20)
    store = Store(tmp_path / "store")
    monkeypatch.setattr(integrity, "stamp", lambda path: [1])
    before = sound_runs(store)
    flip(store.run_folder(before[0]) / "tokens.parquet", 200)
    assert sound_runs(store) == before
    doubt(store)
    assert sound_runs(store) == before[1:]
