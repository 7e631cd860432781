"""What a terminal is sent: colour only there and only if wanted, ASCII where it has no more, a pipe that may close."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import pytest

from rbpx.display.section import Passage, Piece, TextReading
from rbpx.display.table import Column, Table
from rbpx.display.terminal import console, print_passages, print_tables
from tests.support.synthetic import Truth, write_store
from tests.support.terminals import terminal

SAID = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "COLORTERM")  # of a terminal, by its environment


def environment(more: Mapping[str, str]) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in SAID}
    return {**plain, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **more}


def show(stream: TextIO) -> None:
    """What every table and text goes through, without the time that a fit takes."""
    pieces = (Piece("known ", 0, ""), Piece("new", 3, ""))
    text = Passage("text", "a text", "", "", (TextReading("xs", "of two tokens", pieces),))
    laws, rows = Table("laws", (Column("law", "law"), Column("E", "E"))), [{"law": "one", "E": None}]
    tables = [laws.of("y = C · S^-alpha", rows, f"drawn on {of}") for of in ("synthetic", "more")]
    with contextlib.redirect_stdout(stream):
        print_tables(console(), tables)
        print_passages(console(), [text])
        stream.flush()


@pytest.mark.parametrize(
    ("variable", "encoding", "coloured"),
    [
        (None, "utf-8", (True, False)),
        ("NO_COLOR", "utf-8", (False, False)),
        ("FORCE_COLOR", "utf-8", (True, True)),
        (None, "ascii", (True, False)),
    ],
)
def test_colour_is_for_terminals_and_obeys_no_color_and_force_color_and_ascii_has_its_own_signs(
    variable: str | None, encoding: str, coloured: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SAID:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    if variable is not None:
        monkeypatch.setenv(variable, "1")
    with terminal() as (stream, told):
        stream.reconfigure(encoding=encoding)  # type: ignore[attr-defined]
        show(stream)
    show(pipe := io.TextIOWrapper(io.BytesIO(), encoding))
    shown, piped = told[0], pipe.buffer.getvalue().decode(encoding)
    assert tuple("\x1b[1;30;" in part for part in (shown, piped)) == coloured
    assert ("\x1b" in piped) == coloured[1]
    signs = ("y = C * S^-alpha\n",) if encoding == "ascii" else ("y = C · S^-alpha\n", "known «new»")
    for text in (*signs, " drawn on synthetic\n"):
        assert coloured[1] or text in piped
    assert ("«new»" in shown) == (variable == "NO_COLOR")
    assert "\\u" not in piped


def test_a_reader_that_has_enough_is_no_error(cwd: Path, tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(S=(1_000,)), seed=1, n_documents=1, n_tokens=4).root
    words = f"{sys.executable} -m rbpx export 'SELECT range AS n FROM range(1000000)' --store {store}"
    piped = ["sh", "-c", f"({words}; echo $? >&2) | head -n 1"]
    done = subprocess.run(piped, cwd=cwd, env=environment({}), capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("n\n", "0\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_an_output_that_takes_no_more_is_one_line_and_one_that_was_closed_no_failure(cwd: Path) -> None:
    command = [sys.executable, "-m", "rbpx", "--version"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, cwd=cwd, env=environment({}), stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "rbpx: the output cannot be written: No space left on device; run the same line again\n"
    closing = ["sh", "-c", '"$@" >&-', "sh", *command]
    done = subprocess.run(closing, cwd=cwd, env=environment({}), stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_where_there_is_only_ascii_every_format_that_is_printed_has_its_signs(cwd: Path, tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=1, n_documents=8, n_tokens=20).root
    words = "-m rbpx fit laws=[rbp] k=1 resamples=25 --format md --store".split()
    command = [sys.executable, *words, store]
    ascii, utf8 = (
        subprocess.run(
            command, cwd=cwd, env=environment({"PYTHONIOENCODING": encoding}), capture_output=True, check=True
        )
        for encoding in ("ascii", "utf-8")
    )
    assert "−" in utf8.stdout.decode()
    assert ascii.stdout.count(b"\n") == utf8.stdout.count(b"\n")
