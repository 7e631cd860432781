"""Tables of each question fit 80 columns, and say more in 160."""

import re
from pathlib import Path

import pytest

from rbpx.questions.registry import asking
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store

VERBS = ("klaw", "regimes", "emergence", "gaps", "entropy", "predict", "units", "ranks", "learning")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("widths") / "store"
    write_store(root, Truth(), seed=1, dataset="one")
    write_store(root, Truth(C=5.0, alpha=0.08), seed=2, dataset="two")
    return root


def tables(verb: str, columns: int, store: Path, cwd: Path, *words: str) -> list[str]:
    """The lines of the tables; a line of a table has two blanks between its cells, which prose has not."""
    few = ("resamples=25",) if "resamples" in asking(verb).keys else ()
    words = (*words, *few)
    answer = here(verb, *words, "--details", "--store", store, cwd=cwd, env={"COLUMNS": str(columns)}, check=0)
    return [line for line in answer.stdout.splitlines() if re.search(r"\S {2,}\S|───", line)]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("computed_once")
def test_a_table_fits_80_columns_and_says_more_at_160(verb: str, store: Path, cwd: Path) -> None:
    one = ["dataset=file", "dataset.name=one"]
    asked = {"emergence": ["k=10", "n=[1,2,5]"], "regimes": ["k=[1,10,100]"], "ranks": one, "predict": one}
    words = asked.get(verb, [])
    narrow, wide = (tables(verb, columns, store, cwd, *words) for columns in (80, 160))
    assert max(len(line.rstrip()) for line in narrow) <= 80 < max(map(len, wide)) <= 160
    assert len(narrow) == len(wide)
    for few, more in zip(narrow, wide, strict=True):
        if "───" not in few:
            assert set(few.split()) <= set(more.split())


def test_emergence_of_two_texts_fits_a_screen_and_one_k_is_told_in_full(store: Path, cwd: Path) -> None:
    ask = ("emergence", "resamples=25", "--store", store)
    summary, full = (
        here(*ask, *words, cwd=cwd, check=0).stdout
        for words in ([], ["k=10", "dataset=file", "dataset.name=one", "--details"])
    )
    assert len(summary.splitlines()) <= 40
    assert [full.count(name) for name in (", pooled ", ", C·N ")] == [1, 1]
    assert "Where p reaches a level" in full
    assert "Where p reaches a level" not in summary
