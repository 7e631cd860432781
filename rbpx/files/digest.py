"""Computes digests of values, of the rows of a table, and of files; and caches them."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.files.entries import atomic_write_text

if TYPE_CHECKING:
    import pyarrow as pa

_CACHED_FROM_BYTES = 1 << 24  # smaller files are hashed faster than a cache is read
_DIGESTED_ROWS: Final = 50_000  # converted to JSON at once


def digest(value: Any) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a value as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def digest_of_rows(table: "pa.Table") -> str:
    """The `digest` of the rows of a table as a list of objects."""
    names = sorted(table.column_names)
    content, before = hashlib.sha256(b"["), ""
    for rows in _as_json(table, names, [f"{json.dumps(name)}: " for name in names]):
        content.update((before + ", ".join(f"{{{row}}}" for row in rows)).encode())
        before = ", "
    content.update(b"]")
    return content.hexdigest()[:16]


def digests_of_rows(table: "pa.Table", names: Sequence[str]) -> npt.NDArray[np.uint64]:
    """The `digest` of each row as a list of its values in some columns, as a number; [R]."""
    rows = (f"[{row}]".encode() for rows in _as_json(table, names, [""] * len(names)) for row in rows)
    digests = b"".join(hashlib.sha256(row).digest()[:8] for row in rows)
    return np.frombuffer(digests, ">u8").astype(np.uint64)


def _as_json(table: "pa.Table", names: Sequence[str], before: Sequence[str]) -> Iterator[Iterator[str]]:
    """Each row's values as JSON, each after its prefix in `before`, in blocks of rows."""
    for at in range(0, table.num_rows, _DIGESTED_ROWS):
        columns = []
        for name, label in zip(names, before, strict=True):
            distinct = table[name].slice(at, _DIGESTED_ROWS).combine_chunks().dictionary_encode("encode")
            values = distinct.dictionary.to_pylist()
            is_text = any(isinstance(value, str) for value in values)  # numbers together take a third of the time
            texts = map(json.dumps, values) if is_text else json.dumps(values)[1:-1].split(", ")
            columns.append(np.array([label + text for text in texts], object)[distinct.indices.to_numpy()])
        yield map(", ".join, zip(*columns, strict=True))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(paths: Iterable[Path], cache: Path | None = None) -> str:
    """One hash for the bytes of several files in their order, whatever their names."""
    return digest(file_hashes(paths, cache))


def file_hashes(paths: Iterable[Path], cache: Path | None = None) -> list[str]:
    """The SHA-256 of each file; that of a large one is cached until its size or modification time changes."""
    known = {} if cache is None else read_cache(cache)
    n_before, hashes = len(known), []
    for path in paths:
        stat = path.stat()
        label = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
        if stat.st_size < _CACHED_FROM_BYTES:
            hashes.append(sha256_of(path))
            continue
        if label not in known:
            known[label] = sha256_of(path)
        hashes.append(known[label])
    if cache is not None and len(known) > n_before:
        write_cache(cache, known)
    return hashes


# ------------------------------------------------------------------------------------------------------------ caches


def read_cache(path: Path) -> dict[str, Any]:
    """The contents of a cache; empty where it is missing or corrupt."""
    try:
        entries: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return entries


def write_cache(path: Path, entries: Mapping[str, Any]) -> None:
    """Write a cache if the disk has room and the folder is writable."""
    with contextlib.suppress(OSError):
        atomic_write_text(path, json.dumps(entries, indent=0), durable=False)


def cache_folder() -> Path:
    """`~/.cache/rbpx`, or where XDG_CACHE_HOME says."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rbpx"
