"""How much of a user's text was scored is said where it was cut, with what scores the rest."""

import json
import re
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.stores import Family, cell_records, manifests, write_jsonl

PARAGRAPH = "The cat sat on the mat, and one by one the letters abc abd abe were read."
TEXT = "\n\n".join([PARAGRAPH] * 30)  # many times the 64 tokens that the models read


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text(TEXT)
    return path


def said(answer: str) -> list[str]:
    return [line for line in answer.splitlines() if "scored" in line]


def test_rows_that_are_cut_are_counted_together_with_those_that_are_not(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    rows = write_jsonl(tmp_path / "rows.jsonl", TEXT, "short", PARAGRAPH)
    answer = here("measure", *family.words("xs", text=rows), "--store", tmp_path / "store", cwd=cwd, check=0)
    (line,) = said(answer.stderr)
    assert "of 3 documents)" in line


def test_a_share_that_is_nearly_all_does_not_read_as_all(family: Family, cwd: Path, tmp_path: Path) -> None:
    texts = [*[PARAGRAPH] * 990, PARAGRAPH * 6]
    rows, store = write_jsonl(tmp_path / "rows.jsonl", *texts), tmp_path / "store"
    (line,) = said(here("measure", *family.words("xs", text=rows), "--store", store, cwd=cwd).stderr)
    (facts,) = manifests(store).values()
    left_out = 100 * (1 - facts["n_bytes"] / sum(map(len, texts)))
    (percent,) = re.findall(r"\(([\d.]+) % of 991 documents\)", line)
    assert 0 < left_out < 0.5
    assert float(percent) == pytest.approx(100 - left_out, abs=left_out / 2)


def test_a_run_of_paragraphs_is_another_cell_and_that_of_the_whole_text_keeps_its_key(
    family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = ["measure", *family.words("xs", text=notes), "--store", store]
    for more in ([], ["dataset.chunk=none"], ["dataset.chunk=paragraph"], ["dataset.chunk=line"]):
        here(*words, *more, cwd=cwd, check=0)
    assert sorted(record["dataset"] for record in cell_records(store)) == ["notes", "notes-line", "notes-paragraph"]
    query = "SELECT source_id FROM documents JOIN runs USING (run_id) WHERE dataset = 'notes-paragraph' ORDER BY doc_id"
    rows = json.loads(here("sql", query, "--store", store, "--format", "json", cwd=cwd, check=0).stdout)
    assert {row["source_id"] for row in rows} == {f"notes.txt:{line}" for line in range(1, 61, 2)}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["dataset=file", "dataset.path=@notes", "dataset.revision=main"], "dataset.revision=main is for datasets of"),
        (["dataset=pydoc", "dataset.split=test"], "dataset pydoc has no split"),
    ],
)
def test_keys_of_the_hub_and_of_files_are_told_apart(
    words: list[str], says: str, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    words = [word.replace("@notes", str(notes)) for word in words]
    answer = here("measure", "size=3k", *words, "--store", tmp_path / "s", cwd=cwd, check=2)
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1
