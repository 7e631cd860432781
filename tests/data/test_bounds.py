"""Texts that explode: reading stops at the bound, in one line, wherever the bytes are packed."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from rbpx.config.options import Chunk
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import read_file
from rbpx.errors import RbpxError

MIB = 2**20
SMALL = DatasetConfig(row_mib=1, file_mib=3)


def gzipped(path: Path, *pieces: tuple[bytes, int]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for piece, times in pieces:
            for _ in range(times):
                file.write(piece)
    return path


A_MIB = b"a" * MIB
BOMBS = {
    "a.jsonl.gz": ((b'{"text": "', 1), (A_MIB, 60), (b'"}\n', 1)),
    "a.csv.gz": ((b"text\n", 1), (A_MIB, 60)),
    "quoted.csv.gz": ((b'text\n"', 1), ((b"a" * 1023 + b"\n") * 1024, 60), (b'"\n', 1)),
    "a.txt.gz": ((A_MIB, 60),),
    "a.json.gz": ((b'[{"text": "', 1), (A_MIB, 60), (b'"}]', 1)),
    "rows.jsonl.gz": ((b'{"text": "' + b"a" * 100_000 + b'"}\n', 600),),
    "rows.csv.gz": ((b"text\n", 1), (b"a" * 100_000 + b"\n", 600)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_reading_stops_at_the_bound(name: str, tmp_path: Path) -> None:
    path = gzipped(tmp_path / name, *BOMBS[name])
    tracemalloc.start()
    try:
        with pytest.raises(RbpxError) as caught:
            read_file(path, SMALL)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert "dataset.row_mib" in str(caught.value) or "dataset.file_mib" in str(caught.value)
    assert peak < 20 * MIB, "a third of what the file holds"


def test_a_row_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": "a" * n}) + "\n" for n in (5, 2 * MIB, 5)))
    with pytest.raises(RbpxError, match=r"row 2 of .*a\.jsonl \(line 2\) holds more than 1 MiB"):
        read_file(path, SMALL)


def test_what_is_just_within_the_bounds_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * MIB)
    assert len(read_file(tmp_path / "a.txt", SMALL)[0][1]) == MIB
    (tmp_path / "a.txt").write_text("a" * MIB + "b")
    with pytest.raises(RbpxError, match="more than 1 MiB"):
        read_file(tmp_path / "a.txt", SMALL)


def test_a_large_book_is_read_where_its_lines_are_the_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(("a" * 99 + "\n") * 40_000)
    lines = read_file(tmp_path / "a.txt", DatasetConfig(row_mib=1, chunk=Chunk.line))
    assert len(lines) == 40_000
    with pytest.raises(RbpxError, match=r"row a\.txt:1 of .* holds more than 1 MiB"):
        read_file(tmp_path / "a.txt", DatasetConfig(row_mib=1, chunk=Chunk.paragraph))
