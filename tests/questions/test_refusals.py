"""What a store cannot be asked, as it is typed: one line says why, and nothing else is printed."""

import shlex
import shutil
from pathlib import Path

import pytest

from tests.same_answers.answers import STORES
from tests.support.composed import here
from tests.support.once import once_a_session

ASKED: list[tuple[str, str, list[str]]] = []
for line in (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8").splitlines():
    if line.startswith("["):
        name = line.strip("[]")
    elif line and not line.startswith("#"):
        words, *says = line.split(" => ")
        ASKED.append((name, words, says))


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the frozen stores."""
    return once_a_session(tmp_path_factory, "frozen", lambda to: Path(shutil.copytree(STORES, to / "stores")))


@pytest.mark.parametrize(("store", "words", "says"), ASKED, ids=lambda value: str(value)[:80])
def test_what_cannot_be_asked_is_refused_in_one_line(
    store: str, words: str, says: list[str], stores: Path, cwd: Path
) -> None:
    answer = here(*shlex.split(words), "--store", stores / store, cwd=cwd, check=2)
    assert answer.stdout == ""
    *_, line = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert [each for each in says if each not in line] == [], line
