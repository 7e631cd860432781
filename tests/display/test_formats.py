"""One made table with everything in it, in every format; what is expected was written by hand."""

import csv
import io
import json
import math

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

NARROW = r"""
ladder on π: Laws of <texts>

 model                      S  status
 ───────────────────────────────────────────
 _[b]/alphabeta–文  1,234,567  passes
 \x1b[31m\u202e             –  bends
                         12.5  too few sizes
"""
WIDE = r"""
ladder on π: Laws of <texts>

 model                      S  alpha_k              95 %  words   status
 ──────────────────────────────────────────────────────────────────────────────
 _[b]/alphabeta–文  1,234,567   0.2500         0.1250..–  x|&<b>  passes
 \x1b[31m\u202e             –  -1.5000  -2.0000..-1.2500  5 % $   bends
                         12.5        –                 –  –       too few sizes
"""
MARKDOWN = r"""
#### Laws of \<texts\>

| model | S | α\_k | 95 % | words | status |
| --- | ---: | ---: | ---: | --- | --- |
| \_\[b\]/αβ–文 | 1,234,567 | 0.2500 | 0.1250 to – | x\|\&\<b\> | passes |
| \\x1b\[31m\\u202e | – | −1.5000 | −2.0000 to −1.2500 | 5 % $ | bends |
|  | 12.5 | – | – | – | too few sizes |

S: parameters. words: as it was written.
"""
LATEX = r"""
\begin{table}[t]
\centering
\footnotesize\setlength{\tabcolsep}{4pt}
\caption{Laws of \textless{}texts\textgreater{}: ladder on U+03C0}
\label{tab:ladder-made}
\begin{tabular}{lrrrll}
\toprule
model & $S$ & $\alpha_{k}$ & 95 \% & words & status \\
\midrule
\_[b]/$\alpha$$\beta$--U+6587 & 1,234,567 & 0.2500 & 0.1250 to -- & x\textbar{}\&\textless{}b\textgreater{} & passes \\
\textbackslash{}x1b[31m\textbackslash{}u202e & -- & $-$1.5000 & $-$2.0000 to $-$1.2500 & 5 \% \$ & bends \\
 & 12.5 & -- & -- & -- & too few sizes \\
\bottomrule
\end{tabular}
\end{table}
"""
HTML = (
    "<tr><td class=t>_[b]/αβ–文<td>1,234,567<td data-v=0.25>0.2500"
    "<td data-v=0.125|>0.1250 to –<td class=t>x|&amp;&lt;b&gt;<td class=t data-v=ok>passes",
    "<td>–<td data-v=-1.5>−1.5000<td data-v=-2|-1.25>−2.0000 to −1.2500<td class=t>5 % $<td class=doubt>bends",
    "<tr><td class=t><td>12.5<td>–<td data-v=|>–<td class=t>–<td class=doubt data-v=too_few_sizes>too few sizes",
)
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


@pytest.mark.parametrize(("width", "expected"), [(60, NARROW), (200, WIDE)])
def test_a_terminal_shows_what_has_room(
    width: int, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    meanings = print_tables(console(), [TABLE])
    shown = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert shown.strip("\n") == expected.strip("\n")
    assert meanings == ["S: parameters.", *(["words: as it was written."] if width == 200 else [])]


def test_texts_for_markdown_latex_and_pages_are_escaped(report: Report) -> None:
    written = markdown(report)
    assert MARKDOWN in written
    assert r"α\_k of \<all\>." in written
    assert r"> bends (\\x1b\[31m\\u202e): " in written
    assert LATEX in latex(report)
    shown = page(report)
    for part in (*HTML, '<summary id="ladder-laws-made-table">Laws of &lt;texts&gt;</summary>'):
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
