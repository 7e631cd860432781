"""A folder or a glob as dataset.path: which files are read, under which names, and when they are another text."""

import gzip
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.config.options import Chunk
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import read_path
from rbpx.data.samples import sample_here
from rbpx.errors import RbpxError
from rbpx.store.store import Store


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    folder = tmp_path / "letters.v1"
    for name, text in (("b.txt", "two\n\nthree"), ("a.txt", "one"), ("old/c.TXT", "four"), ("a.b/[1].txt", "five")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for hidden in (".DS_Store", ".git/x.txt"):
        (folder / hidden).parent.mkdir(exist_ok=True)
        (folder / hidden).write_bytes(b"\xff")
    return folder


def read(path: Path | str, **rules: object) -> list[tuple[str, object]]:
    return list(read_path(Path(path), DatasetConfig(**rules)))  # type: ignore[arg-type]


def test_each_text_of_a_folder_has_the_name_of_its_file_in_it_and_hidden_ones_are_left_out(letters: Path) -> None:
    every = [("a.b/[1].txt", "five"), ("a.txt", "one"), ("b.txt", "two\n\nthree"), ("old/c.TXT", "four")]
    assert read(letters) == every
    assert read(letters / "*.txt") == every[1:3]
    assert read(letters / "**" / "*.txt") == every[:3]
    assert read(letters / "a*" / "*") == every[:1]
    assert read(letters / "a.b" / "[1].txt") == [("[1].txt", "five")], "the name of a file that is there is no pattern"


def test_notes_in_markdown_and_plain_texts_are_one_folder_of_texts(tmp_path: Path) -> None:
    texts = {"a.md": "# one", "b.txt": "two", "c.rst": "three"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert read(tmp_path) == list(texts.items())


def test_paragraphs_are_named_by_their_file_and_line_so_that_they_are_resampled_with_it(letters: Path) -> None:
    named = [("a.b/[1].txt:1", "five"), ("a.txt:1", "one"), ("b.txt:1", "two"), ("b.txt:3", "three")]
    assert read(letters, chunk=Chunk.paragraph) == [*named, ("old/c.TXT:1", "four")]


def test_rows_and_articles_are_named_by_their_file_and_what_they_are_called_there(tmp_path: Path) -> None:
    for name in ("x", "y"):
        rows = [{"text": f"{name}{row}\n\nrest"} for row in (1, 2)]
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.raw").write_text(f" = Title {name} = \n\ntext\n")
    for kind in ("jsonl.gz", "parquet"):
        each = [(f"{name}.{kind}/{row}", f"{name}{row}\n\nrest") for name in ("x", "y") for row in (1, 2)]
        assert read(tmp_path / f"*.{kind}") == each
    assert read(tmp_path / "x.jsonl*", chunk=Chunk.line)[1] == ("x.jsonl.gz/1:3", "rest")
    of_x, of_y = read(tmp_path / "*.raw", articles=True)
    assert (of_x[0], of_y[0]) == ("x.raw/Title x", "y.raw/Title y")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("empty", "empty is a folder without files; give"),
        ("hidden", "hidden is a folder without files but 1 hidden one; give"),
        ("*.csv", "*.csv matches no file; give"),
        ("nosuch/*.txt", "*.txt matches no file; give"),
        ("mixed", "has files of several kinds: 2 .txt (a.txt), 1 .html (b.html); name one kind: "),
        *([("mixed/a**", "is no glob: ")] if sys.version_info < (3, 13) else []),  # later it is that of a*
        ("latin", "latin/b.txt is not UTF-8 ("),
        ("broken", "broken/b.jsonl (line 2): not JSON"),
    ],
)
def test_what_cannot_be_read_as_one_text_is_said_in_a_line(asked: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "empty" / "within").mkdir(parents=True)
    contents = {"hidden/.a.txt": b"a", "mixed/a.txt": b"a", "mixed/b.txt.gz": b"b", "mixed/b.html": b"c"}
    contents |= {"latin/a.txt": b"a", "latin/b.txt": "ü".encode("latin-1")}
    contents |= {"broken/a.jsonl": b'{"text": "a"}', "broken/b.jsonl": b'{"text": "a"}\n{'}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RbpxError) as caught:
        read(tmp_path / asked)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_added_changed_or_renamed_makes_another_text(letters: Path, tmp_path: Path) -> None:
    def text_hash() -> str:
        sample = sample_here(DatasetConfig(path=str(letters)), 10, 42, Store(tmp_path / "store"))
        return sample.text_hash

    hashes = [text_hash()]
    (letters / ".more.txt").write_text("hidden")
    assert text_hash() == hashes[0]
    (letters / "d.txt").write_text("six")
    hashes.append(text_hash())
    (letters / "a.txt").write_text("One")
    hashes.append(text_hash())
    (letters / "a.txt").rename(letters / "aa.txt")
    assert len({*hashes, text_hash()}) == 4


def test_a_dataset_has_the_name_of_its_file_or_folder(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(letters)
    for path in (letters, f"{letters}/", letters / "*.txt", letters / "**" / "*", ".", "*.txt", "old/.."):
        assert DatasetConfig(path=str(path)).name == "letters.v1", path
    assert DatasetConfig(path=str(letters), chunk=Chunk.line).name == "letters.v1-line"
    assert DatasetConfig(path="old/*/x.txt").name == "old"
    files = {"notes.jsonl": "notes", "a/notes.jsonl.gz": "notes", "wiki.test.raw": "wiki.test", ".hidden": ".hidden"}
    assert {path: DatasetConfig(path=path).name for path in files} == files
    assert DatasetConfig(path="notes.jsonl", name="mine").name == "mine"
