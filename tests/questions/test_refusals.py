"""What a store cannot be asked, as it is typed: one line says why, and nothing else is printed."""

import shlex
from pathlib import Path

import pytest

from tests.support.composed import here

ASKED: list[tuple[str, str, list[str]]] = []
for line in (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8").splitlines():
    if line.startswith("["):
        name = line.strip("[]")
    elif line and not line.startswith("#"):
        words, *says = line.split(" => ")
        ASKED.append((name, words, says))


@pytest.mark.parametrize(("store", "words", "says"), ASKED, ids=lambda value: str(value)[:80])
def test_what_cannot_be_asked_is_refused_in_one_line(
    store: str, words: str, says: list[str], frozen: Path, cwd: Path
) -> None:
    answer = here(*shlex.split(words), "--store", frozen / store, cwd=cwd, check=2)
    assert answer.stdout == ""
    *_, line = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert [each for each in says if each not in line] == [], line
