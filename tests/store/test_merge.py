"""`store merge`: two stores become one, whole and verified; nothing is doubled, replaced or half there."""

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.store.merge import Folder, Merged, merge
from rbpx.store.store import Store
from tests.support.asking import imported
from tests.support.composed import here
from tests.support.damage import faults, flipped, run_of
from tests.support.imports import imported as observations
from tests.support.stores import cell_records, reseal, run_folders, snapshot
from tests.support.synthetic import Truth, write_store

EVIDENCE = ("runs/", "cells/", "vocab/", "imports/", "samples/", "fits/", "rank_fits/", "failures/", "forecasts/")


def merged(store: Path, other: Path) -> Merged:
    """What came of another store."""
    return merge(Store(store), Folder(Store(other)))


def evidence(store: Path) -> dict[str, bytes]:
    return {name: content for name, (_, content) in snapshot(store).items() if name.startswith(EVIDENCE)}


@pytest.fixture
def halves(drawn: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The drawn store as two that overlap in one size."""
    stores = []
    for name, sizes in (("one", ("m", "l")), ("two", ("xs",))):
        store = Store(Path(shutil.copytree(drawn, tmp_path / name)))
        for size in sizes:
            store.drop_run(run_of(store.root, size))
        for fit in list(store.records("fits")):
            store.drop_record("fits", fit["fit_id"])
        stores.append(store.root)
    return stores[0], stores[1]


def test_two_halves_become_the_whole_and_the_other_is_not_touched(halves: tuple[Path, Path], drawn: Path) -> None:
    one, two = halves
    before = snapshot(two)
    came = merged(one, two)
    assert (came.copied["runs"], came.copied["cells"], came.skipped) == (2, 2, [])
    assert merged(one, two).copied.total() == 0, "what is here does not come again"
    assert snapshot(two) == before
    names = ("runs/", "cells/", "vocab/")
    whole = {name: content for name, content in evidence(drawn).items() if name.startswith(names)}
    assert {name: content for name, content in evidence(one).items() if name.startswith(names)} == whole
    assert set(run_folders(one)) == set(run_folders(drawn))
    assert faults(one) == []


def test_a_folder_of_an_earlier_version_is_passed_over(halves: tuple[Path, Path], tmp_path: Path, cwd: Path) -> None:
    """Losses at other temperatures, of rbpx 0.4.0: nothing reads, copies, checks or removes them."""
    one, two = halves
    old = two / "temperatures" / f"{run_of(two, 'm')}.parquet"
    old.parent.mkdir()
    old.write_text("no Parquet, and nobody minds", encoding="utf-8")
    assert faults(two) == []
    assert "temperatures" not in merged(one, two).copied
    here("store", "push", tmp_path / "copy", "--store", two, cwd=cwd, check=0)
    here("store", "gc", "--store", two, cwd=cwd, check=0)
    assert old.is_file()
    assert not [path for place in (one, tmp_path / "copy") for path in place.glob("temperatures*")]


def test_an_empty_place_becomes_a_copy_with_samples(own_store: Path, tmp_path: Path) -> None:
    (own_store / "samples").mkdir()
    pq.write_table(pa.table({"text": ["one"]}), own_store / "samples" / "c4-1234.parquet")
    merged(tmp_path / "new", own_store)
    assert evidence(tmp_path / "new") == evidence(own_store)


def test_the_same_run_with_other_bytes_is_named_and_kept_out(own_store: Path, drawn: Path) -> None:
    run_id = run_of(own_store, "s")
    other = Path(shutil.copytree(drawn, own_store.parent / "other"))
    folder = other / "runs" / run_id
    pq.write_table(pq.read_table(folder / "tokens.parquet"), folder / "tokens.parquet", compression="gzip")
    reseal(folder)
    before = evidence(own_store)
    (told,) = [line for line in merged(own_store, other).skipped if line.startswith(f"run {run_id}: ")]
    assert "this store has it with other bytes" in told
    assert evidence(own_store) == before


def test_a_damaged_run_stays_outside_with_all_that_needs_it(own_store: Path, cwd: Path) -> None:
    run_id = run_of(own_store, "m")
    flipped(own_store / "runs" / run_id / "tokens.parquet")
    new = own_store.parent / "new"
    answer = here("store", "merge", own_store, "--store", new, cwd=cwd, check=1)
    assert f"kept out: run {run_id}: it is corrupt: tokens.parquet" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert sorted(record["size"] for record in cell_records(new)) == ["l", "s", "xs"]
    assert len(run_folders(new)) == 3
    assert not list((new / "fits").glob("*")), "each fit is of all four sizes"
    assert faults(new) == []


HEADER = "family,size,S,dataset,k,rbp"
ROWS = ["toy,1b,1000000000,wiki,1,0.41", "toy,1b,1000000000,wiki,10,0.7", "toy,2b,2000000000,wiki,1,0.43"]


def holding(store: Path, rows: list[str]) -> Path:
    """A store with observations of somebody else."""
    return imported(store, "\n".join([HEADER, *rows]), ties="mid")


def test_overlapping_imports_are_not_doubled(cwd: Path, tmp_path: Path) -> None:
    one, two = holding(tmp_path / "one", ROWS[:2]), holding(tmp_path / "two", ROWS)
    told = here("store", "merge", two, "--store", one, cwd=cwd, check=0).stderr
    assert re.search(r"\b1 observation\b(?!s)", told)
    assert observations(one) == observations(two)
    assert len(observations(one)) == 3
    assert faults(one) == []


def test_imports_that_contradict_are_kept_out_and_named(tmp_path: Path) -> None:
    one = holding(tmp_path / "one", ROWS[:2])
    before = observations(one)
    two = holding(tmp_path / "two", ["toy,1b,1000000000,wiki,1,0.55"])
    (told,) = merged(one, two).skipped
    assert "0.55" in told
    assert observations(one) == before


@pytest.mark.parametrize("other", ["missing", "empty"])
def test_what_cannot_be_merged_is_refused_in_one_line(other: str, own_store: Path, cwd: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    place = tmp_path / other
    (line,) = here("store", "merge", place, "--store", own_store, cwd=cwd, check=2).stderr.splitlines()
    assert line.startswith(f"rbpx: {place} is not a store: it has no runs")
    assert "name another store" in line


def test_what_is_kept_out_is_said_of_each_record_and_the_rest_comes(tmp_path: Path) -> None:
    one, two = (write_store(tmp_path / name, Truth(S=(10, 20, 30)), seed=0, n_documents=2, n_tokens=3) for name in "ab")
    cells = sorted((two.root / "cells").iterdir())
    cells[0].write_bytes(b"{")
    cells[1].rename(cells[1].with_name("other.json"))
    other = two.record("cells", cells[2].stem)
    two.write_record("cells", cells[2].stem, other | {"run_id": two.run_ids()[0]})
    said = merge(one, Folder(two))
    assert [line.split(": ")[0] for line in said.skipped] == [
        *(f"cells/{cells[0].name}", "cells/other.json", f"cell {cells[2].stem}"),
    ]
    assert said.skipped[2].endswith(f"run {two.run_ids()[2]} answers it here, run {two.run_ids()[0]} there")
    assert said.already_here == {"runs": 3, "vocab": 1}
    assert len(cell_records(one.root)) == 3
