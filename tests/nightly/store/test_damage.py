"""What is damaged in a store is found, named, and left out with one line; never a traceback, never a wrong number."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rbpx.files.digest import read_sealed, write_sealed
from rbpx.files.entries import stamp
from rbpx.store.checks import integrity
from rbpx.store.store import Store
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.damage import faults, flip, flipped, run_of
from tests.support.stores import Family, columns_of

FILES = ("tokens.parquet", "rank_counts.parquet", "documents.parquet", "manifest.json")


def told(answer: Answer) -> list[str]:
    assert "Traceback" not in answer.stderr, answer.stderr[-2000:]
    return answer.stderr.splitlines()


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
    assert faults(own_store) == []
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


def test_a_bit_that_flips_without_a_trace_in_a_large_store_is_found_when_its_page_is_read(
    own_store: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
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
    query = "SELECT run_id, avg(logprob) FROM tokens GROUP BY ALL"
    answer = here("sql", query, "--format", "csv", "--store", own_store, cwd=cwd, check=0)
    assert [run_id in line for line in told(answer)] == [True]
    assert run_id not in answer.stdout
