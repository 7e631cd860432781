"""How much of a user's text was scored is said where it was cut, with what scores the rest."""

import re
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.stores import Family, cell_records, manifests

PARAGRAPH = "The cat sat on the mat, and one by one the letters abc abd abe were read."
TEXT = "\n\n".join([PARAGRAPH] * 30)  # many times the 64 tokens that the models read


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text(TEXT)
    return path


def said(answer: str) -> list[str]:
    return [line for line in answer.splitlines() if "scored" in line]


def test_a_text_that_is_cut_is_told_with_its_share_and_what_scores_all_of_it(
    family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = ["measure", *family.words("xs", "s", text=notes), "--store", store]
    (line,) = said(here(*words, cwd=cwd, check=0).stderr)
    assert "protocol=rolling scores all" in line
    assert "dataset.chunk=paragraph" in line
    assert said(here(*words, "protocol=rolling", cwd=cwd, check=0).stderr) == [], "scored to its end"
    facts = {fact["protocol"]: fact for fact in manifests(store).values()}
    numbers = re.search(r"mine on notes: scored ([\d,]+) of about ([\d,]+) tokens \((\S+) % of 1 document\)", line)
    assert numbers is not None
    scored, whole, percent = (float(number.replace(",", "")) for number in numbers.groups())
    assert scored == facts["paper"]["n_tokens"]
    assert whole == pytest.approx(facts["rolling"]["n_tokens"], rel=0.05)
    assert percent == pytest.approx(100 * facts["paper"]["n_bytes"] / len(TEXT), rel=0.02)


def test_a_text_whose_paragraphs_are_scored_is_another_cell_and_not_told(
    family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    asked = ["measure", *family.words("xs", text=notes), "dataset.chunk=none,paragraph", "--store", store]
    (line,) = said(here(*asked[:1], "-m", *asked[1:], cwd=cwd, check=0).stderr)
    assert "mine on notes:" in line
    assert sorted(record["dataset"] for record in cell_records(store)) == ["notes", "notes-paragraph"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["dataset.split=test"], "dataset.split=test is for datasets of the hub"),
        (["dataset.chunk=sentence"], "expected one of [none, paragraph, line]"),
    ],
)
def test_what_a_file_does_not_have_is_refused(
    words: list[str], says: str, family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    answer = here("measure", *family.words("xs", text=notes), *words, "--store", tmp_path / "s", cwd=cwd, check=2)
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["dataset=humaneval", "dataset.path=@notes", "dataset.split=test"], "a file has no such parts"),
        (["dataset=humaneval", "dataset.chunk=line"], "dataset.chunk=line is for texts on this machine"),
    ],
)
def test_keys_of_the_hub_and_of_files_are_told_apart(
    words: list[str], says: str, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    words = [word.replace("@notes", str(notes)) for word in words]
    answer = here("measure", "size=3k", *words, "--store", tmp_path / "s", cwd=cwd, check=2)
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1
