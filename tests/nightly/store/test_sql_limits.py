"""SQL of users ends: after its time, at its memory, at Ctrl-C; and its rows are written as they come."""

import resource
import signal
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from rbpx.store.sql import SqlLimits, connect, user_rows
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.stores import Measured
from tests.support.warm import Warm

ENDLESS = (
    "SELECT count(*) FROM tokens a, tokens b, tokens c, tokens d, tokens e WHERE a.greater + b.greater + c.greater "
    "+ d.greater + e.greater = 7"
)


def spills() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("rbpx-spill-*"))


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


def test_the_conditions_of_slices_end_too(measured: Measured, cwd: Path) -> None:
    condition = "position < (WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t)"
    words = ["gaps", f"slices={{early: '{condition}'}}", "sql_timeout_s=0.5", "--store", str(measured.store)]
    (line,) = here(*words, cwd=cwd, check=2).stderr.splitlines()
    assert "longer than sql_timeout_s=0.5" in line


def test_no_limit_is_null(measured: Measured, cwd: Path) -> None:
    here("sql", "SELECT 1", "sql_timeout_s=null", "sql_memory_mib=null", "--store", measured.store, cwd=cwd, check=0)


@pytest.mark.parametrize("ends", ["ctrl-c", "time"])
def test_it_ends_at_ctrl_c_and_after_its_time(ends: str, measured: Measured, cwd: Path) -> None:
    before = set(spills())
    command = Warm("sql", ENDLESS, f"sql_timeout_s={1 if ends == 'time' else 500}", "--store", measured.store, cwd=cwd)
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
    assert set(spills()) <= before


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
