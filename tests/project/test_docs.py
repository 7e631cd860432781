"""The documentation: its links lead somewhere, what the code says is in it, its commands are right requests."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from ext import meanings
from generate import PART, PARTS, filled

from rbpx.store.schema import COLUMNS
from tests.support.composed import requests_of
from tests.support.places import DOCS, PROJECT
from tests.support.shown import write_own_folder

PAGES = [PROJECT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)]
OF_READER = re.compile(r"(model|dataset)=(schooner|mine|letters|notes)")  # files that they write
WHOLE = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in PAGES[1:]}


def test_a_link_within_the_project_leads_to_a_file() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"\]\(([^)\s#]+)[^)]*\)|(?:src|srcset)=\"([^\"]+)", text)
        places = [place for pair in named for place in pair if place and not place.startswith("http")]
        assert [place for place in places if not (page.parent / place).exists()] == [], page.name


def test_every_link_has_words() -> None:
    """Sphinx would put a page's title between empty brackets; where the sources are read, nothing does."""
    empty = [link for page in PAGES for link in re.findall(r"\[\]\([^)]*\)", page.read_text(encoding="utf-8"))]
    assert empty == []


def test_a_file_that_a_page_names_is_in_the_project() -> None:
    made_by_the_reader = (
        "reciprocal_rank.py",
        "schooner.yaml",
        "letters.yaml",
        "typical/",
        "ln_ranks.sql",
    )
    path = re.compile(r"`((?:rbpx|conf|tests|experiments|benchmarks)/[\w./-]+)`|\{file\}`([^`]+)`")
    found = [each for page in PAGES[1:] for each in path.findall(PART.sub("", page.read_text(encoding="utf-8")))]
    named = [one or other for one, other in found]
    absent = [name for name in named if not (PROJECT / name).exists()]
    assert len(named) > 20
    assert [name for name in absent if not name.endswith(made_by_the_reader)] == []


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = re.findall(r"\]\(([\w/-]+)\.md\)", WHOLE["index.md"].partition("\n## ")[2])
    assert sorted(listed) == sorted({page.removesuffix(".md") for page in WHOLE} - {"index"})


def test_the_rooms_are_listed_as_imports_are_held() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    (held,) = (each for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "layers")
    listed = re.findall(r"^1\. (.*)", WHOLE["contributing/index.md"], re.MULTILINE)
    rooms = [re.findall(r"(?:^|; |, )`(\w+)`", line) for line in listed]
    assert [sorted(line) for line in rooms] == [sorted(re.findall(r"\w+", layer)) for layer in held["layers"]]


def test_every_generated_part_has_a_page() -> None:
    assert sorted(name for page in WHOLE.values() for name in PART.findall(page)) == sorted(PARTS)


def test_what_pages_list_is_what_the_code_says() -> None:
    assert [page for page, text in WHOLE.items() if filled(text) != text] == [], "`make reference` writes them anew"


def test_no_meaning_is_of_a_column_that_is_gone() -> None:
    assert set(meanings.COLUMNS) == {column.name for columns in COLUMNS.values() for column in columns}


def commands() -> set[str]:
    """Every line of rbpx in a block of a page, from `-m rbpx` on."""
    found = set[str]()
    for page in PAGES:
        written = PART.sub("", page.read_text(encoding="utf-8"))  # by hand: examples of verbs are tested with the verbs
        for block in re.findall(r"```(?:text|bash)\n(.*?)```", written, re.DOTALL):
            lines = block.replace("\\\n", " ").split("\n")
            found |= {line[line.index("-m rbpx") :] for line in lines if "-m rbpx " in line and "..." not in line}
    return found


def test_every_command_that_is_shown_is_a_right_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not run: its verb, groups, keys and values. `make nightly` composes each by Hydra, and runs those that it can."""
    own = tmp_path / "cfg"
    write_own_folder(own)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text("run,S\na,1M\n")  # which an import names as a value
    lines, wrong = commands(), {}
    assert len(lines) > 150
    for line in lines:
        if "reciprocal_rank" not in line:  # a law that the reader adds
            try:
                requests_of(shlex.split(line)[2:], own if OF_READER.search(line) else None)
            except Exception as problem:
                wrong[line] = str(problem)
    assert wrong == {}
