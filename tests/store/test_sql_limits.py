"""SQL of users ends: after its time, at its memory, at Ctrl-C; and its rows are written as they come."""

import csv
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rbpx.errors import RbpxError
from rbpx.store.sql import SqlLimits, ask_user, connect, user_rows
from rbpx.store.store import Store
from tests.support.composed import here

ENDLESS = {
    "recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "cross join": "SELECT count(*) FROM tokens a, tokens b, tokens c, tokens d, tokens e WHERE a.greater + b.greater "
    "+ c.greater + d.greater + e.greater = 7",
}


@pytest.fixture(autouse=True)
def spill(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each question leaves nothing in the folder of temporary files."""
    folder = tmp_path_factory.mktemp("spill")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("query", ENDLESS)
def test_a_query_without_end_is_stopped_in_one_line(query: str, drawn: Path, cwd: Path) -> None:
    began = time.monotonic()
    answer = here("sql", ENDLESS[query], "sql_timeout_s=0.5", "--store", drawn, cwd=cwd, check=2)
    assert time.monotonic() - began < 20
    (line,) = answer.stderr.splitlines()
    assert "longer than sql_timeout_s=0.5" in line
    assert "sql_timeout_s=5" in line
    assert answer.stdout == ""


def test_rows_without_end_and_conditions_of_slices_are_stopped_too(drawn: Path, cwd: Path, tmp_path: Path) -> None:
    words = ("sql_timeout_s=0.1", "--store", drawn)
    output = tmp_path / "rows.csv"
    written = here("sql", "SELECT * FROM range(1000000000000)", "--output", output, *words, cwd=cwd, check=2)
    assert not output.exists()
    sliced = here("gaps", f"slices={{early: 'position < ({ENDLESS['recursion']})'}}", *words, cwd=cwd, check=2)
    for answer in (written, sliced):
        (line,) = answer.stderr.splitlines()
        assert "longer than sql_timeout_s=0.1" in line


@pytest.mark.parametrize(
    ("n", "says"), [(10**12, "more rows than these, the first 40"), (1234, "1,234 rows, the first 40")]
)
def test_the_first_rows_of_very_many_are_shown(n: int, says: str, drawn: Path, cwd: Path) -> None:
    words = ("sql_timeout_s=null", "sql_memory_mib=null", "--store", drawn)
    answer = here("sql", f"SELECT * FROM range({n})", *words, cwd=cwd, check=0)
    assert answer.stdout.split()[2:] == [str(each) for each in range(40)]
    assert f"{says} shown" in answer.stderr


def test_what_was_read_slowly_does_not_count(drawn: Path) -> None:
    """`| less` may wait for as long as it likes."""
    query, limits = "SELECT * FROM range(10000)", SqlLimits(timeout_s=0.3)
    with connect(Store(drawn)) as connection, user_rows(connection, query, limits) as rows:
        n = 0
        for part in rows:
            time.sleep(0.15)
            n += part.num_rows
    assert n == 10000


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_holds_all_rows_or_is_not_there(suffix: str, drawn: Path, cwd: Path, tmp_path: Path) -> None:
    output = tmp_path / f"rows.{suffix}"
    words = ["--output", output, "--store", drawn]
    here("export", "SELECT range AS n, range AS n FROM range(20000)", *words, cwd=cwd, check=0)
    read = {
        "csv": lambda: [[int(a), int(b)] for a, b in islice(csv.reader(output.open()), 1, None)],
        "parquet": lambda: [list(row.values()) for row in pq.read_table(output).to_pylist()],
    }[suffix]
    assert read() == [[n, n] for n in range(20000)]
    before = output.read_bytes()
    late = "SELECT CASE WHEN range = 50000 THEN error('here') ELSE range END AS n FROM range(60000)"
    answer = here("export", late, *words, cwd=cwd, check=2)
    assert "here" in answer.stderr
    assert output.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cwd", output.name]


def test_memory_is_limited(drawn: Path, cwd: Path) -> None:
    query = "SELECT len(list(range)) FROM range(100000000)"
    answer = here("sql", query, "sql_memory_mib=100", "--store", drawn, cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert "sql_memory_mib=100;" in line
    assert "sql_memory_mib=200" in line
    with connect(Store(drawn), limits=SqlLimits(memory_mib=100)) as connection:
        limit = connection.execute("SELECT current_setting('memory_limit')").fetchone()
    assert limit == ("100.0 MiB",)
    assert list(cwd.iterdir()) == [], "DuckDB would spill into .tmp of the working directory"


def test_after_a_query_that_was_stopped_or_too_large_the_connection_answers_the_next(drawn: Path) -> None:
    with connect(Store(drawn)) as connection:
        for query, limits, says in (
            (ENDLESS["recursion"], SqlLimits(timeout_s=0.3), "longer than"),
            ("FROM range(1000000)", SqlLimits(60, 1), r"answer is larger.*sql_memory_mib=2"),
        ):
            with pytest.raises(RbpxError, match=says):
                ask_user(connection, query, limits)
            assert ask_user(connection, "SELECT 1 AS one").to_pylist() == [{"one": 1}]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rbpx-sql")]
