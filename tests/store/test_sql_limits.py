"""SQL of users ends: after its time, at its memory, at Ctrl-C; and its rows are written as they come."""

import csv
import json
import resource
import signal
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from rbpx.errors import RbpxError
from rbpx.store.sql.bounded import Bounded, SqlLimits, machine_mib
from rbpx.store.sql.queries import ask_user, connect, user_rows
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.stores import Measured
from tests.support.warm import Warm

ENDLESS = {
    "recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "cross join": "SELECT count(*) FROM tokens a, tokens b, tokens c, tokens d, tokens e WHERE a.greater + b.greater "
    "+ c.greater + d.greater + e.greater = 7",
}
ONE_CALL = "SELECT levenshtein(repeat('a', 400000), repeat('b', 400000))"  # minutes, and nothing interrupts it


def spills() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("rbpx-spill-*"))


@pytest.mark.parametrize("query", ENDLESS)
def test_a_query_without_end_is_stopped_in_one_line(query: str, measured: Measured, cwd: Path) -> None:
    began = time.monotonic()
    answer = here("sql", ENDLESS[query], "sql_timeout_s=0.5", "--store", measured.store, cwd=cwd, check=2)
    assert time.monotonic() - began < 20
    (line,) = answer.stderr.splitlines()
    assert "longer than sql_timeout_s=0.5" in line
    assert "sql_timeout_s=5" in line
    assert answer.stdout == ""
    assert spills() == []


def test_rows_without_end_are_stopped_too_though_each_comes_quickly(
    measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    words = ["sql", "SELECT * FROM range(1000000000000)", "sql_timeout_s=0.5", "--store", measured.store]
    printed = here(*words, "--format", "csv", cwd=cwd, check=2)
    assert printed.stdout.split()[:3] == ["range", "0", "1"]
    written = here(*words, "--output", tmp_path / "rows.csv", cwd=cwd, check=2)
    assert not (tmp_path / "rows.csv").exists()
    for answer in (printed, written):
        (line,) = answer.stderr.splitlines()
        assert "longer than sql_timeout_s=0.5" in line


def test_the_first_rows_of_very_many_are_shown(measured: Measured, cwd: Path) -> None:
    answer = here("sql", "SELECT * FROM range(1000000000000)", "--store", measured.store, cwd=cwd, check=0)
    assert answer.stdout.split()[2:] == [str(n) for n in range(40)]
    assert "more rows than these, the first 40 shown" in answer.stderr
    answer = here("sql", "SELECT * FROM range(1234)", "--store", measured.store, cwd=cwd, check=0)
    assert "1,234 rows, the first 40 shown" in answer.stderr


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_a_file_holds_all_rows_or_is_not_there(suffix: str, measured: Measured, cwd: Path, tmp_path: Path) -> None:
    output = tmp_path / f"rows.{suffix}"
    words = ["--output", output, "--store", measured.store]
    here("export", "SELECT range AS n, range AS n FROM range(20000)", *words, cwd=cwd, check=0)
    read = {
        "csv": lambda: [[int(a), int(b)] for a, b in islice(csv.reader(output.open()), 1, None)],
        "json": lambda: [[row["n"], row["n_2"]] for row in json.loads(output.read_text())],
        "parquet": lambda: [list(row.values()) for row in pq.read_table(output).to_pylist()],
    }[suffix]
    assert read() == [[n, n] for n in range(20000)]
    before = output.read_bytes()
    late = "SELECT CASE WHEN range = 50000 THEN error('here') ELSE range END AS n FROM range(60000)"
    answer = here("export", late, *words, cwd=cwd, check=2)
    assert "here" in answer.stderr
    assert output.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cwd", output.name]


def test_rows_are_written_with_little_memory(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    """120 MB of text go by; the peak may not grow by half of it."""
    query, words = "SELECT repeat('x', 2000) AS x FROM range({})", ["--store", measured.store]
    here("export", query.format(10), "--output", tmp_path / "few.csv", *words, cwd=cwd, check=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    here("export", query.format(60_000), "--output", tmp_path / "rows.csv", *words, cwd=cwd, check=0)
    assert (tmp_path / "rows.csv").stat().st_size > 120e6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60 * 1024
    here("export", query.format(60_000), "--output", tmp_path / "rows.parquet", *words, cwd=cwd, check=0)
    assert pq.ParquetFile(tmp_path / "rows.parquet").num_row_groups == 2, "each of 64 MiB"


def test_memory_is_limited_and_spilling_too(measured: Measured, cwd: Path) -> None:
    query = "SELECT len(list(range)) FROM range(100000000)"
    answer = here("sql", query, "sql_memory_mib=100", "--store", measured.store, cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert "sql_memory_mib=100 " in line
    assert "sql_memory_mib=200" in line
    with connect(Store(measured.store), limits=SqlLimits(memory_mib=100)) as connection:
        limits = connection.execute(
            "SELECT current_setting('memory_limit'), current_setting('max_temp_directory_size')"
        ).fetchone()
    assert limits == ("100.0 MiB", "400.0 MiB")
    assert spills() == []


def test_a_whole_table_for_python_is_not_larger_than_the_limit(measured: Measured) -> None:
    with (
        connect(Store(measured.store)) as connection,
        pytest.raises(RbpxError, match=r"answer is larger.*sql_memory_mib=2"),
    ):
        ask_user(connection, "SELECT * FROM range(1000000)", SqlLimits(memory_mib=1))


def test_the_conditions_of_slices_end_too(measured: Measured, cwd: Path) -> None:
    condition = "position < (WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t)"
    words = ["gaps", f"slices={{early: '{condition}'}}", "sql_timeout_s=0.5", "--store", str(measured.store)]
    (line,) = here(*words, cwd=cwd, check=2).stderr.splitlines()
    assert "longer than sql_timeout_s=0.5" in line


@pytest.mark.parametrize("value", ["0", "-1", "inf", "soon"])
def test_a_limit_that_is_none_is_refused(value: str, measured: Measured, cwd: Path) -> None:
    answer = here("sql", "SELECT 1", f"sql_timeout_s={value}", "--store", measured.store, cwd=cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert f"{value.rstrip('.0') or 0}" in line
    assert "sql_timeout_s" in line


def test_no_limit_is_null(measured: Measured, cwd: Path) -> None:
    here("sql", "SELECT 1", "sql_timeout_s=null", "sql_memory_mib=null", "--store", measured.store, cwd=cwd, check=0)


@pytest.mark.parametrize("query", [ENDLESS["cross join"], ONE_CALL], ids=["join", "one call"])
@pytest.mark.parametrize("ends", ["ctrl-c", "time"])
def test_it_ends_at_once_even_where_duckdb_cannot_be_interrupted(
    query: str, ends: str, measured: Measured, cwd: Path
) -> None:
    command = Warm("sql", query, f"sql_timeout_s={1 if ends == 'time' else 500}", "--store", measured.store, cwd=cwd)
    if ends == "ctrl-c":
        while psutil.Process(command.pid).cpu_times().user < 2:  # by then the query has begun
            time.sleep(0.1)
        command.send_signal(signal.SIGINT)
    began = time.monotonic()
    stdout, stderr = command.communicate(timeout=60)
    assert time.monotonic() - began < 40
    assert command.returncode == (2 if ends == "time" else 130)
    (line,) = stderr.splitlines()
    assert ("sql_timeout_s=1 " in line) == (ends == "time")
    assert stdout == ""
    assert spills() == []


def test_no_thread_outlives_its_query(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB prints fifty lines about leaks when a process ends while a thread of it still holds a connection."""
    serve = Bounded._serve

    def slow(bounded: Bounded) -> None:
        serve(bounded)
        time.sleep(0.2)

    monkeypatch.setattr(Bounded, "_serve", slow)
    with connect(Store(measured.store)) as connection:
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


def test_what_was_read_slowly_does_not_count(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    """`| less` may wait for as long as it likes."""
    with (
        connect(Store(measured.store)) as connection,
        user_rows(connection, "SELECT * FROM range(10000)", SqlLimits(timeout_s=1)) as rows,
    ):
        n = 0
        for part in rows:
            time.sleep(0.5)
            n += part.num_rows
    assert n == 10000
