"""Identity of files: a path in, a hash of its bytes out, cached by path, size and modification time."""

import hashlib
import json
import os
from collections.abc import Iterable
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
    known: dict[str, str] = json.loads(cache.read_text()) if cache is not None and cache.is_file() else {}
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
    if (
        cache is not None and len(known) > before and os.access(cache.parent, os.W_OK)
    ):  # a store may be for reading only
        write_whole(cache, json.dumps(known, indent=0))
    return hashes


def write_whole(path: Path, text: str) -> None:
    """Write a small file beside its place and rename it there: a reader sees all of it or the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with parts.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(parts, path)
