"""Reads Parquet files of a store, and finds those that are not as they were written."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import reason
from rbpx.files.digest import sha256_of

UNREADABLE: Final = (OSError, ValueError, LookupError, pa.ArrowException, duckdb.Error)  # what reading a file raises


def read_whole(path: Path) -> pa.Table:
    """Read a whole Parquet file and verify the checksums of its pages."""
    if path.exists() and not path.is_file():
        raise ValueError("it is no regular file")
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read()


def end_fault(path: str) -> str | None:
    """The fault that the ends of a Parquet file show, at the price of opening it."""
    name = os.path.basename(path)
    if not os.path.isfile(path):
        return f"{name} is {'no file' if os.path.exists(path) else 'missing'}"
    with suppress(OSError), open(path, "rb") as file:
        file.seek(-4, os.SEEK_END)
        if file.read() == b"PAR1":
            return None
    return f"{name} is no whole Parquet file"


def changed(path: Path, sha256: str) -> str | None:
    """How a table differs from the one of this SHA-256; reads every byte."""
    same = sha256_of(path) == sha256
    return None if same else f"{path.name} has changed since it was written (its sha256 is not the manifest's)"


def asked_fault(path: Path, sha256: str | None) -> str | None:
    """The fault of a file that a query is about to read; of one without a SHA-256 the checksums of its pages tell.

    DuckDB looks at neither, so a flipped bit would be a wrong number. A file is read once, unless it was written again.
    """
    try:
        stat = path.stat()
        return _fault(path, sha256, stat.st_size, stat.st_mtime_ns)
    except FileNotFoundError:
        return f"{path.name} is missing"
    except UNREADABLE as problem:
        return f"{path.name}: {reason(problem)}"


@cache
def _fault(path: Path, sha256: str | None, n_bytes: int, written_ns: int) -> str | None:
    if sha256 is not None:
        return changed(path, sha256)
    read_whole(path)
    return None
