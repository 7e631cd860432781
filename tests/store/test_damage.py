"""What is damaged in a store is found, named, and left out with one line; never a traceback, never a wrong number."""

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.config.imports import ImportConfig
from rbpx.files.digest import read_sealed
from rbpx.store.checks import integrity
from rbpx.store.checks.integrity import doubt, run_fault, sound_runs
from rbpx.store.checks.verify import verify
from rbpx.store.imports.table import import_file
from rbpx.store.messages import collected_messages
from rbpx.store.sql.queries import connect
from rbpx.store.store import Store
from rbpx.ties import Ties
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.damage import HARMS, Harm, faults, flip, flipped, run_of
from tests.support.stores import columns_of, manifests, run_folders
from tests.support.synthetic import Truth, write_store

FILES = ("tokens.parquet", "rank_counts.parquet", "documents.parquet", "manifest.json")


def told(answer: Answer) -> list[str]:
    assert "Traceback" not in answer.stderr, answer.stderr[-2000:]
    return answer.stderr.splitlines()


# --------------------------------------------------------------------------------------------------------------- verify


def test_a_whole_store_verifies_and_says_what_it_holds(own_store: Path, cwd: Path) -> None:
    answer = here("store", "verify", "--store", own_store, cwd=cwd, check=0)
    n_tokens = sum(len(columns_of(folder, "tokens")["position"]) for folder in run_folders(own_store).values())
    assert f"4 runs, {n_tokens:,} tokens" in answer.stdout
    assert "4 cells" in answer.stdout
    assert answer.stderr == ""
    found = verify(Store(own_store))
    n_bytes = sum(path.stat().st_size for folder in run_folders(own_store).values() for path in folder.iterdir())
    assert (found.faults, found.n_bytes) == ([], n_bytes)


@pytest.mark.parametrize(("harm", "name"), list(zip(HARMS, [*FILES, FILES[0]], strict=True)))
def test_a_harmed_file_is_named_by_verify_with_what_to_do(harm: Harm, name: str, own_store: Path) -> None:
    run_id = run_of(own_store, "m")
    harm(own_store / "runs" / run_id / name)
    (fault,) = faults(own_store)
    assert (fault.kind, fault.name) == ("run", run_id)
    assert name in fault.fault
    assert f"store rm {run_id}" in fault.remedy


def test_a_fault_is_a_row_for_programs_and_the_exit_status(own_store: Path, cwd: Path) -> None:
    run_id = run_of(own_store, "m")
    flipped(own_store / "runs" / run_id / "tokens.parquet")
    answer = here("store", "verify", "--format", "json", "--store", own_store, cwd=cwd, check=1)
    assert [(row["kind"], row["name"]) for row in json.loads(answer.stdout)] == [("run", run_id)]


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
    (run_id,) = store.run_ids()
    relation, change, says = UNSOUND[case]
    tables = {name: pq.read_table(store.run_folder(run_id) / f"{name}.parquet") for name in (TOKENS, COUNTS, DOCUMENTS)}
    facts = store.manifest(run_id)
    shutil.rmtree(store.run_folder(run_id))
    store.write_run(run_id, facts, tables | {relation: change(tables[relation])})
    (fault,) = verify(store).faults
    assert fault.name == run_id
    assert says in fault.fault


def rows(store: Path, relation: str) -> tuple[int, list[str]]:
    """How many rows a relation has, and what was said while they were counted."""
    with collected_messages() as said, connect(Store(store)) as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM {relation}").fetchone() or ()
    return count, said


def test_what_points_nowhere_is_named(own_store: Path) -> None:
    run_id = run_of(own_store, "m")
    shutil.rmtree(own_store / "runs" / run_id)
    found = faults(own_store)
    kinds = [fault.kind for fault in found]
    assert kinds.count("cell") == 1
    assert kinds.count("fit") == len(list((own_store / "fits").glob("*.json")))
    (cell,) = [fault for fault in found if fault.kind == "cell"]
    assert f"{run_id} (mine m on file)" in cell.fault
    n_runs, (line,) = rows(own_store, "runs")
    assert n_runs == 3
    assert run_id in line
    assert "gone" in line


def test_other_harmed_files_are_named_left_out_and_said(own_store: Path, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("family,size,S,dataset,k,rbp\ntoy,1b,1000000000,wiki,1,0.41\n")
    import_file(Store(own_store), table, ImportConfig(source="them", ties=Ties.mid, family=None))
    n_fits = len(list((own_store / "fits").iterdir()))
    harmed = {kind: sorted((own_store / kind).iterdir())[0] for kind in ("cells", "fits", "vocab", "imports")}
    for path in harmed.values():
        flip(path, path.stat().st_size // 3)
    found = {fault.name: fault.remedy for fault in faults(own_store)}
    assert found.keys() >= {path.stem for path in harmed.values()}
    assert all(f"remove {kind}/{path.name}" in found[path.stem] for kind, path in harmed.items())
    with collected_messages() as said, connect(Store(own_store)) as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM fits), (SELECT count(*) FROM vocab), "
            "(SELECT count(*) FROM observations WHERE source = 'them')"
        ).fetchone()
    assert counts == (3, n_fits - 1, 0, 0)
    for kind, path in harmed.items():
        assert len([line for line in said if f"{kind}/{path.name}" in line]) == 1


def test_very_much_damage_is_told_in_a_few_lines_and_where_to_read_the_rest(own_store: Path) -> None:
    (fit, *_) = Store(own_store).records("fits")
    for number in range(6):
        Store(own_store).write_record("fits", f"{number:016x}", fit | {"fit_id": f"{number:016x}"})
    records = sorted((own_store / "fits").iterdir())
    for path in records:
        flipped(path)
    n_fits, (*named, rest) = rows(own_store, "fits")
    assert n_fits == 0
    assert len(named) == 5 < len(records)
    assert all(f"fits/{path.name}" in line for path, line in zip(records, named, strict=False))
    assert f"rbpx store verify --store {own_store} names all of it" in rest
    assert len(faults(own_store)) == len(records)


def test_what_a_kill_leaves_is_counted_and_is_no_fault(own_store: Path) -> None:
    torn = own_store / "runs" / ".0123456789abcdef.01234567.tmp"
    torn.mkdir()
    (torn / "tokens.parquet").write_bytes(b"PAR1")
    found = verify(Store(own_store))
    assert (found.faults, found.leftovers) == ([], [str(torn.relative_to(own_store))])


# -------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("name", ["tokens.parquet", "manifest.json"])
def test_a_damaged_run_is_left_out_and_that_is_said_once(name: str, own_store: Path) -> None:
    run_id = run_of(own_store, "m")
    flipped(own_store / "runs" / run_id / name)
    n_runs, (line,) = rows(own_store, "runs")
    assert n_runs == 3
    assert rows(own_store, f"tokens WHERE run_id = '{run_id}'")[0] == 0
    assert f"store rm {run_id}" in line
    assert "left out" in line
    assert "mine m on file" in line


def test_a_store_of_a_newer_format_is_refused_in_one_line(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    run_id = run_of(own_store, "m")
    manifest = own_store / "runs" / run_id / "manifest.json"
    facts = json.loads(manifest.read_text())
    facts.pop("seal")
    manifest.write_text(json.dumps(facts | {"format": 99}))
    lines = (
        ["sql", "SELECT 1", "--store", own_store],
        ["show", run_id, "--store", own_store],
        ["store", "verify", "--store", own_store],
        ["store", "merge", own_store, "--store", tmp_path / "other"],
    )
    for words in lines:
        answer = here(*words, cwd=cwd, check=2)
        (line,) = told(answer)
        assert "format 99" in line
        assert "update rbpx" in line
        assert answer.stdout == ""


def test_a_store_of_format_1_is_read_as_it_was(own_store: Path) -> None:
    """Format 1 had no n_bytes_scored, no format and no seal, and its pages no checksums."""
    asked = "SELECT size, k, ties, rbp, n_tokens, cross_entropy_nats FROM observations ORDER BY ALL"
    with connect(Store(own_store)) as connection:
        before = connection.execute(asked).fetchall()
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
    assert faults(own_store) == []
    with connect(Store(own_store)) as connection:
        assert connection.execute(asked).fetchall() == before
        assert connection.execute("SELECT count(*), count(n_bytes_scored) FROM documents").fetchone() == (32, 0)
    assert len(before) == 4 * 3 * 3


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
