"""What a terminal is sent: colour only there and only if wanted, ASCII where it has no more, a pipe that may close."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.synthetic import Truth, write_store

# What every table and text goes through, without the time that a fit takes; in each environment, then in ASCII.
PROGRAM = """
import json, os, sys
from rbpx.display.section import Passage, Piece, TextReading
from rbpx.display.table import Column, Table
from rbpx.display.terminal import console, print_passages, print_tables
pieces = (Piece("known ", 0, ""), Piece("new", 3, ""))
text = Passage("text", "a text", "", "", (TextReading("xs", "of two tokens", pieces),))
for at, variables in enumerate(({}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"ascii": "1"})):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        os.environ.pop(name, None)
    os.environ.update(variables)
    if "ascii" in variables:
        sys.stdout.reconfigure(encoding="ascii")
    laws = Table("laws", (Column("law", "law"), Column("E", "E")))
    rows = [{"law": "one", "E": None}]
    tables = [laws.of("y = C · S^-alpha", rows, f"drawn on {of}") for of in ("synthetic", "more")]
    print_tables(console(), tables)
    print_passages(console(), [text])
    print("=====", flush=True)
print(json.dumps([{"alpha": 1}]))
"""


def environment(more: Mapping[str, str]) -> dict[str, str]:
    dropped = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "COLORTERM")
    plain = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**plain, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **more}


def on_a_terminal(cwd: Path) -> list[str]:
    """What the program writes to standard output where that is a terminal of 80 columns, a part an environment."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    words = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        words, cwd=cwd, env=environment({}), stdin=inner, stdout=inner, stderr=subprocess.PIPE
    ) as process:
        os.close(inner)
        shown = b""
        while True:
            try:
                part = os.read(outer, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(outer)
    assert process.returncode == 0
    return shown.decode().split("=====\r\n")


def test_colour_is_for_terminals_and_obeys_no_color_and_force_color_and_ascii_has_its_own_signs(cwd: Path) -> None:
    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, cwd=cwd, env=environment({}), capture_output=True, check=True)
    piped = done.stdout.decode().split("=====\n")
    shown = on_a_terminal(cwd)
    coloured = [["\x1b[1;30;" in part for part in each] for each in (shown, piped)]
    assert coloured == [[True, False, True, True, False], [False, False, True, False, False]]
    assert "\x1b" not in piped[0]
    for text in ("y = C · S^-alpha\n", " drawn on synthetic\n", "known «new»"):
        assert text in piped[0]
    assert "«new»" in shown[1]
    plain = piped[3]
    assert plain.isascii()
    assert "y = C * S^-alpha\n" in plain
    assert " drawn on synthetic\n" in plain
    assert "\\u" not in plain


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
