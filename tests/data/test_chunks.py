"""dataset.chunk: the paragraphs or lines of a text as documents."""

import json
from pathlib import Path

import pytest

from rbpx.config.options import Chunk
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import read_file

TEXT = "\n  One line,\nand another.\n\n \t\nA paragraph.\n\n\nThe last\u2028one"


def cut(path: Path, chunk: str, **rules: object) -> list[tuple[str, str]]:
    return list(read_file(path, DatasetConfig(chunk=Chunk(chunk), **rules)))  # type: ignore[arg-type]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_paragraphs_are_the_blocks_between_blank_lines_named_by_their_first_line(newline: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(TEXT.replace("\n", newline).encode())
    first = f"  One line,{newline}and another."
    expected = [("notes.txt:2", first), ("notes.txt:6", "A paragraph."), ("notes.txt:9", "The last\u2028one")]
    assert cut(path, "paragraph") == expected
    assert cut(path, "line") == [("notes.txt:2", "  One line,"), ("notes.txt:3", "and another."), *expected[1:]]
    assert cut(path, "none") == [("notes.txt", TEXT.replace("\n", newline))]


def test_rows_of_json_lines_are_cut_each_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("a\n\nb", "c", "\n\n")))
    assert cut(path, "paragraph") == [("1:1", "a"), ("1:3", "b"), ("2:1", "c")]


def test_the_least_length_is_that_of_a_chunk(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("# heading\n\nlong enough to stay\n\nshort\n")
    assert cut(path, "paragraph", longer_than=10) == [("notes.txt:3", "long enough to stay")]
