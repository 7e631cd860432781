"""One document of one model is told as one by every command that counts."""

import re
from pathlib import Path

from tests.support.commands import here
from tests.support.stores import Family, write_jsonl


def test_one_document_of_one_model_is_told_as_one(family: Family, cwd: Path, tmp_path: Path) -> None:
    text = write_jsonl(tmp_path / "one.jsonl", "The cat sat on the mat, and one by one the letters abc were read.")
    store = ("--store", tmp_path / "store")
    run = here(*family.words("xs", text=text), *store, cwd=cwd, check=0)
    report = here("report", "--format", "md", "--output", tmp_path / "report.md", *store, cwd=cwd, check=0)
    status = here("status", *family.words("xs", text=text), *store, cwd=cwd, check=0)
    verify = here("store", "verify", *store, cwd=cwd, check=0)
    page = (tmp_path / "report.md").read_text()
    everything = [answer.stdout + answer.stderr for answer in (run, report, status, verify)]
    plurals = r".*\b1 (?:runs|documents|models|sizes|cells|texts|files|fits|datasets|vocabularies)\b"
    assert re.findall(plurals, "\n".join([*everything, page])) == []
    said = (
        ("1 size", run),
        ("1 document;", run),
        ("of 1 run ", report),
        ("1 cell:", status),
        ("1 run, ", verify),
    )
    assert [one for one, answer in said if one not in answer.stdout + answer.stderr] == []
    assert "1 document;" in page
