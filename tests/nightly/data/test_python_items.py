"""All items made of the standard library: what is asked stands there, the wrong choices could, chance is chance."""

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rbpx.data.corpus import read_items, read_stdlib
from rbpx.data.python_items import KINDS
from tests.support.commands import here

FILES = dict(read_stdlib())


def place_of(name: str, row: dict[str, Any]) -> int:
    """The character of the file at which the choice begins that is right: on the line of the item's name."""
    text, asked = FILES[row["file"]], row["context"] + row["choices"][row["right"]]
    lines = [line + "\n" for line in text.split("\n")]
    number = int(name.rsplit(":", 1)[1])
    begin = sum(map(len, lines[: number - 1]))
    ends = range(begin, begin + len(lines[number - 1]))
    (start,) = (end for end in ends if text.startswith(asked, end - len(row["context"])))
    return start


@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_the_context_in_its_file_is_the_right_choice(kind: str) -> None:
    items = list(read_items(f"python_{kind}"))
    places = {(row["file"], place_of(name, row)) for name, row in items}
    assert len(items) == len(places) == 500
    assert all(100 <= len(row["context"]) <= 800 for _, row in items)
    assert all(len(set(row["choices"])) == len(row["choices"]) for _, row in items)


@pytest.mark.parametrize("kind", ["identifiers", "keywords"])
def test_the_wrong_choices_stand_in_the_same_file(kind: str) -> None:
    for _, row in read_items(f"python_{kind}"):
        for choice in row["choices"]:
            assert re.search(rf"(?<!\w){re.escape(choice.strip())}", FILES[row["file"]])


def test_a_keyword_argument_is_one_that_python_sees() -> None:
    """Parsed from the whole file: an argument of a call begins where the choice does."""
    for name, row in list(read_items("python_keywords"))[::8]:
        text, start = FILES[row["file"]], place_of(name, row)
        start += text[start] == " "
        line, column = text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1)
        passed = {
            (each.arg, each.lineno, each.col_offset)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
            for each in node.keywords
        }
        assert (row["choices"][row["right"]].strip(" ="), line, column) in passed


def test_the_other_bracket_would_be_an_error() -> None:
    items = list(read_items("python_brackets"))
    assert Counter(row["choices"][row["right"]] for _, row in items) == {")": 250, "]": 250}
    last = [re.findall(r"[([]", re.sub(r"\".*?\"|'.*?'", "", row["context"]))[-1:] for _, row in items]
    kinds = Counter((row["right"], *each) for (_, row), each in zip(items, last, strict=True))
    assert all(abs(kinds[right, opener] - 125) <= 12 for right in (0, 1) for opener in "([")  # but for odd comments
    for name, row in items[::15]:
        text, start = FILES[row["file"]], place_of(name, row)
        ast.parse(text)
        with pytest.raises(SyntaxError, match="does not match opening parenthesis"):
            ast.parse(text[:start] + row["choices"][1 - row["right"]] + text[start + 1 :])


@pytest.mark.parametrize("kind", ["identifiers", "keywords"])
def test_without_the_context_nothing_tells_which_choice_is_right(kind: str) -> None:
    """The most frequent, the shortest and the first of the three are right a third of the time, within four sd."""
    items = read_items(f"python_{kind}")
    scores = {
        "frequent": lambda row, choice: FILES[row["file"]].count(choice),
        "short": lambda row, choice: -len(choice),
        "first": lambda row, choice: -row["choices"].index(choice),
    }
    for score in scores.values():
        right = sum(
            max(row["choices"], key=lambda choice: score(row, choice)) == row["choices"][row["right"]]
            for _, row in items
        )
        assert abs(right - 500 / 3) < 4 * (500 * 2 / 9) ** 0.5


def test_a_task_is_measured_and_scored_by_its_name(cwd: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store")
    here("measure", "model=ladder", "size=3k", "dataset=python_brackets", "limit=12", *store, cwd=cwd, check=0)
    (row,) = json.loads(here("items", "--format", "json", "resamples=50", *store, cwd=cwd, check=0).stdout)[:1]
    assert (row["chance"], row["n_items"], row["dataset"]) == (0.5, 12, "python_brackets")
