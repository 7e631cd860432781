"""How much of a user's text is scored is said before it is, where it is cut, with what scores the rest."""

import re
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.stores import Family, cell_records, columns_of, manifests

PARAGRAPH = "The cat sat on the mat, and one by one the letters abc abd abe were read."
TEXT = "\n\n".join([PARAGRAPH] * 30)  # many times the 64 tokens that the models read


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text(TEXT)
    return path


def said(answer: str) -> list[str]:
    return [line for line in answer.splitlines() if "scores" in line]


def numbers_in(line: str) -> tuple[float, float, float]:
    """Percent, scored tokens and all tokens."""
    found = re.search(r"scores (?:about )?(\S+) % of the drawn text, ([\d,]+) of about ([\d,]+) tokens", line)
    assert found is not None, line
    percent, scored, whole = (float(number.replace(",", "")) for number in found.groups())
    return percent, scored, whole


def test_a_text_that_is_cut_is_told_with_its_share_and_what_scores_all_of_it(
    family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = ["measure", *family.words("xs", "s", text=notes), "--store", store]
    told = here(*words, cwd=cwd, check=0).stderr
    (line,) = said(told)
    assert line.startswith("rbpx: mine on notes: scores ")
    assert told.index(line) < told.index("[1/2]"), "before anything is measured"
    assert "protocol=rolling scores all" in line
    assert "dataset.chunk=paragraph" in line
    assert said(here(*words, "protocol=rolling", cwd=cwd, check=0).stderr) == [], "scored to its end"
    facts = {fact["protocol"]: fact for fact in manifests(store).values()}
    percent, scored, whole = numbers_in(line)
    assert scored == facts["paper"]["n_tokens"]
    assert whole == pytest.approx(facts["rolling"]["n_tokens"], rel=0.05)
    assert percent == pytest.approx(100 * facts["paper"]["n_bytes"] / len(TEXT), rel=0.02)


def test_plan_says_it_too_estimated_at_first_and_counted_once_a_size_is_measured(
    family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    def planned(*words: str) -> list[str]:
        asked = (*family.words("xs", "s", text=notes), "--store", tmp_path / "store", *words)
        return said(here("plan", *asked, cwd=cwd, check=0).stdout)

    n_bytes = len(TEXT)
    (line,) = planned()
    assert "notes, protocol=paper: scores about " in line
    estimated = numbers_in(line)[0]
    here("measure", *family.words("xs", text=notes), "--store", tmp_path / "store", cwd=cwd, check=0)
    (line,) = planned()
    (facts,) = manifests(tmp_path / "store").values()
    percent, scored, _ = numbers_in(line)
    assert [estimated, percent] == pytest.approx([100 * facts["n_bytes"] / n_bytes] * 2, abs=0.5)
    assert scored == facts["n_tokens"]
    assert planned("protocol=rolling") == planned("protocol=harness") == []
    notes.write_text(PARAGRAPH)
    assert planned() == [], "all of it is scored"


def test_a_text_whose_paragraphs_are_scored_is_another_cell_and_not_told(
    family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    asked = ["measure", *family.words("xs", text=notes), "dataset.chunk=none,paragraph,line", "--store", store]
    (line,) = said(here(*asked[:1], "-m", *asked[1:], cwd=cwd, check=0).stderr)
    assert "mine on notes:" in line
    assert sorted(record["dataset"] for record in cell_records(store)) == ["notes", "notes-line", "notes-paragraph"]
    (cell,) = [cell for cell in cell_records(store) if cell["dataset"] == "notes-paragraph"]
    sources = columns_of(store / "runs" / cell["run_id"], "documents")["source_id"]
    assert set(sources) == {f"notes.txt:{line}" for line in range(1, 61, 2)}
