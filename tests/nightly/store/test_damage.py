"""What is damaged in a store is named, and passed over or refused with one line; never a traceback."""

from pathlib import Path

import pytest

from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.damage import emptied, faults, run_of, truncated
from tests.support.stores import Family, columns_of

FILES = ("tokens.parquet", "rank_counts.parquet", "documents.parquet", "manifest.json")


def told(answer: Answer) -> list[str]:
    assert "Traceback" not in answer.stderr, answer.stderr[-2000:]
    return answer.stderr.splitlines()


READERS = {
    "sql": ["sql", "SELECT DISTINCT run_id FROM tokens ORDER BY run_id", "--format", "csv"],
    "fit": ["fit", "resamples=50", "laws=[rbp]", "k=10", "--format", "json", "--details"],
    "status": ["status", "--format", "json"],
    "export": ["export", "runs"],
    "klaw": ["klaw", "resamples=50", "--format", "json", "--details"],
    "units": ["units", "resamples=50", "--format", "csv"],
    "run": ["run", "resamples=50", "--format", "json", "--details"],
}


@pytest.mark.parametrize(
    ("reader", "name"), [*((reader, "tokens.parquet") for reader in READERS), *(("sql", name) for name in FILES[1:])]
)
def test_readers_leave_a_torn_run_out_and_say_so_once(
    reader: str, name: str, own_store: Path, family: Family, cwd: Path
) -> None:
    run_id = run_of(own_store, "m")
    (emptied if name == "documents.parquet" else truncated)(own_store / "runs" / run_id / name)
    words = [READERS[reader][0], *(family.words() if reader == "run" else []), *READERS[reader][1:]]
    answer = here(*words, "--store", own_store, cwd=cwd, check=0)
    lines = told(answer)
    assert [run_id in line and "left out" in line and f"store rm {run_id}" in line for line in lines] == [True]
    assert run_id not in answer.stdout
    assert run_of(own_store, "l") in answer.stdout


def test_the_cure_that_is_named_makes_the_store_whole(own_store: Path, family: Family, cwd: Path) -> None:
    run_id = run_of(own_store, "m")
    rows = columns_of(own_store / "runs" / run_id, "tokens")
    truncated(own_store / "runs" / run_id / "tokens.parquet")
    here("store", "rm", run_id, "--store", own_store, cwd=cwd, check=0)
    here("measure", *family.words(), "--store", own_store, cwd=cwd, check=0)
    assert faults(own_store) == []
    again = columns_of(own_store / "runs" / run_id, "tokens")
    assert all((again[name] == rows[name]).all() for name in ("doc_id", "position", "token_id"))
