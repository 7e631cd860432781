"""SQL of users ends at Ctrl-C in a process of its own, and many rows take little memory."""

import resource
import signal
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from tests.support.composed import here
from tests.support.warm import Warm

ENDLESS = (
    "SELECT count(*) FROM range(10000000) a, range(10000000) b, range(10000000) c WHERE a.range + b.range + c.range = 7"
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store" / "runs").mkdir(parents=True)
    return tmp_path / "store"


def test_rows_are_written_with_little_memory(store: Path, cwd: Path, tmp_path: Path) -> None:
    """120 MB of text go by; the peak may not grow by half of it."""
    query, words = "SELECT repeat('x', 2000) AS x FROM range({})", ["--store", store]
    here("export", query.format(10), "--output", tmp_path / "few.csv", *words, cwd=cwd, check=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    here("export", query.format(60_000), "--output", tmp_path / "rows.csv", *words, cwd=cwd, check=0)
    assert (tmp_path / "rows.csv").stat().st_size > 120e6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60 * 1024
    here("export", query.format(60_000), "--output", tmp_path / "rows.parquet", *words, cwd=cwd, check=0)
    assert pq.ParquetFile(tmp_path / "rows.parquet").num_row_groups == 2, "each of 64 MiB"


def test_it_ends_at_ctrl_c(store: Path, cwd: Path, tmp_path: Path) -> None:
    (tmp_path / "spill").mkdir()
    words = ("sql", ENDLESS, "sql_timeout_s=500", "--store", store)
    command = Warm(*words, cwd=cwd, env={"TMPDIR": str(tmp_path / "spill")})
    while psutil.Process(command.pid).cpu_times().user < 2:  # by then the query has begun
        time.sleep(0.1)
    command.send_signal(signal.SIGINT)
    began = time.monotonic()
    stdout, stderr = command.communicate(timeout=60)
    assert time.monotonic() - began < 40
    assert (command.returncode, stdout, stderr.count("\n")) == (130, "", 1)
    assert list((tmp_path / "spill").iterdir()) == []
