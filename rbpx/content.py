"""Identity of files: a path in, a hash of its bytes out, cached by path, size and modification time."""

import contextlib
import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_CACHED_FROM_BYTES = 1 << 24  # smaller files are hashed faster than a cache is read


def digest(value: Any) -> str:
    """Sixteen hexadecimal digits that stand for a JSON-able value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def hash_files(paths: Iterable[Path], cache: Path | None = None) -> str:
    """One hash for the bytes of several files, in the order given; their names and places do not count."""
    return digest(file_hashes(paths, cache))


def file_hashes(paths: Iterable[Path], cache: Path | None = None) -> list[str]:
    """The SHA-256 of each file; that of a large one comes from the cache as long as its size and time are the same."""
    known = {} if cache is None else read_cache(cache)
    before, hashes = len(known), []
    for path in paths:
        stat = path.stat()
        label = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
        if label not in known or stat.st_size < _CACHED_FROM_BYTES:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            hashes.append(content)
            if stat.st_size >= _CACHED_FROM_BYTES:
                known[label] = content
        else:
            hashes.append(known[label])
    if cache is not None and len(known) > before:
        write_cache(cache, known)
    return hashes


def write_whole(path: Path, text: str) -> None:
    """Write a small file beside its place and rename it there: a reader sees all of it or the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with parts.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(parts, path)
    finally:
        parts.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------------------------- seals


def write_sealed(path: Path, record: Mapping[str, Any], in_lines: bool = False) -> None:
    """Write a record whole, with a digest of all that it says, so that a flipped bit in it is seen.

    Args:
        path: where.
        record: plain values.
        in_lines: one value a line, for people; that takes ten times as long to write.
    """
    write_whole(path, _sealed(json.loads(json.dumps(record, allow_nan=False)), in_lines))


def _sealed(record: Mapping[str, Any], in_lines: bool = False) -> str:
    indent = 1 if in_lines else None
    return json.dumps({**record, "seal": digest(record)}, indent=indent, separators=(",", ": "))


def read_sealed(path: Path) -> dict[str, Any]:
    """A record as it was written, without its seal; those of older versions have none.

    Raises:
        ValueError: it is no record, or not the one that was sealed.
        FileNotFoundError: it is not there.
    """
    text = path.read_text(encoding="utf-8")
    record = json.loads(text)
    if not isinstance(record, dict) or not record:
        raise ValueError("it is no record")
    name, last = record.popitem()
    # All of the text is compared: two spellings of one number may have the same digest. And a last value that is the
    # seal of all before it is one whatever its name: that is where a bit may have flipped. On one line, because the
    # standard library writes indented JSON ten times slower; no string of JSON holds the line breaks that go.
    on_one_line = re.sub(r"\n *", "", text)
    if on_one_line != _sealed(record) and (name == "seal" or last == digest(record)):
        raise ValueError("it has changed since it was written")
    return record if name == "seal" else {**record, name: last}


# ------------------------------------------------------------------------------------------------------------ caches


def read_cache(path: Path) -> dict[str, Any]:
    """What a cache remembers; nothing where it is not there or harmed, for it can be found out again."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_cache(path: Path, known: Mapping[str, Any]) -> None:
    """Remember, where the disk has room and the folder may be written; else it is found out again next time."""
    with contextlib.suppress(OSError):
        write_whole(path, json.dumps(known, indent=0))
