"""Other people's results come into a store whole, checked and traceable, or not at all."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.commands import Answer, start
from tests.support.composed import here

HEADER = "family,size,model,S,dataset,k,rbp,n_tokens,ce"
ROWS = [
    "toy,1b,ORG/toy-1b,1000000000,wiki,1,0.41,5000,3.1",
    "toy,1b,ORG/toy-1b,1000000000,wiki,10,0.7,5000,3.1",
    "toy,2b,ORG/toy-2b,2e9,wiki,1,0.43,5000,2.9",
    "toy,2b,ORG/toy-2b,2000000000.0,wiki,10,0.72,5000,2.9",
]
IMPORT = ("source=them", "ties=mid")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two models on one text at two k, as CSV."""
    return write(tmp_path / "results.csv", HEADER, *ROWS)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    answer = here("import", file, *(words or IMPORT), "--store", store, cwd=cwd, check=check)
    assert answer.stdout == ""
    return answer


def observations(store: Path, cwd: Path, where: str = "source <> 'measured'") -> list[dict[str, Any]]:
    """What the verb `sql` says is imported, in an order of its values; run_ids left out."""
    query = f"SELECT * EXCLUDE (run_id) FROM observations WHERE {where} ORDER BY ALL"
    rows: list[dict[str, Any]] = json.loads(
        here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout
    )
    return rows


def refused(answer: Answer, *says: str) -> None:
    """Exit status 2, no result, and one line that says all of `says`."""
    assert answer.returncode == 2, answer.stderr
    (line,) = answer.stderr.splitlines()
    assert line.startswith("rbpx: ")
    assert [words for words in says if words not in line] == [], line


def test_of_two_contradicting_files_that_two_processes_bring_at_once_one_is_refused(
    store: Path, cwd: Path, tmp_path: Path
) -> None:
    files = [write(tmp_path / f"{rbp}.csv", HEADER, ROWS[0].replace("0.41", rbp)) for rbp in ("0.41", "0.42")]
    processes = [start("import", file, *IMPORT, "--store", store, cwd=cwd) for file in files]
    told = [process.communicate(timeout=60)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 2], told
    assert len(observations(store, cwd)) == 1


def test_the_index_holds_imported_observations_for_any_client(
    results: Path, own_store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(results, own_store, cwd)
    with duckdb.connect(str(own_store / "rbpx.duckdb"), read_only=True) as connection:
        counted = connection.execute("SELECT source, count(*) FROM observations GROUP BY ALL ORDER BY ALL").fetchall()
        at_10 = connection.execute("SELECT source, rbp FROM rbp_at(10, 'mid') ORDER BY ALL").fetchall()
    per_run = 3 * len([k for k in (1, 10, 100, 500, 1000, 2500, 10000) if k < 320])
    assert counted == [("measured", 4 * per_run), ("them", len(ROWS))]
    assert [row for row in at_10 if row[0] == "them"] == [("them", 0.7), ("them", 0.72)]
    assert len(at_10) == 6


# ------------------------------------------------------------------------------------------------------ named studies


def study(name: str, store: Path, cwd: Path) -> Answer:
    return here(f"experiment={name}", "--store", store, cwd=cwd, check=0)


def test_the_studies_share_a_store(store: Path, cwd: Path) -> None:
    for name in ("published_gpt2_emergence", "published_gpt2_wikipedia", "published_pythia_wikipedia"):
        assert study(name, store, cwd).stdout
    assert "nothing new" in study("published_gpt2_wikipedia", store, cwd).stderr
    assert len(observations(store, cwd)) == 110


@pytest.mark.parametrize(
    ("imports", "says"),
    [
        ("[{source: them, ties: mid}]", ["import 1", "names no file"]),
        ("[{file: nosuch.csv, source: them}]", ["/nosuch.csv is not a file"]),
        ("[{file: nosuch.csv}]", ["needs source=NAME"]),
        ("[{file: nosuch.csv, sauce: them}]", ["sauce"]),
    ],
)
def test_a_wrong_import_of_a_study_is_one_line(imports: str, says: list[str], store: Path, cwd: Path) -> None:
    refused(here("experiment=published_gpt2_wikipedia", f"imports={imports}", "--store", store, cwd=cwd), *says)
    assert not store.exists()
