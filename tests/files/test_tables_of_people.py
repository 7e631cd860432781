"""Tables as their owners have them: what separates columns, encodings, workbooks, commas before decimals, nesting."""

import csv
import io
import json
import sys
import warnings
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.errors import RbpxError
from rbpx.files.cells import large_number, with_point
from rbpx.files.rows import read_rows, read_table
from rbpx.store.imports.chosen_rows import rows_where
from tests.support.imports import bring, found

RUNS = [
    {"model": "a", "S": 60_000_000, "loss_nats": 3.25, "note": "x, y"},
    {"model": "b", "S": 120_000_000, "loss_nats": 2.5, "note": "é; 'ü'"},
]
FRAME = pd.DataFrame(RUNS)


def csv_with(before: str, **how: Any) -> Callable[[Path], Any]:
    return lambda path: path.write_text(before + FRAME.to_csv(index=False, **how), encoding="utf-8")


WRITTEN: dict[str, Callable[[Path], Any]] = {
    "comma.tsv": lambda path: FRAME.to_csv(path, index=False),
    "wide.tsv": lambda path: FRAME.to_csv(path, sep="\t", index=False, encoding="utf-16"),
    "wide.csv.gz": lambda path: FRAME.to_csv(path, index=False, encoding="utf-16"),
    "said.csv": csv_with("sep=;\n", sep=";"),
    "said_other.csv": csv_with('"sep=^"\n', sep="^"),
    "remarks.csv": csv_with("# by hand; in 2026, mostly\n\n#\n", sep=";"),
    "all.csv": csv_with("\n# of us\nsep=,\n# and them\n"),
    "index.csv": lambda path: FRAME.to_csv(path),
    "index.xlsx": lambda path: FRAME.to_excel(path),
    "split.json": lambda path: FRAME.to_json(path, orient="split"),
    "columns.json": lambda path: FRAME.to_json(path),
    "lines.json": lambda path: FRAME.to_json(path, orient="records", lines=True),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_table_is_the_same_however_pandas_wrote_it(name: str, tmp_path: Path) -> None:
    WRITTEN[name](tmp_path / name)
    rows = read_table(tmp_path / name).rows
    assert [{column: str(row.values[column]) for column in FRAME} for row in rows] == [
        {column: str(value) for column, value in run.items()} for run in RUNS
    ]


def test_lines_are_counted_from_the_beginning_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('sep=;\n# x\n"a";"b\nc"\n1;2\n\n3;"4\n5"\n6\n')
    with pytest.raises(RbpxError, match=r"line 9\): 1 cell where the header has 2, separated by ';'"):
        read_rows(path)
    path.write_text(path.read_text().removesuffix("6\n"))
    assert [row.line for row in read_rows(path).rows] == [5, 7]


# As it is written -> the names of its columns.
HEADINGS = {
    "a.tsv": ("loss, nats, val\tS\n1\t2\n", ("loss, nats, val", "S")),
    "quoted.csv": ('"a;b;c",d\n1,2\n', ("a;b;c", "d")),
    "numbers.csv": ("10;100\n1;2\n", ("10", "100")),
    "one.tsv": ("text\nhello, you\n", ("text",)),
    "one.csv": ("text\nhello; you\n", ("text",)),
    "numbered.jsonl": ('{"a": {"0": 1}}\n{"a": {"1": 2}}\n', ("a.0", "a.1")),
}


@pytest.mark.parametrize(("name", "text", "columns"), [(name, *of) for name, of in HEADINGS.items()], ids=HEADINGS)
def test_a_heading_alone_says_what_separates_columns(
    name: str, text: str, columns: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert read_table(tmp_path / name).columns == columns


CELLS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(",;\t|"),
    st.sampled_from([("a", "b"), ("#", "x y"), ("loss (nats)", "S=1"), ("#", "")]),
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_cells_are_read_as_they_were_written_whatever_separates_them(
    separator: str, heading: tuple[str, str], cells: list[tuple[str, str]], encoding: str
) -> None:
    import tempfile

    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator).writerows([heading, *cells])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.csv"
        path.write_bytes(text.getvalue().encode(encoding))
        assert [tuple(row.values.values()) for row in read_rows(path).rows] == cells


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "two separators": ("a.csv", b"model;loss, nats\n1;2\n", r"separated by ',' or ';'; say so .*, as sep="),
    "its heading a remark": ("a.csv", b"# S,loss_nats\n6e7,3.1\n", r"line 2: numbers name no columns; is '# S,loss"),
    "Latin 1": ("a.csv", "é,b\n1,2\n".encode("latin-1"), r"a\.csv cannot be read: byte 1 is 0xe9.*save it as UTF-8"),
    "UTF-16 without a mark": ("a.tsv", "a\tb\n".encode("utf-16-le"), r"UTF-16 without its byte order mark"),
    "rows of two lengths": ("a.json", b'{"columns": ["a"], "data": [[1, 2]]}', r"not as its tool writes it .*CSV"),
    "a log of numbers": ("a.json", b'{"log_history": [1]}', r"not as its tool writes it .*save it as CSV"),
    "a table in Markdown": ("a.md", b"| a |\n", r"has the suffix '\.md'; known: .*; save it as CSV, or rename"),
    "a table in LaTeX": ("a.tex", b"a & b", r"has the suffix '\.tex'; known: .*; save it as CSV, or rename"),
    "no Parquet": ("a.parquet", b"rbp", r"a\.parquet cannot be read: .*check that it is what its suffix says"),
    "no workbook": ("a.xlsx", b"a,b\n1,2\n", r"a\.xlsx cannot be read: .*zip"),
    "the old Excel": ("a.xls", b"", r"has the suffix '\.xls'; known: .*\.xlsx"),
    "two unnamed columns": ("a.csv", b"Table 1,,\nmodel,S,loss\n", r"two columns without a name.*above the heading"),
    "a path that is a name": ("a.jsonl", b'{"a": {"b": 1}, "a.b": 2}', r"line 1: a\.b is there twice"),
    "paths in another case": ("a.jsonl", b'{"a": {"b": 1, "B": 2}}', r"two columns named 'a\.[bB]'"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "says"), REFUSED.values(), ids=REFUSED)
def test_what_has_two_readings_or_none_is_refused_by_its_cause(
    name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RbpxError, match=says):
        read_table(tmp_path / name)


# ------------------------------------------------------------------------------------------------------------ workbooks


def book(path: Path, **sheets: list[list[Any]]) -> Path:
    written = openpyxl.Workbook()
    written.remove(written.active)
    for title, rows in sheets.items():
        sheet = written.create_sheet(title)
        for row in rows:
            sheet.append(row)
    written.save(path)
    return path


TABLE = [["model", "S"], ["a", 60_000_000], [], ["b", "1.2B"]]


def test_the_sheet_that_holds_something_is_read_and_one_of_several_is_named(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", Empty=[], Runs=TABLE, Other=[])
    assert [(row.line, row.values) for row in read_table(path).rows] == [
        (2, {"model": "a", "S": 60_000_000}), (4, {"model": "b", "S": "1.2B"}),
    ]  # fmt: skip
    path = book(tmp_path / "a.xlsx", Runs=TABLE, Notes=[["of", "2026"], ["b", "c"]])
    with pytest.raises(RbpxError, match=r"2 sheets that hold something; name one by sheet=NAME.*: Runs, Notes"):
        read_table(path)
    assert read_table(path, sheet="Notes").columns == ("of", "2026")
    with pytest.raises(RbpxError, match=r"no sheet runs; name one"):
        read_table(path, sheet="runs")
    with pytest.raises(RbpxError, match=r"has no rows"):
        read_table(book(tmp_path / "b.xlsx", Runs=[]))
    FRAME.to_csv(tmp_path / "a.csv")
    with pytest.raises(RbpxError, match=r"sheet=Runs .*a\.csv has no sheets"):
        read_table(tmp_path / "a.csv", sheet="Runs")


def test_columns_that_are_blank_are_none_and_a_formula_without_its_result_is_refused(tmp_path: Path) -> None:
    gaps = [[], ["model", None, "S"], ["a", None, 1, None], [None, None, 2]]
    table = read_table(book(tmp_path / "a.xlsx", Runs=gaps))
    assert table.columns == ("model", "S")
    assert [row.values for row in table.rows] == [{"model": "a", "S": 1}, {"model": None, "S": 2}]
    with pytest.raises(RbpxError, match=r"line 2: a formula has no result yet"):
        read_table(book(tmp_path / "a.xlsx", Runs=[["model", "S"], ["a", "=60*1000000"]]))


def test_a_workbook_is_read_whole_whatever_else_is_wrong_in_it(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", Runs=TABLE)
    with zipfile.ZipFile(path) as packed:
        parts = {part: packed.read(part) for part in packed.namelist()}
    of_sheet = parts["xl/worksheets/sheet1.xml"]
    validation = b'<extLst><ext uri="{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}"/></extLst></worksheet>'  # openpyxl warns
    parts["xl/worksheets/sheet1.xml"] = of_sheet.replace(b"A1:B4", b"A1:A2").replace(b"</worksheet>", validation)
    with zipfile.ZipFile(path, "w") as packed:
        for part, content in parts.items():
            packed.writestr(part, content)
    with warnings.catch_warnings(action="error"):
        assert [tuple(row.values.values()) for row in read_table(path).rows] == [("a", 60_000_000), ("b", "1.2B")]


def test_a_workbook_holds_no_more_than_it_may_and_says_what_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = book(tmp_path / "a.xlsx", Runs=TABLE)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/media/image1.bin", bytes(2**20))
    assert len(read_rows(path, file_mib=2).rows) == 2
    with pytest.raises(RbpxError, match=r"holds more than 1 MiB once unpacked"):
        read_rows(path, file_mib=1)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(RbpxError, match=r"a\.xlsx needs the package openpyxl: pip install 'rbpx\[excel\]'"):
        read_rows(path)


# ----------------------------------------------------------------------------------------- decimals, and what is nested


@given(st.integers(0, 10**15), st.sampled_from([".", " ", "\u00a0", "\u202f", ""]))
def test_a_comma_before_decimals_is_read_beside_any_mark_between_thousands(hundredths: int, mark: str) -> None:
    whole = f"{hundredths // 100:,}".replace(",", mark)
    assert large_number(with_point(f"{whole},{hundredths % 100:02}")) == Decimal(hundredths) / 100


@pytest.mark.parametrize("cell", ["a,b", "gpt-2, small", "v1.2", "1,2,3", "1,5X", "", "7B", "nan"])
def test_what_is_no_number_with_a_comma_stays_as_it_is(cell: str) -> None:
    assert with_point(cell) == cell


NESTED = [
    {"name": "a", "train": {"lr": 0.1, "data": {"tokens": "1B"}}},
    {"name": "b", "train": {"lr": 0.2, "data": {"tokens": "2B"}}},
    {"name": "c", "train": None},
]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet"])
def test_what_is_nested_is_a_column_by_its_path_also_in_conditions(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(pa.Table.from_pylist(NESTED), path)
    else:
        lines = map(json.dumps, NESTED)
        path.write_text(f"[{','.join(lines)}]" if name == "a.json" else "\n".join(lines))
    table = read_table(path)
    assert {"name", "train.lr", "train.data.tokens"} <= set(table.columns)
    assert table.cells("train.lr") == [0.1, 0.2, None]
    assert table.cells("train.data.tokens") == ["1B", "2B", None]
    for where in ("train.lr > 0.15", '"train.lr" > 0.15', "train.data.tokens = '2B'"):
        assert rows_where(table, where).cells("name") == ["b"], where


# ------------------------------------------------------------------------------------------------- as `import` has them


def test_a_sheet_is_named(cwd: Path, tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", Notes=[["nothing"]], Runs=[list(RUNS[0]), *(list(run.values()) for run in RUNS)])
    bring(path, tmp_path / "store", cwd, "source=x", "family=f", "dataset=c4", "sheet=Runs")
    facts = "model, non_embedding_params, cross_entropy_nats"
    assert found(tmp_path / "store", facts) == [("a", 6e7, 3.25), ("b", 1.2e8, 2.5)]
