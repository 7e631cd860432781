"""What is no failure of a command: that its reader has enough."""

from pathlib import Path

from tests.support.commands import start
from tests.support.stores import Measured


def test_a_reader_that_has_enough_is_no_error(measured: Measured, cwd: Path) -> None:
    process = start("export", "SELECT range AS n FROM range(1000000)", "--store", measured.store, cwd=cwd)
    assert process.stdout is not None
    assert process.stdout.readline() == "n\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
