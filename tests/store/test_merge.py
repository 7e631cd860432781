"""`store merge`: two stores become one, whole and verified; nothing is doubled, replaced or half there."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.store.test_damage import faults, flipped, run_of
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.stores import Family, Measured, cell_records, run_folders, snapshot
from tests.support.synthetic import Truth, write_store

EVIDENCE = ("runs/", "cells/", "vocab/", "imports/", "samples/", "fits/", "rank_fits/", "failures/", "forecasts/")


def merge(store: Path, other: Path, cwd: Path, check: int = 0) -> Answer:
    answer = here("store", "merge", other, "--store", store, cwd=cwd, check=check)
    assert "Traceback" not in answer.stderr
    return answer


def evidence(store: Path) -> dict[str, bytes]:
    return {name: content for name, (_, content) in snapshot(store).items() if name.startswith(EVIDENCE)}


def without(store: Path, cwd: Path, *sizes: str) -> Path:
    for size in sizes:
        here("store", "rm", run_of(store, size), "--store", store, cwd=cwd, check=0)
    return store


@pytest.fixture
def halves(measured: Measured, cwd: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The measured store as two that overlap in one size."""
    one, two = (Path(shutil.copytree(measured.store, tmp_path / name)) for name in ("one", "two"))
    return without(one, cwd, "m", "l"), without(two, cwd, "xs")


def test_two_halves_become_the_whole_and_the_other_is_not_touched(
    halves: tuple[Path, Path], measured: Measured, cwd: Path
) -> None:
    one, two = halves
    before = snapshot(two)
    answer = merge(one, two, cwd)
    assert "2 runs" in answer.stderr
    assert "2 cells" in answer.stderr
    assert snapshot(two) == before
    whole = {
        name: content for name, content in evidence(measured.store).items() if not name.startswith(("fits", "rank"))
    }
    assert {name: content for name, content in evidence(one).items() if name in whole} == whole
    assert set(run_folders(one)) == set(run_folders(measured.store))
    assert faults(one, cwd, check=0) == []
    laws = [
        json.loads(here("fit", "resamples=50", "--format", "json", "--store", store, cwd=cwd, check=0).stdout)
        for store in (one, shutil.copytree(measured.store, one.parent / "whole"))
    ]
    assert [(row["law"], row["k"], row["C"], row["alpha"]) for row in laws[0]] == [
        (row["law"], row["k"], row["C"], row["alpha"]) for row in laws[1]
    ]


def test_merging_again_brings_nothing_and_changes_nothing(halves: tuple[Path, Path], cwd: Path) -> None:
    one, two = halves
    merge(one, two, cwd)
    before = evidence(one)
    assert "brought from" in merge(one, two, cwd).stderr
    assert evidence(one) == before
    assert "nothing" in merge(one, two, cwd).stderr


def test_an_empty_place_becomes_a_copy(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    (measured.store / "samples").mkdir(exist_ok=True)
    merge(tmp_path / "new", measured.store, cwd)
    assert evidence(tmp_path / "new") == evidence(measured.store)
    (measured.store / "samples").rmdir()


def test_samples_come_whole(measured: Measured, own_store: Path, cwd: Path, tmp_path: Path) -> None:
    (own_store / "samples").mkdir()
    (own_store / "samples" / "c4-1234.jsonl").write_text('{"text": "one"}\n')
    merge(tmp_path / "new", own_store, cwd)
    assert (tmp_path / "new" / "samples" / "c4-1234.jsonl").read_text() == '{"text": "one"}\n'


def test_the_same_run_with_other_bytes_is_named_and_kept_out(own_store: Path, family: Family, cwd: Path) -> None:
    other = Path(shutil.copytree(own_store, own_store.parent / "other"))
    run_id = run_of(own_store, "s")
    without(other, cwd, "s")
    folder = other / "runs" / run_id
    here("measure", *family.words(), "tokens_per_batch=64", "--store", other, cwd=cwd, check=0)
    # The same run to rounding; its tokens are written in another order of pages, so its bytes differ.
    import hashlib

    import pyarrow.parquet as pq

    table = pq.read_table(folder / "tokens.parquet")
    pq.write_table(table, folder / "tokens.parquet", compression="gzip")
    facts = json.loads((folder / "manifest.json").read_text())
    facts["files"]["tokens.parquet"] = hashlib.sha256((folder / "tokens.parquet").read_bytes()).hexdigest()
    facts.pop("seal")
    (folder / "manifest.json").write_text(json.dumps(facts))
    before = evidence(own_store)
    answer = merge(own_store, other, cwd, check=1)
    assert f"kept out: run {run_id}: this store has it with other bytes" in answer.stderr
    after = evidence(own_store)
    assert {name: after[name] for name in before} == before


def test_a_damaged_run_stays_outside_with_all_that_needs_it(measured: Measured, own_store: Path, cwd: Path) -> None:
    run_id = run_of(own_store, "m")
    flipped(own_store / "runs" / run_id / "tokens.parquet")
    new = own_store.parent / "new"
    answer = merge(new, own_store, cwd, check=1)
    assert f"kept out: run {run_id}: it is corrupt: tokens.parquet" in answer.stderr
    assert sorted(record["size"] for record in cell_records(new)) == ["l", "s", "xs"]
    assert len(run_folders(new)) == 3
    assert not list((new / "fits").glob("*")), "each fit is of all four sizes"
    assert faults(new, cwd, check=0) == []


def imported(store: Path, rows: list[str], cwd: Path, tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("family,size,S,dataset,k,rbp\n" + "".join(row + "\n" for row in rows))
    here("import", path, "source=them", "ties=mid", "--store", store, cwd=cwd, check=0)
    return store


ROWS = ["toy,1b,1000000000,wiki,1,0.41", "toy,1b,1000000000,wiki,10,0.7", "toy,2b,2000000000,wiki,1,0.43"]


def observed(store: Path, cwd: Path) -> list[dict[str, Any]]:
    query = "SELECT * FROM observations WHERE source = 'them' ORDER BY ALL"
    answer = here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


def test_overlapping_imports_are_not_doubled(cwd: Path, tmp_path: Path) -> None:
    one = imported(tmp_path / "one", ROWS[:2], cwd, tmp_path)
    two = imported(tmp_path / "two", ROWS, cwd, tmp_path)
    told = merge(one, two, cwd).stderr
    assert re.search(r"\b1 observation\b(?!s)", told)
    assert observed(one, cwd) == observed(two, cwd)
    assert len(observed(one, cwd)) == 3
    assert faults(one, cwd, check=0) == []


def test_imports_that_contradict_are_kept_out_and_named(cwd: Path, tmp_path: Path) -> None:
    one = imported(tmp_path / "one", ROWS[:2], cwd, tmp_path)
    before = observed(one, cwd)
    two = imported(tmp_path / "two", ["toy,1b,1000000000,wiki,1,0.55"], cwd, tmp_path)
    assert "0.55" in merge(one, two, cwd, check=1).stderr
    assert observed(one, cwd) == before


@pytest.mark.parametrize(
    ("other", "reason"), [("missing", "it has no runs"), ("empty", "it has no runs"), ("itself", "itself")]
)
def test_what_cannot_be_merged_is_refused_in_one_line(
    other: str, reason: str, own_store: Path, cwd: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    place = own_store if other == "itself" else tmp_path / other
    (line,) = merge(own_store, place, cwd, check=2).stderr.splitlines()
    assert line.startswith(f"rbpx: {place} is ")
    assert reason in line
    assert "name another store" in line


def test_a_request_that_leads_out_of_the_store_is_kept_out(own_store: Path, cwd: Path, tmp_path: Path) -> None:
    (cell,) = [record for record in cell_records(own_store) if record["size"] == "m"]
    path = own_store / "cells" / f"{cell['cell_key']}.json"
    cell.pop("seal")
    path.write_text(json.dumps(cell | {"run_id": "../../elsewhere"}))
    answer = merge(tmp_path / "new", own_store, cwd, check=1)
    assert "kept out: cells/" in answer.stderr
    assert len(cell_records(tmp_path / "new")) == 3


def test_what_is_kept_out_is_said_of_each_record_and_the_rest_comes(tmp_path: Path) -> None:
    from rbpx.store.merge import merge as merged_from

    one, two = (write_store(tmp_path / name, Truth(S=(10, 20, 30)), seed=0, n_documents=2, n_tokens=3) for name in "ab")
    cells = sorted((two.root / "cells").iterdir())
    cells[0].write_bytes(b"{")
    cells[1].rename(cells[1].with_name("other.json"))
    other = two.record("cells", cells[2].stem)
    assert other is not None
    two.write_record("cells", cells[2].stem, other | {"run_id": two.run_ids()[0]})
    said = merged_from(one, two)
    assert [line.split(": ")[0] for line in said.skipped] == [
        *(f"cells/{cells[0].name}", f"cell {cells[2].stem}", "cells/other.json"),
    ]
    assert said.skipped[1].endswith(f"run {two.run_ids()[2]} answers it here, run {two.run_ids()[0]} there")
    assert said.already_here == {"runs": 3, "vocab": 1}
    assert len(cell_records(one.root)) == 3
