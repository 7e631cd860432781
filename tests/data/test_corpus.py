"""Documents: every kind of source as records, what is wrong with a file said by row, the draw as `datasets` does it."""

import csv
import gzip
import hashlib
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
from rbpx.errors import RbpxError

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


def write_table(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(RECORDS), path)


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
    "a.csv.gz": lambda path: (write_csv(path, RECORDS), path.write_bytes(gzip.compress(path.read_bytes()))),
    "a.parquet": write_table,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_records_numbered_from_one(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    assert list(read_file(tmp_path / name)) == TEXTS


@pytest.mark.parametrize("name", WRITERS)
def test_fields_are_joined_by_newlines_in_the_order_asked(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    assert list(read_file(tmp_path / name, DatasetConfig(fields=["more", "text"])))[2] == (
        "3",
        '3\nthree "quoted", and a comma',
    )


def test_humaneval_is_read_as_it_is_published(shared_data: Path) -> None:
    path = shared_data / "data" / "HumanEval.jsonl.gz"
    texts = read_file(path, DatasetConfig(fields=["prompt", "canonical_solution"]))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        published = [json.loads(line) for line in lines]
    assert len(texts) == len(published) == 164
    assert [text for _, text in texts] == [f"{p['prompt']}\n{p['canonical_solution']}" for p in published]


def test_an_unicode_line_separator_inside_a_text_starts_no_new_row(tmp_path: Path) -> None:
    text = "one\u2028line\x85only"
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}, ensure_ascii=False) + "\n", encoding="utf-8")
    assert list(read_file(tmp_path / "a.jsonl")) == [("1", text)]


def test_a_csv_keeps_quoted_newlines_of_either_kind(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'id,text\r\n1,"first\nsecond\r\nthird"\r\n2,"say ""yes"""\r\n')
    assert list(read_file(tmp_path / "a.csv")) == [("1", "first\nsecond\r\nthird"), ("2", 'say "yes"')]


def test_a_csv_field_may_be_longer_than_the_128_kib_of_the_csv_module(tmp_path: Path) -> None:
    long = "word " * 40_000
    write_csv(tmp_path / "a.csv", [{"text": long}, {"text": "short"}])
    assert list(read_file(tmp_path / "a.csv")) == [("1", long), ("2", "short")]


def test_a_csv_saved_by_a_spreadsheet_begins_with_a_byte_order_mark_that_is_no_text(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", RECORDS, encoding="utf-8-sig")
    assert list(read_file(tmp_path / "a.csv")) == TEXTS


def test_a_single_json_object_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(RECORDS[0]))
    assert list(read_file(tmp_path / "a.json")) == [("1", "one")]


@pytest.mark.parametrize("name", ["a.txt", "README", "thesis.tex", "a.txt.gz"])
def test_any_other_file_is_one_text_to_the_last_byte(name: str, tmp_path: Path) -> None:
    text = " Grüße\r\n\r\n東京 {not: json}\n"
    raw = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    assert list(read_file(tmp_path / name)) == [(name, text)]


# --------------------------------------------------------------------------------------------------- what is wrong


def complaint(path: Path, fields: list[str] | None = None) -> str:
    with pytest.raises(RbpxError) as caught:
        read_file(path, DatasetConfig(fields=fields or ["text"]))
    line = str(caught.value)
    assert "\n" not in line, "an error is one line"
    assert str(path) in line, "an error says which file"
    return line


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "is not a file" in complaint(tmp_path / "nosuch.jsonl")
    assert "is not a file" in complaint(tmp_path)  # a folder


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"body": "no such field"}, ["no field 'text'", "it has: body", "dataset.fields"]),
        ({"text": None}, ["null in field 'text'", "leave the row out"]),
        ({"text": float("nan")}, ["nan in field 'text'"]),
        ({"text": 5}, ["5 in field 'text', not a text", "quotes"]),
        ({"text": True}, ["True in field 'text', not a text"]),
        ({"text": ["a list"]}, ["in field 'text', not a text"]),
    ],
    ids=["absent", "null", "NaN", "5", "true", "[]"],
)
def test_a_row_without_text_in_a_field_is_named_with_what_it_has(row: Any, says: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [{"text": "fine"}, {"text": "too"}, row]))
    line = complaint(tmp_path / "a.jsonl")
    assert f"row 3 of {tmp_path / 'a.jsonl'} (line 3) has " in line
    assert [part for part in says if part not in line] == []


def test_a_csv_row_of_too_many_empty_cells_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,fine\n\n,,\n2,too\n")
    line = complaint(tmp_path / "a.csv")
    assert f"row 2 of {tmp_path / 'a.csv'} (line 4)" in line
    assert "3 cells where the header has 2" in line


def test_the_field_that_is_missing_is_named_among_several(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet")
    assert "'answer'" in complaint(tmp_path / "a.parquet", ["text", "answer"])


def test_a_csv_row_that_is_too_short_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,fine\n2\n")
    assert "row 2 " in complaint(tmp_path / "a.csv")
    assert "1 cell where the header has 2" in complaint(tmp_path / "a.csv")


@pytest.mark.parametrize("row", ['"text"', "[1, 2]", "7", "null"])
def test_a_row_that_is_no_record_is_named(row: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n' + row + "\n")
    assert "row 2 " in complaint(tmp_path / "a.jsonl")
    (tmp_path / "a.json").write_text('[{"text": "fine"}, {"text": "fine"}, ' + row + "]")
    assert "row 3 " in complaint(tmp_path / "a.json")


def test_a_broken_line_of_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n{"text": "fine"}\n{"text": broken\n')
    complaint(tmp_path / "a.jsonl")


def test_a_broken_line_of_json_is_named_by_its_row(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n{"text": "fine"}\n{"text": broken\n')
    line = complaint(tmp_path / "a.jsonl")
    assert "row 3 " in line
    assert "(line 3)" in line


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    for name in ("a.txt", "a.jsonl", "a.csv"):
        (tmp_path / name).write_bytes('{"text": "Grüße"}'.encode("latin-1"))
        assert "utf-8" in complaint(tmp_path / name)


def test_a_file_that_is_no_gzip_although_its_name_says_so_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(LINES)
    assert "gzip" in complaint(tmp_path / "a.jsonl.gz")


def test_a_gzip_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(LINES)[:-20])
    complaint(tmp_path / "a.jsonl.gz")


def test_a_gzip_file_with_a_damaged_middle_is_refused(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).bytes(4000)  # incompressible, so that the damage is not in a header
    raw = bytearray(gzip.compress(b'{"text": "' + noise.hex().encode() + b'"}\n'))
    raw[40:80] = bytes(255 - byte for byte in raw[40:80])
    (tmp_path / "a.jsonl.gz").write_bytes(raw)
    complaint(tmp_path / "a.jsonl.gz")


@pytest.mark.parametrize("keep", [0, 4, 200], ids=["empty", "magic only", "cut short"])
def test_a_broken_parquet_file_is_refused(keep: int, tmp_path: Path) -> None:
    write_table(tmp_path / "whole.parquet")
    (tmp_path / "a.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:keep])
    complaint(tmp_path / "a.parquet")


# ------------------------------------------------------------------------------------------------------- built in


def test_the_standard_library_is_the_modules_that_python_says_it_has() -> None:
    found = read_stdlib()
    names = [name for name, _ in found]
    assert names == sorted(names, key=lambda name: Path(name).parts)
    assert len(set(names)) == len(names)
    assert {"argparse.py", "json/decoder.py", "asyncio/base_events.py", "email/mime/text.py"} <= set(names)
    root = Path(sysconfig.get_paths()["stdlib"])
    by_name = dict(found)
    assert by_name["argparse.py"] == (root / "argparse.py").read_bytes().decode()
    assert 500 < len(found) < 1500
    excluded = {"test", "tests", "idlelib", "lib2to3", "distutils", "pydoc_data", "site-packages", "__pycache__"}
    assert not [name for name in names if excluded & set(Path(name).parts)]


def test_the_standard_library_holds_nothing_that_was_written_when_this_python_was_built() -> None:
    tops = {Path(name).parts[0].removesuffix(".py") for name, _ in read_stdlib()}
    assert tops - set(sys.stdlib_module_names) <= {"__hello__", "__phello__"}


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


@pytest.mark.parametrize(
    "root",
    [
        pytest.param(path, id=path.parent.parent.name)
        for version in ("3.11", "3.12", "3.13")
        for path in sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/lib/python{version}"))
    ],
)
def test_the_standard_library_of_every_python_installed_beside_this_one_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_paths", lambda *args, **kwargs: {"stdlib": str(root)})
    assert "argparse.py" in dict(read_stdlib())


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


def shuffled_by_hand(n: int, seed: int) -> list[int]:
    """Fisher-Yates from the top, each index by masked rejection from 32-bit halves of PCG64, the low half first."""
    stream = np.random.PCG64(seed)
    halves: list[int] = []

    def below_or_equal(top: int) -> int:
        mask = (1 << top.bit_length()) - 1
        while True:
            if not halves:
                word = int(stream.random_raw())
                halves.extend((word >> 32, word & 0xFFFFFFFF))
            value = halves.pop() & mask
            if value <= top:
                return value

    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below_or_equal(i)
        order[i], order[j] = order[j], order[i]
    return order


@pytest.mark.parametrize(("n", "seed"), [(1, 42), (2, 42), (164, 42), (1500, 42), (164, 7)])
def test_the_draw_is_numpys_permutation_written_out(n: int, seed: int) -> None:
    # datasets.Dataset.shuffle(seed) selects numpy.random.default_rng(seed).permutation(len(self)).
    drawn = draw(numbered(n), n, seed)
    assert [d.source_id for d in drawn] == [f"my_name-train_{i}" for i in shuffled_by_hand(n, seed)]


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

    different = [
        hashed("a", "b"),
        hashed("b", "a"),
        hashed("a", "B"),
        hashed("ab"),
        hashed("ab", ""),
        hashed("a"),
        hashed(),
    ]
    assert len(set(different)) == len(different)
    assert hashed("a", "b", source_id="another file") == hashed("a", "b")
