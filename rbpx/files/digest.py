"""Identity of files: a path in, a hash of its bytes out, cached by path, size and modification time."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rbpx.files.atomic import atomic_write_text

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
        atomic_write_text(path, json.dumps(known, indent=0), durable=False)
