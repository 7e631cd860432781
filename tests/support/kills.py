"""Measurements that are killed once they have kept some parts of a cell, and what lies in the store then."""

import signal
import time
from pathlib import Path

from tests.support.stores import run_folders
from tests.support.warm import Warm

AT_ONCE = {"RBPX_PART_S": "0"}  # a part for each batch


def parts_in(store: Path) -> list[Path]:
    """The parts of cells that lie in a store."""
    return sorted(path for path in store.glob("running/.parts.*.tmp") if path.suffixes[-2:] != [".tmp", ".tmp"])


def killed(words: list[str], store: Path, cwd: Path, n_parts: int) -> list[Path]:
    """The parts of a measurement that was killed with -9 once it had sealed so many."""
    process = Warm(*words, "--store", store, cwd=cwd, env=AT_ONCE)
    until = time.monotonic() + 120
    while len(parts_in(store)) < n_parts:
        assert process.poll() is None, f"it ended before it was killed: {process.communicate()[1]}"
        assert time.monotonic() < until
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert run_folders(store) == {}
    return parts_in(store)


def assert_same_bytes(store: Path, other: Path) -> None:
    """Both stores hold the same run, byte by byte."""
    ((run_id, folder),), ((other_id, undisturbed),) = run_folders(store).items(), run_folders(other).items()
    assert run_id == other_id
    for table in ("tokens", "rank_counts", "documents"):
        assert (folder / f"{table}.parquet").read_bytes() == (undisturbed / f"{table}.parquet").read_bytes(), table
