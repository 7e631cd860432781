"""Digests of files and values; those of large files are cached by path, size and modification time.

Digests of the rows of an Arrow table, as `digest` gives them for records, without making a record of each.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.files.atomic import atomic_write_text
from rbpx.files.entries import plain_file

_CACHED_FROM_BYTES = 1 << 24  # smaller files are hashed faster than a cache is read
_CACHE_MIB = 256


def digest(value: Any) -> str:
    """Sixteen hexadecimal digits that identify a JSON-serialisable value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def hash_files(paths: Iterable[Path], cache: Path | None = None) -> str:
    """One hash for the bytes of several files, in the order given; their names and folders do not matter."""
    return digest(file_hashes(paths, cache))


def file_hashes(paths: Iterable[Path], cache: Path | None = None) -> list[str]:
    """The SHA-256 of each file; that of a large one is cached until its size or modification time changes."""
    hashes_by_label = {} if cache is None else read_cache(cache)
    n_before, hashes = len(hashes_by_label), []
    for path in paths:
        stat = path.stat()
        label = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
        if label not in hashes_by_label or stat.st_size < _CACHED_FROM_BYTES:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            hashes.append(content)
            if stat.st_size >= _CACHED_FROM_BYTES:
                hashes_by_label[label] = content
        else:
            hashes.append(hashes_by_label[label])
    if cache is not None and len(hashes_by_label) > n_before:
        write_cache(cache, hashes_by_label)
    return hashes


# ------------------------------------------------------------------------------------------------------------ caches


def read_cache(path: Path) -> dict[str, Any]:
    """The contents of a cache; empty where it is missing or corrupt, since all of it can be computed again."""
    try:
        entries = json.loads(plain_file(path, _CACHE_MIB).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


def write_cache(path: Path, entries: Mapping[str, Any]) -> None:
    """Write a cache if the disk has room and the folder is writable; otherwise all is computed again next time."""
    with contextlib.suppress(OSError):
        atomic_write_text(path, json.dumps(entries, indent=0), durable=False)


def cache_folder() -> Path:
    """`~/.cache/rbpx`, or where XDG_CACHE_HOME says."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rbpx"


_ROWS: Final = 50_000  # written as JSON at once
_TEXT: Final = pa.large_string()


def digest_of_rows(table: pa.Table) -> str:
    """What `digest` gives for the rows of a table as records: a list of objects whose keys are sorted."""
    names = sorted(table.column_names)
    before = [f"{', ' if number else '{'}{json.dumps(name)}: " for number, name in enumerate(names)]
    content = hashlib.sha256(b"[")
    for number, rows in enumerate(_written(table, names, before, "}")):
        content.update(b", " if number else b"")
        whole = pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)
        content.update(pc.binary_join(whole, pa.scalar(", ", _TEXT))[0].as_buffer())
    content.update(b"]")
    return content.hexdigest()[:16]


def digests_of_rows(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.uint64]:
    """[R], what `digest` gives for each row as a list of its values in some columns, as the number that it writes."""
    before, sha256 = [", " if number else "[" for number in range(len(names))], hashlib.sha256
    digests = [
        sha256(row).digest()
        for rows in _written(table, names, before, "]")
        for row in rows.cast(pa.large_binary()).to_pylist()
    ]
    return np.frombuffer(b"".join(digests), ">u8").reshape(-1, 4)[:, 0].astype(np.uint64)


@dataclass(frozen=True)
class _Varying:
    """A column with several values: the text of each, with what stands before it, and which of them each row has."""

    texts: pa.Array
    codes: pa.Array


def _written(table: pa.Table, names: Sequence[str], before: Sequence[str], end: str) -> Iterator[pa.Array]:
    """Each row as text: what stands before each value, the value as JSON, and an end; a block of rows at a time."""
    varying, same = [], ""
    for name, text in zip(names, before, strict=True):
        codes, values = _json(table[name])
        same += text
        if len(values) == 1:  # of all rows
            same += values[0]
        else:
            varying.append(_Varying(pa.array([same + value for value in values], _TEXT), codes))
            same = ""
    for start in range(0, table.num_rows, _ROWS):
        columns = [column.texts.take(column.codes.slice(start, _ROWS)) for column in varying]
        last = pa.repeat(pa.scalar(same + end, _TEXT), min(_ROWS, table.num_rows - start))
        yield pc.binary_join_element_wise(*columns, last, pa.scalar("", _TEXT))


def _json(column: pa.ChunkedArray) -> tuple[pa.Array, list[str]]:
    """Which of the distinct values each row has, and each of those as JSON."""
    encoded = column.combine_chunks().dictionary_encode("encode")
    values, floats = encoded.dictionary.to_pylist(), pa.types.is_floating(column.type)
    if floats and None not in values:
        return encoded.indices, list(map(repr, values))  # as JSON writes what is finite
    return encoded.indices, list(map(json.dumps, values))
