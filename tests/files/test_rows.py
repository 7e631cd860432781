"""Users' tables are read by one reader: the same rows from each format, and no second reader in the package."""

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbpx.errors import RbpxError
from rbpx.files.cells import is_no_value, large_number, number
from rbpx.files.rows import FORMATS, format_of, read_rows, read_table
from rbpx.store.imports.rules import RULES
from tests.support.tables import write_table

RECORDS = [{"model": " a ", "n": "1", "note": 'x, "y"\nz'}, {"model": "b", "n": "2", "note": ""}]


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    kind = format_of(path)
    plain = path.with_name(f"plain{kind}")
    if kind in (".tsv", ".xlsx"):
        frame = pd.DataFrame(records)
        frame.to_excel(plain, index=False) if kind == ".xlsx" else frame.to_csv(plain, sep="\t", index=False)
    else:
        write_table(plain, records)
    path.write_bytes(gzip.compress(plain.read_bytes()) if path.suffix == ".gz" else plain.read_bytes())
    return path


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.parquet"])
def test_a_packed_file_that_holds_too_much_is_refused(name: str, tmp_path: Path) -> None:
    """A file of a few KiB can hold gigabytes."""
    path = write(tmp_path / name, [{"model": "a", "n": str(n)} for n in range(100)])
    assert len(read_rows(path, file_mib=1).columns) == 2
    write(path, [{"model": "a" * 100, "n": str(n) * 40} for n in range(10_000)])
    with pytest.raises(RbpxError, match=r'holds more than 1 MiB once unpacked; .*"dataset\.file_mib": 2'):
        read_rows(path, file_mib=1)


@pytest.mark.parametrize("name", [f"a{suffix}{packed}" for suffix in FORMATS for packed in ("", ".gz")])
def test_every_format_gives_the_same_rows_plain_or_gzipped(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, RECORDS)
    blank = None if ".xlsx" in name else ""
    written = [{column: cell or blank for column, cell in record.items()} for record in RECORDS]
    assert [row.values for row in read_rows(path).rows] == written, "as they are written"
    table = read_table(path)
    assert [row.values for row in table.rows] == [
        {"model": "a", "n": "1", "note": 'x, "y"\nz'},
        {"model": "b", "n": "2", "note": None},
    ]
    assert table.columns == ("model", "n", "note")
    assert table.cells("n") == ["1", "2"]
    assert [row.number for row in table.rows] == [1, 2]


def test_a_blank_line_is_no_row_and_the_next_one_keeps_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\nmodel,n\n\na,1\n   \n,\nb,2\n")
    assert [(row.values["model"], row.line) for row in read_rows(path).rows] == [("a", 4), ("", 6), ("b", 7)]
    assert [(row.values["model"], row.line) for row in read_table(path).rows] == [("a", 4), ("b", 7)]


def test_a_name_of_a_column_stands_for_one_field() -> None:
    names = [name for rule in RULES.values() for name in rule.names]
    assert len(set(names)) == len(names)


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.integers(-(10**25), 10**25), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_number_is_read_exactly_as_it_is_written(value: float) -> None:
    exact = number(str(value))
    assert exact is not None
    assert type(value)(exact) == value
    assert number(f" {value} ") == number(value) == exact


WRITTEN = {  # as a person writes it -> what it is
    "1.2B": 1_200_000_000, "1.2b": 1_200_000_000, "60M": 60_000_000, "70m": 70_000_000, "10k": 10_000, "3K": 3_000,
    "2T": 2 * 10**12, ".5t": 5 * 10**11, "3e9": 3 * 10**9, "1,000": 1_000, "12,345,678.5": "12345678.5",
    " 7 M ": 7_000_000, "1,100M": 1_100_000_000, "-1,000": -1000, "1000": 1000, "0.1B": 100_000_000,
}  # fmt: skip


NO_NUMBERS = (True, False, None, "", "nan", "inf", "1,000", "0x10", "1_000", "٣", "1e99999", [1])
UNCLEAR = (
    *("1,5", "1,23", "1234,567", "0,123", "1,00M", "1.000.000", "1e3M", "60MB", "60G", "1_000", "B", "1,0000"),
    *(",5", "1 000", "1,000,00", "M5", "NaN", "inf", "", True, None, [1], float("nan")),
)
NO_VALUES = ("NaN", "nan", "-nan", "NA", "n/a", "null", "None", " #N/A ", float("nan"))


def test_a_large_number_is_read_exactly_and_what_has_two_readings_or_none_is_no_number() -> None:
    assert {text: large_number(text) for text in WRITTEN} == {
        text: Decimal(str(value)) for text, value in WRITTEN.items()
    }
    assert [cell for cell in UNCLEAR if large_number(cell) is not None] == []
    assert [cell for cell in NO_NUMBERS if number(cell) is not None] == []
    assert [cell for cell in NO_VALUES if not is_no_value(cell)] == []
