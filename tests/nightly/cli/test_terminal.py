"""What whole commands send to a terminal, a pipe that closes and a full disk; every question in rows for programs."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rbpx.questions.registry import analyses
from tests.support.commands import here
from tests.support.stores import Measured
from tests.support.synthetic import Truth, write_store

QUICK = ("laws=[rbp]", "k=[1,10]", "resamples=25")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("terminal") / "store"
    write_store(root, Truth(), seed=1)
    return root


def environment(store: Path, more: Mapping[str, str]) -> dict[str, str]:
    dropped = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "COLORTERM")
    plain = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**plain, "RBPX_STORE": str(store), "TERM": "xterm-256color", **more}


def on_a_terminal(words: Sequence[str], store: Path, cwd: Path, **more: str) -> str:
    """What Python writes to standard output where that is a terminal of 80 columns."""
    outer, inner = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=cwd,
        env=environment(store, more),
        stdin=inner,
        stdout=inner,
        stderr=subprocess.PIPE,
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
    return shown.decode()


def test_a_command_is_coloured_on_a_terminal(store: Path, cwd: Path) -> None:
    assert "\x1b[1m" in on_a_terminal(("-m", "rbpx", "fit", *QUICK), store, cwd)


def test_rows_for_programs_have_no_colour_even_on_a_terminal(store: Path, cwd: Path) -> None:
    shown = on_a_terminal(("-m", "rbpx", "fit", *QUICK, "--format", "json"), store, cwd, FORCE_COLOR="1")
    assert "\x1b" not in shown
    assert {row["k"] for row in json.loads(shown)} == {1, 10}


def test_a_reader_that_has_seen_enough_is_no_failure(store: Path, cwd: Path) -> None:
    command = [sys.executable, "-m", "rbpx", "regimes", "resamples=25"]
    with subprocess.Popen(
        command, cwd=cwd, env=environment(store, {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_an_output_that_takes_no_more_is_one_line(store: Path, cwd: Path) -> None:
    with open("/dev/full", "wb") as full:
        command, env = [sys.executable, "-m", "rbpx", "status"], environment(store, {})
        done = subprocess.run(command, cwd=cwd, env=env, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "rbpx: the output cannot be written: No space left on device; run the same line again\n"


def test_an_output_that_was_closed_is_no_failure(store: Path, cwd: Path) -> None:
    command = ["sh", "-c", '"$@" >&-', "sh", sys.executable, "-m", "rbpx", "status"]
    done = subprocess.run(command, cwd=cwd, env=environment(store, {}), stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------------ for programs

QUICKLY = {
    "learning": ("k=[2]", "least=2", "resamples=25"),
    "entropy": ("resamples=25",),
}
SHORT = {"outcomes": ("n=[2]",), "emergence": ("n=[1,2]",), "gaps": ("slices=position",)}


@pytest.mark.parametrize("verb", [name for name, each in analyses().items() if not each.measures and not each.lacking])
@pytest.mark.usefixtures("computed_once")
def test_every_analysis_has_rows_for_programs_alone_on_stdout(verb: str, measured: Measured, cwd: Path) -> None:
    """By the table of analyses itself, so a new one cannot forget it."""
    import csv
    import io

    words = (verb, *SHORT.get(verb, ()), *QUICKLY.get(verb, ("k=[2]", "resamples=25")), "--store", measured.store)
    rows = json.loads(here(*words, "--format", "json", cwd=cwd, check=0).stdout)
    table = list(csv.DictReader(io.StringIO(here(*words, "--format", "csv", cwd=cwd, check=0).stdout)))
    assert len(rows) == len(table) > 0
    assert list(dict.fromkeys(name for row in rows for name in row)) == list(table[0])


def test_rows_are_written_to_a_file_and_a_table_is_not(store: Path, cwd: Path, tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"
    words = ("fit", *QUICK, "--store", store, "--output", place)
    refused = here(*words, cwd=cwd, check=2)
    assert "--format csv" in refused.stderr
    assert not place.exists()
    assert here(*words, "--format", "csv", cwd=cwd, check=0).stdout == ""
    assert place.read_text().startswith("fit_id,")
