"""SQL of users ends: after its time, at its memory, at Ctrl-C; and its rows are written as they come."""

import csv
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rbpx.errors import RbpxError
from rbpx.store.sql.bounded import Bounded, SqlLimits, machine_mib
from rbpx.store.sql.queries import ask_user, connect
from rbpx.store.store import Store
from tests.support.composed import here

ENDLESS = {
    "recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "cross join": "SELECT count(*) FROM tokens a, tokens b, tokens c, tokens d, tokens e WHERE a.greater + b.greater "
    "+ c.greater + d.greater + e.greater = 7",
}


def spills() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("rbpx-spill-*"))


@pytest.mark.parametrize("query", ENDLESS)
def test_a_query_without_end_is_stopped_in_one_line(query: str, drawn: Path, cwd: Path) -> None:
    began = time.monotonic()
    answer = here("sql", ENDLESS[query], "sql_timeout_s=0.5", "--store", drawn, cwd=cwd, check=2)
    assert time.monotonic() - began < 20
    (line,) = answer.stderr.splitlines()
    assert "longer than sql_timeout_s=0.5" in line
    assert "sql_timeout_s=5" in line
    assert answer.stdout == ""
    assert spills() == []


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


def test_memory_is_limited_and_spilling_too(drawn: Path, cwd: Path) -> None:
    query = "SELECT len(list(range)) FROM range(100000000)"
    answer = here("sql", query, "sql_memory_mib=100", "--store", drawn, cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert "sql_memory_mib=100 " in line
    assert "sql_memory_mib=200" in line
    with connect(Store(drawn), limits=SqlLimits(memory_mib=100)) as connection:
        limits = connection.execute(
            "SELECT current_setting('memory_limit'), current_setting('max_temp_directory_size')"
        ).fetchone()
    assert limits == ("100.0 MiB", "400.0 MiB")
    assert spills() == []


def test_a_whole_table_for_python_is_not_larger_than_the_limit(drawn: Path) -> None:
    with (
        connect(Store(drawn)) as connection,
        pytest.raises(RbpxError, match=r"answer is larger.*sql_memory_mib=2"),
    ):
        ask_user(connection, "SELECT * FROM range(1000000)", SqlLimits(memory_mib=1))


@pytest.mark.parametrize("value", ["-1", "soon"])
def test_a_limit_that_is_none_is_refused(value: str, drawn: Path, cwd: Path) -> None:
    answer = here("sql", "SELECT 1", f"sql_timeout_s={value}", "--store", drawn, cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert f"{value.rstrip('.0') or 0}" in line
    assert "sql_timeout_s" in line


def test_no_thread_outlives_its_query(drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB prints fifty lines about leaks when a process ends while a thread of it still holds a connection."""
    serve = Bounded._serve

    def slow(bounded: Bounded) -> None:
        serve(bounded)
        time.sleep(0.2)

    monkeypatch.setattr(Bounded, "_serve", slow)
    with connect(Store(drawn)) as connection:
        ask_user(connection, "SELECT 1")
        with pytest.raises(RbpxError, match="longer than"):
            ask_user(connection, ENDLESS["recursion"], SqlLimits(timeout_s=0.3))
    assert "rbpx-sql" not in {thread.name for thread in threading.enumerate()}


def test_the_memory_of_a_container_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = machine_mib()
    files = {
        "/proc/self/cgroup": "3:cpu:/x\n0::/a/b\n",
        "/sys/fs/cgroup/a/b/memory.max": "max\n",
        "/sys/fs/cgroup/a/memory.max": f"{512 * 2**20}\n",
    }

    def read(path: Path, encoding: str = "utf-8") -> str:
        if str(path) in files:
            return files[str(path)]
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", read)
    assert machine_mib() == 512 < whole
    files["/sys/fs/cgroup/a/memory.max"] = str(2**62)
    assert machine_mib() <= whole or whole < 2**62
    files |= {"/proc/self/cgroup": "4:memory:/c\n", "/sys/fs/cgroup/memory/c/memory.limit_in_bytes": str(300 * 2**20)}
    assert machine_mib() == 300


def test_old_spills_of_processes_that_are_gone_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name, days in (("999999999-old", 2), ("999999999-new", 0), (f"{os.getpid()}-mine", 2)):
        folder = tmp_path / f"rbpx-spill-{name}"
        folder.mkdir()
        then = time.time() - days * 24 * 3600
        os.utime(folder, (then, then))
    with connect(Store(tmp_path / "none")):
        names = {path.name for path in tmp_path.glob("rbpx-spill-*")}
    assert names >= {"rbpx-spill-999999999-new", f"rbpx-spill-{os.getpid()}-mine"}
    assert "rbpx-spill-999999999-old" not in names
