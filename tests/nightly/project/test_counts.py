"""One document of one model is told as one by every command that counts."""

import re
from pathlib import Path

from tests.support.commands import here
from tests.support.stores import Family, write_jsonl


def test_one_document_of_one_model_is_told_as_one(family: Family, cwd: Path, tmp_path: Path) -> None:
    words = family.words(
        "xs",
        text=write_jsonl(tmp_path / "one.jsonl", "The cat sat on the mat, and one by one the letters abc were read."),
    )
    asked = [words, ("report", "--output", tmp_path / "report.md"), ("status", *words), ("store", "verify")]
    answers = [here(*each, "--store", tmp_path / "store", cwd=cwd, check=0) for each in asked]
    said = [answer.stdout + answer.stderr for answer in answers] + [(tmp_path / "report.md").read_text()]
    nouns = r".*\b1 (?:runs|documents|models|sizes|cells|texts|files|fits|datasets|vocabularies)\b"
    assert re.findall(nouns, "\n".join(said)) == []
    counted = ("1 size", "of 1 run ", "1 cell:", "1 run, ", "1 document;")
    assert [(one, text) for one, text in zip(counted, said, strict=True) if one not in text] == []
