"""Texts and names that mean harm: paths that lead out of the store, markup, escapes of terminals, NULs, very long."""

import csv
import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from rbpx.config.options import Format
from rbpx.display.records import print_records, print_table
from rbpx.display.table import Column, Table
from rbpx.display.terminal import console, print_tables
from rbpx.files.escapes import visible, visible_line
from tests.support.composed import here
from tests.support.stores import Family, cell_records, snapshot, write_jsonl

NASTY = [
    "[bold red]x[/bold red]", "[/]", "[link=http://evil]x[/link]", "[[x]]", "\\[b]", "x\\", ":smile: :warning:",
    "\x1b[2J\x1b[31mred", "\x1b]8;;http://evil\x07x\x1b]8;;\x07", "\x9b31m", "a\rb", "a\nb\tc", "\x00", "\x07\x08\x7f",
    "\u202egnp.exe", "\u200bzero", "\ue000\ue001", "\ue000\uf8ff", "<script>alert(1)</script>", "&amp;",
    "'; DROP TABLE runs", '"', "\tpadded ", "=cmd()", "{x}", "%s%n", "東京", "x" * 5000, "",
]  # fmt: skip
OBEYED = [chr(n) for n in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x200B)]


def harmless(text: str) -> bool:
    return not any(c in text for c in OBEYED if c not in "\n")


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_a_table_shows_a_nasty_text_as_it_is_and_obeys_nothing(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(pa.table({"size": ["1"], text or "empty": [text]}).to_reader(), Format.table)
    of_a_user = capsys.readouterr().out
    table, screen = Table("table", (Column("size", "size"),)), console()
    print_tables(screen, [table.of(text, [{"size": text}], about) for about in (text, "")])
    screen.print(f"failed: {text}", markup=False, soft_wrap=True)
    ours = capsys.readouterr().out
    assert harmless(of_a_user + ours)
    if text.isprintable() and 0 < len(text) < 20:
        assert of_a_user.count(text) == 2, "in the heading and in the cell, every character of it"
        assert ours.count(text) == 5, "title, name of a part, a cell of each, and the failure"
    elif len(text) > 1000:
        assert of_a_user.count("x") == 2 * len(text)


@pytest.mark.parametrize("format", [Format.csv, Format.json])
def test_nasty_texts_come_back_from_csv_and_json_as_they_were(
    format: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{n}{text}" for n, text in enumerate(NASTY)]
    print_table(pa.table({name: NASTY for name in names}).to_reader(), format)
    out = capsys.readouterr().out
    if format is Format.json:
        assert json.loads(out) == [dict.fromkeys(names, text) for text in NASTY]
    else:
        assert list(csv.reader(io.StringIO(out, newline=""))) == [names, *([text] * len(names) for text in NASTY)]


def test_csv_and_json_on_a_terminal_command_it_to_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    rows = [{"family": text, "size": "1"} for text in NASTY]
    for format in (Format.csv, Format.json):
        print_table(pa.Table.from_pylist(rows).to_reader(), format)
        print_records(rows, format)
        shown = capsys.readouterr().out
        assert harmless(shown.replace("\t", ""))
        assert shown.count("\\x1b[2J") == (2 if format is Format.csv else 0), "JSON has escapes of its own"


def test_visible_says_what_was_there() -> None:
    assert visible("\x1b[31m") == "\\x1b[31m"
    assert visible_line("a\nb\x00") == "a\\nb\\x00"
    assert visible("Grüße, 東京") == "Grüße, 東京"
    assert visible("\ue000 \uf8ff\n") == "\\ue000 \\uf8ff\n", "characters for private use are escaped as others"


def test_nasty_names_and_texts_are_measured_and_lead_nowhere(family: Family, cwd: Path, tmp_path: Path) -> None:
    name, store = "[/x]\x1b[31m../../../up a/b\\c :smile:[bold]", tmp_path / "store"
    text = write_jsonl(tmp_path / "nasty.jsonl", *(f"{nasty[:200]} A ship that leaves the harbour" for nasty in NASTY))
    around = sorted(tmp_path.iterdir())
    words = ["model=hub", f"model.id={family.folders['xs']}", "dataset=file", f"dataset.path={text}"]
    words += [f'{key}="{name}"' for key in ("model.family", "dataset.name")]
    here("measure", *words, "--store", store, cwd=cwd, check=0)
    assert sorted(tmp_path.iterdir()) == [*around, store]
    assert [(cell["family"], cell["dataset"]) for cell in cell_records(store)] == [(name, name)]


OUTSIDE = ["runs/../..", "\x00"]


@pytest.mark.parametrize("name", OUTSIDE, ids=range(len(OUTSIDE)))
def test_no_id_leads_out_of_the_store(name: str, own_store: Path, cwd: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for folder in (outside, own_store, tmp_path):  # so that each of them looks like a run
        (folder / "manifest.json").write_text("{}")
    here("status", "--store", own_store, cwd=cwd, check=0)
    before, around = snapshot(own_store), [p for p in tmp_path.rglob("*") if own_store not in p.parents]
    for words in (["store", "rm", name], ["show", name]):
        answer = here(*words, "--store", own_store, cwd=cwd, check=2)
        (line,) = answer.stderr.splitlines()
        begin = f"rbpx: {name if name.isprintable() else repr(name)[1:-1]} is"
        assert line.startswith((f"{begin} not a run_id", f"{begin} neither a run_id"))
        assert f"in store={own_store}; see python -m rbpx status" in line
    assert snapshot(own_store) == before
    assert [p for p in tmp_path.rglob("*") if own_store not in p.parents] == around


@pytest.mark.parametrize("words", [["status", "--store"], ["store", "push"], ["store", "pull"]], ids=range(3))
def test_a_store_that_is_a_file_is_one_line_and_makes_none(words: list[str], cwd: Path, tmp_path: Path) -> None:
    (cwd / "a file").write_text("")
    more = ["--store", str(tmp_path / "store")] if words[0] == "store" else []
    answer = here(*words, "a file", *more, cwd=cwd, check=2)
    assert len(answer.stderr.splitlines()) == 1
    assert not (tmp_path / "store").exists()
