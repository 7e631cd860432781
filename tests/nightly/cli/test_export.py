"""Exports as whole commands: wrong words, and a reader that has enough."""

from pathlib import Path

import pytest

from tests.support.commands import Answer, here, start
from tests.support.stores import Measured, snapshot


def export(measured: Measured, cwd: Path, *words: object, check: int | None = 0) -> Answer:
    return here("export", *words, "--store", measured.store, cwd=cwd, check=check)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], ["takes one relation", "observations"]),
        (["runs", "tokens"], ["takes one relation", "got 2"]),
        (["runs", "--output", "@/out.csv", "--format", "json"], ["out.csv", "format=", "differ"]),
    ],
)
def test_a_wrong_export_is_one_line_and_writes_nothing(
    words: list[str], says: list[str], measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    before = snapshot(measured.store)
    answer = export(measured, cwd, *(word.replace("@", str(tmp_path)) for word in words), check=2)
    (line,) = answer.stderr.splitlines()
    assert [part for part in says if part not in line] == [], line
    assert answer.stdout == ""
    assert sorted(tmp_path.iterdir()) == [cwd]
    assert snapshot(measured.store) == before


def test_a_reader_that_has_enough_is_no_error(measured: Measured, cwd: Path) -> None:
    process = start("export", "SELECT range AS n FROM range(1000000)", "--store", measured.store, cwd=cwd)
    assert process.stdout is not None
    assert process.stdout.readline() == "n\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
