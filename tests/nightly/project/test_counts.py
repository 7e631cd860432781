"""Counts in words: one function, and no `1 documents` or `document(s)` anywhere."""

import re
from pathlib import Path

import pytest

import rbpx
from rbpx.errors import number_of
from tests.support.commands import here
from tests.support.stores import Family, write_jsonl

PACKAGE = Path(rbpx.__file__).parent


@pytest.mark.parametrize(
    ("n", "noun", "plural", "text"),
    [
        (0, "run", None, "0 runs"),
        (1, "run", None, "1 run"),
        (1_024, "run", None, "1,024 runs"),
        (1, "process", "processes", "1 process"),
        (2, "process", "processes", "2 processes"),
    ],
)
def test_a_count_agrees_with_its_noun(n: int, noun: str, plural: str | None, text: str) -> None:
    assert number_of(n, noun, plural) == text


def test_no_text_of_the_package_leaves_it_open() -> None:
    files = [path for suffix in ("py", "jinja", "js") for path in PACKAGE.rglob(f"*.{suffix}")]
    found = [(path.name, line) for path in files for line in re.findall(r"\}.{,40}\w\(e?s\).*", path.read_text())]
    assert found == []


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
