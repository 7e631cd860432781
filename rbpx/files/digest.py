"""Digests of files and values, and JSON records sealed by a digest, so that a flipped bit is detected on reading."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rbpx.files.entries import atomic_write_text, plain_file

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


RECORD_MIB: Final = 16  # a fit of 10,000 runs takes a fifth of one

# ------------------------------------------------------------------------------------------------------------- seals


def write_sealed(path: Path, record: Mapping[str, Any], in_lines: bool = False, *, durable: bool = True) -> None:
    """Write a record atomically, with a digest of its contents, so that a flipped bit in it is detected.

    Args:
        path: the file.
        record: plain values.
        in_lines: one value per line, for people; that takes ten times as long to write.
        durable: whether it must survive a crash of the machine; see `atomic_write`.
    """
    atomic_write_text(path, _sealed(json.loads(json.dumps(record, allow_nan=False)), in_lines), durable=durable)


def _sealed(record: Mapping[str, Any], in_lines: bool = False) -> str:
    indent = 1 if in_lines else None
    return json.dumps({**record, "seal": digest(record)}, indent=indent, separators=(",", ": "))


def read_sealed(path: Path) -> dict[str, Any]:
    """A record as it was written, without its seal; records of older versions have none.

    Raises:
        ValueError: it is not a record, or not the one that was sealed; a `NoFileError` where no such file lies there.
        FileNotFoundError: it does not exist.
    """
    text = plain_file(path, RECORD_MIB).read_text(encoding="utf-8")
    try:
        return _read(text)
    except RecursionError:  # what json, or the digest, cannot follow was not written by it
        raise ValueError("it is nested too deeply") from None


def _read(text: str) -> dict[str, Any]:
    record = json.loads(text, parse_constant=_refuse)
    if not isinstance(record, dict) or not record:
        raise ValueError("it is not a record")
    name, last = record.popitem()
    # The whole text is compared, because two spellings of one number may have the same digest. A last value that is
    # the digest of all before it is the seal whatever its name, because a bit may have flipped in the name. Compared on
    # one line, because the standard library writes indented JSON ten times slower; JSON strings contain no line breaks.
    on_one_line = re.sub(r"\n *", "", text)
    if on_one_line != _sealed(record) and (name == "seal" or last == digest(record)):
        raise ValueError("it has changed since it was written")
    return record if name == "seal" else {**record, name: last}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")
