"""Digests of files: those of large ones are remembered until they change, those of small ones are not."""

import hashlib
import os
from pathlib import Path

import pytest

from rbpx.files.digest import hash_files


def test_large_files_are_hashed_once_until_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cache = tmp_path / "large", tmp_path / "store" / "hashes.json"
    path.write_bytes(bytes(17 << 20))
    opened: list[str] = []
    plain = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, kind: opened.append(file.name) or plain(file, kind))
    first = hash_files([path], cache)
    assert hash_files([path], cache) == first == hash_files([path], None)
    assert len(opened) == 2, "once for the cache, once without one"
    with path.open("r+b") as file:
        file.write(b"x")  # the size stays
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))
    assert hash_files([path], cache) != first
    assert len(opened) == 3


def test_a_small_file_is_read_each_time_whatever_its_times_say(tmp_path: Path) -> None:
    path, cache = tmp_path / "small", tmp_path / "hashes.json"
    path.write_bytes(b"a")
    before, stat = hash_files([path], cache), path.stat()
    path.write_bytes(b"b")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert hash_files([path], cache) != before
    assert not cache.exists(), "nothing to remember"


def test_the_order_of_files_counts(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    one, two = tmp_path / "a", tmp_path / "b"
    assert hash_files([one, two]) != hash_files([two, one])
    assert hash_files([one]) != hash_files([one, one])
