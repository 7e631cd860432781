"""Items made of the standard library: what is asked stands there, the wrong choices could, and chance is chance."""

import ast
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest

from rbpx.data.corpus import read_stdlib
from rbpx.data.python_items import KINDS, items_of

FILES = dict(read_stdlib())
FEW = [(name, text) for name, text in FILES.items() if name.startswith(("email/", "json/", "http/", "asyncio/"))]
N = 40


@cache
def items(kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Items of some files; those of all are looked at in tests/nightly."""
    return items_of(kind, FEW, N)


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
    places = {(row["file"], place_of(name, row)) for name, row in items(kind)}
    assert len(items(kind)) == len(places) == N
    assert all(100 <= len(row["context"]) <= 800 for _, row in items(kind))
    assert all(len(set(row["choices"])) == len(row["choices"]) for _, row in items(kind))


@pytest.mark.parametrize("kind", ["identifiers", "keywords"])
def test_the_wrong_choices_stand_in_the_same_file(kind: str) -> None:
    for _, row in items(kind):
        for choice in row["choices"]:
            assert re.search(rf"(?<!\w){re.escape(choice.strip())}", FILES[row["file"]])


def test_a_keyword_argument_is_one_that_python_sees() -> None:
    """Parsed from the whole file: an argument of a call begins where the choice does."""
    for name, row in items("keywords")[::8]:
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
    assert Counter(row["choices"][row["right"]] for _, row in items("brackets")) == {")": N / 2, "]": N / 2}
    last = [re.findall(r"[([]", re.sub(r"\".*?\"|'.*?'", "", row["context"]))[-1:] for _, row in items("brackets")]
    kinds = Counter((row["right"], *each) for (_, row), each in zip(items("brackets"), last, strict=True))
    assert all(abs(kinds[right, opener] - N / 4) <= 6 for right in (0, 1) for opener in "([")  # but for odd comments
    for name, row in items("brackets")[::15]:
        text, start = FILES[row["file"]], place_of(name, row)
        ast.parse(text)
        with pytest.raises(SyntaxError, match="does not match opening parenthesis"):
            ast.parse(text[:start] + row["choices"][1 - row["right"]] + text[start + 1 :])


@pytest.mark.parametrize("kind", ["identifiers", "keywords"])
def test_without_the_context_nothing_tells_which_choice_is_right(kind: str) -> None:
    """The most frequent, the shortest and the first of the three are right a third of the time, within four sd."""
    scores = {
        "frequent": lambda row, choice: FILES[row["file"]].count(choice),
        "short": lambda row, choice: -len(choice),
        "first": lambda row, choice: -row["choices"].index(choice),
    }
    for score in scores.values():
        right = sum(
            max(row["choices"], key=lambda choice: score(row, choice)) == row["choices"][row["right"]]
            for _, row in items(kind)
        )
        assert abs(right - N / 3) < 4 * (N * 2 / 9) ** 0.5


def test_items_depend_on_nothing_but_the_files() -> None:
    """Given in another order they give the same items; every file is asked once before one is asked twice."""
    one, other = items("identifiers"), items_of("identifiers", FEW[::-1], N)
    assert one == other
    files = [row["file"] for _, row in one]
    first_round = files[: len(set(files))]
    assert len(set(first_round)) == len(first_round) > 20
    assert len(items_of("identifiers", FEW[:1], N)) < N


def test_what_is_no_clean_python_gives_no_item_and_no_error() -> None:
    """Brackets that close nothing, examples in docstrings, form feeds, lines that end nowhere."""
    lines = [f"    \x0cname_{i} = call_{i}(value_{i}, key_{i}=[item_{i}, other_{i}])\n" for i in range(9)]
    broken = [
        "def f):]\n    return )]a)\n",
        'def g(\n):\n    """def h(a, b1=[c]):\n        d(e, f=[g])\n',
        "def i():\n    '''\n",
    ]
    text = "def j(first, second):\n" + "".join(lines) + "\n" + "".join(broken)
    for kind in KINDS:
        for name, row in items_of(kind, [("a.py", text)]):
            asked = row["context"] + row["choices"][row["right"]]
            line = int(name.removeprefix("a.py:"))
            assert asked in text
            assert text.split("\n")[line - 1].strip("\x0c ").startswith("name_")
