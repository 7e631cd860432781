"""Tables by the width of the terminal: what fits in 80 columns, and what more there is to see in 160."""

import json
import re
from pathlib import Path

import pytest

from rbpx.display.terminal import row_of
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store


def test_a_long_text_folds_and_numbers_stand_at_the_right() -> None:
    row = row_of(["a long text", "7"], [6, 3], [False, True])
    assert row.plain == " a long    7\n text       "


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("widths") / "store"
    write_store(root, Truth(), seed=1, dataset="one", n_documents=20)
    write_store(root, Truth(C=5.0, alpha=0.08), seed=2, dataset="two", n_documents=20)
    return root


def tables(columns: int, store: Path, cwd: Path) -> list[str]:
    """The lines of the tables of a fit; a line of a table has two blanks between its cells, which prose has not."""
    asked = ("fit", "laws=[rbp,cross_entropy]", "k=[1,10]", "resamples=25")
    answer = here(*asked, "--store", store, cwd=cwd, env={"COLUMNS": str(columns)}, check=0)
    return [line for line in answer.stdout.splitlines() if re.search(r"\S {2,}\S|───", line)]


@pytest.mark.usefixtures("computed_once")
def test_a_table_fits_80_columns_and_says_more_at_160(store: Path, cwd: Path) -> None:
    narrow, wide = (tables(columns, store, cwd) for columns in (80, 160))
    assert max(len(line.rstrip()) for line in narrow) <= 80 < max(map(len, wide)) <= 160
    assert len(narrow) == len(wide) > 5
    for few, more in zip(narrow, wide, strict=True):
        if "───" not in few:
            assert set(few.split()) <= set(more.split())


# ------------------------------------------------------------------------------------- relations, wider than a screen


def test_a_relation_that_is_too_wide_is_printed_downwards_with_every_value(store: Path, cwd: Path) -> None:
    words = ("sql", "SELECT * FROM runs ORDER BY run_id", "--store", store)
    answer = here(*words, cwd=cwd, env={"COLUMNS": "80"}, check=0)
    rows = json.loads(here(*words, "--format", "json", cwd=cwd, check=0).stdout)
    parts = re.split(r"^row \d+ of 10\n", answer.stdout, flags=re.MULTILINE)[1:]
    assert len(parts) == len(rows) == 10
    for part, row in zip(parts, rows, strict=True):
        lines = dict(re.fullmatch(r"  (\w+) +(\S.*)", line).groups() for line in part.splitlines())  # type: ignore[union-attr, misc]
        assert list(lines) == list(row)
        assert [lines[name] for name in ("run_id", "config")] == [row["run_id"], row["config"]]
        assert float(lines["cross_entropy_nats"]) == pytest.approx(row["cross_entropy_nats"], rel=1e-5)


def test_of_many_wide_rows_the_first_are_printed_and_the_others_counted(store: Path, cwd: Path) -> None:
    words = ("sql", "SELECT * FROM rank_counts, runs LIMIT 23", "--store", store)
    answer = here(*words, cwd=cwd, env={"COLUMNS": "80"}, check=0)
    assert re.findall(r"^row (\d+) of 23$", answer.stdout, re.MULTILINE) == [str(n) for n in range(1, 11)]
    assert answer.stderr == "23 rows, the first 10 shown; format=csv prints all\n"


def test_a_relation_that_fits_stays_a_table(store: Path, cwd: Path) -> None:
    words = ("sql", "SELECT size, n_tokens FROM runs ORDER BY ALL LIMIT 2", "--store", store)
    lines = here(*words, cwd=cwd, env={"COLUMNS": "80"}, check=0).stdout.splitlines()
    assert next(line.split() for line in lines if line.strip()) == ["size", "n_tokens"]


def test_a_wide_answer_without_rows_says_so(store: Path, cwd: Path) -> None:
    words = ("sql", "SELECT * FROM runs WHERE size = 'nosuch'", "--store", store)
    answer = here(*words, cwd=cwd, env={"COLUMNS": "80"}, check=0)
    assert (answer.stdout, answer.stderr) == ("", "no rows\n")
