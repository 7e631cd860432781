"""One made table with everything in it, in every format; what is expected was written by hand."""

import csv
import io
import json
import math
from pathlib import Path

import pytest

from rbpx.api.answer import Answer
from rbpx.config.options import Format
from rbpx.display.records import print_records
from rbpx.display.section import Section, doubt
from rbpx.display.table import STATUS, Column, Table, interval
from rbpx.display.terminal import console, print_tables
from rbpx.display.vocabulary import whole
from rbpx.report.contents import PageGroup, Report
from rbpx.report.page import page
from rbpx.report.texts import latex, markdown
from rbpx.status import Status

ROWS = [
    {"model": model, "S": S, "alpha": alpha, "alpha_lo": lo, "alpha_hi": hi, "words": words, "status": status.value}
    for model, S, alpha, lo, hi, words, status in (
        ("_[b]/αβ–文", 1_234_567, 0.25, 0.125, None, "x|&<b>", Status.ok),
        ("\x1b[31m\u202e", None, -1.5, -2.0, -1.25, "5 % $", Status.bends),
        ("", 12.5, None, None, None, None, Status.too_few_sizes),
    )
]
MADE = Table(
    "made",
    (
        Column("model", "model"),
        Column("S", "S", whole, "parameters"),
        *interval("α_k", "alpha"),
        Column("words", "words", str, "as it was written"),
        STATUS,
    ),
    ("model S status", "alpha"),
)
TABLE = MADE.of("Laws of <texts>", ROWS, about="ladder on π")


def made(name: str) -> str:
    """What was written by hand of the table in a format."""
    return (Path(__file__).with_name("made") / name).read_text(encoding="utf-8").strip("\n")


RECORDS = [
    {"a": 1, "b": None, "c": 'ü\n"x", \x1b[31m', "d": {"E": [1.5, None]}, "e": 0.1 + 0.2},
    {"a": math.nan, "c": "=1+1", "f": True},
]


@pytest.fixture
def report() -> Report:
    """A report whose one section has the table."""
    doubts = tuple(doubt(status, of) for status, of in TABLE.doubts().items())
    section = Section("laws", "Laws", ("α_k of <all>.",), (), (TABLE,), doubts)
    part = PageGroup("ladder", "ladder on π", "about", (), (section,))
    none = Table("none", (Column("a", "a"),))
    return Report("s", "2026-01-02 03:04", "1.2", "Laws", "", 5, True, 2, 0, (part,), (), none, (), none, verb="fit")


@pytest.mark.parametrize(
    ("width", "name"), [(71, "narrow.txt"), (72, "middle.txt"), (79, "middle.txt"), (80, "wide.txt")]
)
def test_a_terminal_shows_what_has_room_to_the_last_column(
    width: int, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    meanings = print_tables(console(), [TABLE])
    shown = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert shown.strip("\n") == made(name)
    assert meanings == ["S: parameters.", *(["words: as it was written."] if name == "wide.txt" else [])]


def test_texts_for_markdown_latex_and_pages_are_escaped(report: Report) -> None:
    written = markdown(report)
    assert made("table.md") in written
    assert r"α\_k of \<all\>." in written
    assert r"> bends (\\x1b\[31m\\u202e): " in written
    assert made("table.tex") in latex(report)
    shown = page(report)
    for part in (
        *made("rows.html").splitlines(),
        '<summary id="ladder-laws-made-table">Laws of &lt;texts&gt;</summary>',
    ):
        assert part in shown


def test_a_table_gives_its_values() -> None:
    assert TABLE.records() == ROWS
    assert TABLE.doubts() == {Status.bends: ["\x1b[31m\u202e"], Status.too_few_sizes: ["model = "]}


def test_records_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    print_records(RECORDS, Format.json)
    written = capsys.readouterr().out
    assert written.isascii()
    assert json.loads(written) == [RECORDS[0], {"a": None, "c": "=1+1", "f": True}]
    print_records(RECORDS, Format.csv)
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [
        ["a", "b", "c", "d", "e", "f"],
        ["1", "", 'ü\n"x", \x1b[31m', '{"E": [1.5, null]}', "0.30000000000000004", ""],
        ["", "", "=1+1", "", "", "True"],
    ]


def test_a_frame_and_arrow_have_the_same_records() -> None:
    answer = Answer("fit", (), tuple(RECORDS))
    frame = answer.frame()
    assert list(frame.columns) == ["a", "b", "c", "d", "e", "f"]
    assert frame["a"].isna().tolist() == [False, True]
    assert frame["d"][0] == {"E": [1.5, None]}
    assert frame["c"].tolist() == ['ü\n"x", \x1b[31m', "=1+1"]
    assert answer.arrow().to_pylist()[0]["d"] == '{"E": [1.5, null]}'
