"""Documents: every kind of source as records, what is wrong with a file said by row, the draw as `datasets` does it."""

import csv
import gzip
import hashlib
import io
import json
import pydoc
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import Document, draw, read_file, read_pydoc, read_source, read_stdlib, text_hash
from rbpx.data.samples import keep_sample
from rbpx.errors import RbpxError
from rbpx.store.store import Store

RECORDS = [
    {"text": "one", "more": "1", "count": 1},
    {"text": "zwei Zeilen\nGrüße, 東京", "more": "2", "count": 2},
    {"text": 'three "quoted", and a comma', "more": "3", "count": 3},
    {"text": "", "more": "4", "count": 4},
]
LINES = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS).encode()
TEXTS = [("1", "one"), ("2", "zwei Zeilen\nGrüße, 東京"), ("3", 'three "quoted", and a comma'), ("4", "")]


def write_csv(path: Path, records: list[dict[str, Any]], encoding: str = "utf-8") -> None:
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def parquet() -> bytes:
    pq.write_table(pa.Table.from_pylist(RECORDS), file := io.BytesIO())
    return file.getvalue()


WRITERS = {
    "a.jsonl": lambda path: path.write_bytes(LINES),
    "upper.JSONL": lambda path: path.write_bytes(LINES),
    "two.dots.jsonl": lambda path: path.write_bytes(LINES),
    "crlf.jsonl": lambda path: path.write_bytes(LINES.replace(b"}\n", b"}\r\n")),
    "no-newline-at-the-end.jsonl": lambda path: path.write_bytes(LINES.removesuffix(b"\n")),
    "a.jsonl.gz": lambda path: path.write_bytes(gzip.compress(LINES)),
    "two-members.jsonl.gz": lambda path: path.write_bytes(gzip.compress(LINES[:50]) + gzip.compress(LINES[50:])),
    "a.json": lambda path: path.write_text(json.dumps(RECORDS, indent=1), encoding="utf-8"),
    "a.csv": lambda path: write_csv(path, RECORDS),
    "byte-order-mark.csv": lambda path: write_csv(path, RECORDS, encoding="utf-8-sig"),  # as spreadsheets save it
    "a.csv.gz": lambda path: (write_csv(path, RECORDS), path.write_bytes(gzip.compress(path.read_bytes()))),
    "a.parquet": lambda path: path.write_bytes(parquet()),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_records_numbered_from_one_fields_joined_as_asked(
    name: str, tmp_path: Path
) -> None:
    WRITERS[name](tmp_path / name)
    assert list(read_file(tmp_path / name)) == TEXTS
    joined = read_file(tmp_path / name, DatasetConfig(fields=["more", "text"]))
    assert list(joined)[2] == ("3", '3\nthree "quoted", and a comma')


WHOLE = " Grüße\r\n\r\n東京 {not: json}\n"
# What a file holds -> its records: no line separator within a text starts a row, quotes keep newlines of either kind, a
# cell may be longer than the 128 KiB of the csv module, an object is one document, any other file one text to its end.
ODD: dict[str, tuple[bytes, list[tuple[str, str]]]] = {
    "separators.jsonl": ('{"text": "one\u2028line\x85only"}\n'.encode(), [("1", "one\u2028line\x85only")]),
    "quoted.csv": (
        b'id,text\r\n1,"first\nsecond\r\nthird"\r\n2,"say ""yes"""\r\n',
        [("1", "first\nsecond\r\nthird"), ("2", 'say "yes"')],
    ),
    "long.csv": (b"text\n" + b"word " * 40_000 + b"\nshort\n", [("1", "word " * 40_000), ("2", "short")]),
    "object.json": (json.dumps(RECORDS[0]).encode(), [("1", "one")]),
    **{name: (WHOLE.encode(), [(name, WHOLE)]) for name in ("a.txt", "README", "thesis.tex")},
    "a.txt.gz": (gzip.compress(WHOLE.encode()), [("a.txt.gz", WHOLE)]),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_in_a_file_is_read_as_it_is_meant(name: str, tmp_path: Path) -> None:
    content, records = ODD[name]
    (tmp_path / name).write_bytes(content)
    assert list(read_file(tmp_path / name)) == records


# --------------------------------------------------------------------------------------------------- what is wrong


def complaint(path: Path, fields: list[str] | None = None) -> str:
    with pytest.raises(RbpxError) as caught:
        read_file(path, DatasetConfig(fields=fields or ["text"]))
    line = str(caught.value)
    assert "\n" not in line, "an error is one line"
    assert str(path) in line, "an error says which file"
    return line.replace(str(path), "FILE")


FINE = '{"text": "fine"}\n'
PACKED = gzip.compress(b'{"text": "' + np.random.default_rng(0).bytes(4000).hex().encode() + b'"}\n')
WRONG: list[tuple[str, str | bytes, str]] = [
    ("short.csv", "id,text\n1,fine\n2\n", "row 2 of FILE (line 3): 1 cell where the header has 2"),
    ("long.csv", "id,text\n1,fine\n\n,,\n2,too\n", "row 2 of FILE (line 4): 3 cells where the header has 2"),
    (
        "absent.jsonl",
        FINE + '{"body": "x"}',
        "row 2 of FILE (line 2) has no field 'text' (it has: body); name the fields, as in **{\"dataset.fields\": "
        '["body"]}',
    ),
    (
        "null.jsonl",
        FINE + '{"text": null}',
        "has null in field 'text', not a text; put it in quotes, leave the row out",
    ),
    ("nan.jsonl", FINE + '{"text": NaN}', "has nan in field 'text'"),
    ("five.jsonl", FINE + '{"text": 5}', "has 5 in field 'text', not a text; put it in quotes"),
    ("true.jsonl", FINE + '{"text": true}', "has True in field 'text', not a text"),
    ("list.jsonl", FINE + '{"text": ["a list"]}', "in field 'text', not a text"),
    *((f"{n}.jsonl", FINE + row + "\n", "row 2 of FILE") for n, row in enumerate(('"text"', "[1, 2]", "7", "null"))),
    *((f"{n}.json", f"[{FINE}, {row}]", "row 2 of FILE") for n, row in enumerate(('"text"', "[1, 2]", "7", "null"))),
    ("broken.jsonl", FINE + FINE + '{"text": broken\n', "row 3 of FILE (line 3)"),
    *((f"latin{end}", '{"text": "Grüße"}'.encode("latin-1"), "utf-8") for end in (".txt", ".jsonl", ".csv")),
    ("no-gzip.jsonl.gz", LINES, "gzip"),
    ("cut-short.jsonl.gz", gzip.compress(LINES)[:-20], "cannot be read"),
    ("damaged.jsonl.gz", PACKED[:40] + bytes(255 - byte for byte in PACKED[40:80]) + PACKED[80:], "cannot be read"),
    *((f"{n}.parquet", parquet()[:n], "cannot be read") for n in (0, 4, 200)),
]


@pytest.mark.parametrize(("name", "content", "says"), WRONG, ids=[name for name, *_ in WRONG])
def test_a_file_that_cannot_be_read_is_one_line_that_names_its_row(
    name: str, content: str | bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert says in complaint(tmp_path / name)


def test_what_is_not_there_is_named_a_file_or_a_field_among_several(tmp_path: Path) -> None:
    assert "is not a file" in complaint(tmp_path / "nosuch.jsonl")
    assert "is not a file" in complaint(tmp_path)  # a folder
    (tmp_path / "a.parquet").write_bytes(parquet())
    assert "'answer'" in complaint(tmp_path / "a.parquet", ["text", "answer"])


# ------------------------------------------------------------------------------------------------------- built in


def test_the_standard_library_is_the_modules_that_python_says_it_has() -> None:
    found = read_stdlib()
    names = [name for name, _ in found]
    assert names == sorted(names, key=lambda name: Path(name).parts)
    assert {"argparse.py", "json/decoder.py", "asyncio/base_events.py", "email/mime/text.py"} <= set(names)
    assert dict(found)["argparse.py"] == (Path(sysconfig.get_paths()["stdlib"]) / "argparse.py").read_text()
    assert 500 < len(found) < 1500
    tops = {Path(name).parts[0].removesuffix(".py") for name in names}
    assert tops - set(sys.stdlib_module_names) <= {"__hello__", "__phello__"}, "none of when this Python was built"


@pytest.fixture
def planted_stdlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "lib" / "python3.99"
    monkeypatch.setattr(sysconfig, "get_paths", lambda *args, **kwargs: {"stdlib": str(root)})
    files = {
        "os.py": b"# plain\n",
        "latin.py": "# -*- coding: latin-1 -*-\n# Grüße\n".encode("latin-1"),
        "second_line.py": "#!/usr/bin/python\n# vim: set fileencoding=koi8-r :\n# Привет\n".encode("koi8-r"),
        "marked.py": "# Grüße\n".encode("utf-8-sig"),
        "windows.py": b"a = 1\r\nb = 2\r\n",
        "json/__init__.py": b"# package\n",
        "json.py": b"# beside it\n",
        "json/tests/test_json.py": b"# no library code",
        "test/test_os.py": b"# no library code",
        "test/bad_coding.py": b"# -*- coding: nosuch -*-\n",
        "idlelib/run.py": b"# no library code",
        "lib2to3/tests/data/bom.py": b"\xff\xfe\x00",
        "pydoc_data/topics.py": b"# no library code",
        "site-packages/numpy/__init__.py": b"# no library code",
        "dist-packages/apt.py": b"# no library code",
        "__pycache__/os.py": b"# no library code",
        "_sysconfigdata__linux_x86_64-linux-gnu.py": b"# no library code",
        "os.txt": b"# no module",
        "lib-dynload/x.so": b"\x00",
    }
    for name, raw in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(raw)
    return root


def test_tests_and_installed_packages_are_no_standard_library_and_encodings_are_honoured(planted_stdlib: Path) -> None:
    assert list(read_stdlib()) == [
        ("json/__init__.py", "# package\n"),
        ("json.py", "# beside it\n"),
        ("latin.py", "# -*- coding: latin-1 -*-\n# Grüße\n"),
        ("marked.py", "# Grüße\n"),
        ("os.py", "# plain\n"),
        ("second_line.py", "#!/usr/bin/python\n# vim: set fileencoding=koi8-r :\n# Привет\n"),
        ("windows.py", "a = 1\nb = 2\n"),
    ]


def test_pydoc_gives_the_topics_that_help_prints() -> None:
    found = read_pydoc()
    names = [name for name, _ in found]
    assert names == sorted(names)
    assert {"assert", "lambda", "typesseq"} <= set(names)
    assert 60 < len(found) < 120
    assert all(text.strip() for _, text in found)
    assert pydoc.Helper.topics["CLASSES"][0] in names
    assert dict(found)["lambda"].startswith("Lambdas\n*******\n")


def test_a_path_stands_in_for_the_built_in_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    assert list(read_source("stdlib", tmp_path / "a.txt")) == [("a.txt", "mine")]
    assert list(read_source("pydoc", None)) == list(read_pydoc())


# ------------------------------------------------------------------------------------------------------- the draw


def numbered(n: int) -> list[tuple[str, str]]:
    return [(f"my_name-train_{i}", f"text {i}") for i in range(n)]


def test_the_draw_is_the_one_that_the_tests_of_datasets_state() -> None:
    # huggingface/datasets, tests/test_arrow_dataset.py, test_shuffle: 30 rows, seed 1234
    shuffled = draw(numbered(30), 30, 1234)
    assert len(shuffled) == 30
    assert shuffled[0].source_id == "my_name-train_28"
    assert shuffled[2].source_id == "my_name-train_10"


@pytest.mark.parametrize("limit", [1, 5, 164, 1000])
def test_a_limit_keeps_the_first_of_the_whole_shuffle(limit: int) -> None:
    whole = draw(numbered(164), 164, 42)
    drawn = draw(numbered(164), limit, 42)
    assert drawn == whole[:limit]
    assert [d.doc_id for d in drawn] == list(range(min(limit, 164)))
    assert all(d.text == d.source_id.replace("my_name-train_", "text ") for d in drawn)


def test_the_text_hash_is_of_the_lengths_and_bytes_in_their_order() -> None:
    texts = ["one", "zwei Grüße", ""]
    framed = b"".join(len(t.encode()).to_bytes(8, "big") + t.encode() for t in texts)
    documents = [Document(i, "somewhere", t) for i, t in enumerate(texts)]
    assert text_hash(documents) == hashlib.sha256(framed).hexdigest()[:16]


def test_the_text_hash_changes_with_order_content_and_borders_but_not_with_names() -> None:
    def hashed(*texts: str, source_id: str = "x") -> str:
        return text_hash(Document(i, source_id, text) for i, text in enumerate(texts))

    different = [("a", "b"), ("b", "a"), ("a", "B"), ("ab",), ("ab", ""), ("a",), ()]
    assert len({hashed(*texts) for texts in different}) == len(different)
    assert hashed("a", "b", source_id="another file") == hashed("a", "b")


def test_a_dataset_of_the_hub_without_a_name_is_refused_before_anything_begins(tmp_path: Path) -> None:
    begun: list[str] = []
    with pytest.raises(RbpxError, match=r"dataset\.hub=ORG/NAME"):
        keep_sample(DatasetConfig(kind="hub", split="test"), 3, 42, Store(tmp_path), begun.append)
    assert not begun
