"""Items of Python source: those that come with rbpx, and how others are made of a standard library."""

import ast
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from omegaconf import OmegaConf

from experiments.ladder.python_items import KINDS, items_of
from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import draw, read_items, read_source, read_stdlib, text_hash
from tests.support.places import CONF, EXPERIMENTS

FILES = dict(read_stdlib())
FEW = [(name, text) for name, text in FILES.items() if name.startswith(("email/", "json/", "http/", "asyncio/"))]
N = 40


# ------------------------------------------------------------------------------------------- those that come with rbpx


@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_items_come_with_rbpx_each_from_a_place_of_its_own(kind: str) -> None:
    items = read_items(f"python_{kind}")
    assert len({(row["file"], row["context"]) for _, row in items}) == len(items) == 500
    for name, row in items:
        assert name == f"{row['file']}:{row['line']}"
        assert 100 <= len(row["context"]) <= 800
        assert len(set(row["choices"])) == len(row["choices"]) == (2 if kind == "brackets" else 3)
        assert row["right"] in range(len(row["choices"]))


@pytest.mark.parametrize("kind", ["identifiers", "keywords"])
def test_without_the_context_nothing_tells_which_choice_is_right(kind: str) -> None:
    """The shortest and the first of the three are right a third of the time, within four standard deviations."""
    rows = [row for _, row in read_items(f"python_{kind}")]
    shortest = sum(min(row["choices"], key=len) == row["choices"][row["right"]] for row in rows)
    first = sum(row["right"] == 0 for row in rows)
    for right in (shortest, first):
        assert abs(right - len(rows) / 3) < 4 * (len(rows) * 2 / 9) ** 0.5


def test_each_bracket_is_right_in_half_of_the_items_whatever_was_opened_last() -> None:
    rows = [row for _, row in read_items("python_brackets")]
    assert Counter(row["choices"][row["right"]] for row in rows) == {")": 250, "]": 250}
    last = [re.findall(r"[([]", re.sub(r"\".*?\"|'.*?'", "", row["context"]))[-1:] for row in rows]
    kinds = Counter((row["right"], *each) for row, each in zip(rows, last, strict=True))
    assert all(abs(kinds[right, opener] - 125) <= 12 for right in (0, 1) for opener in "([")  # but for odd comments


@pytest.mark.parametrize("kind", KINDS)
def test_the_sample_is_the_text_that_studies_were_recorded_of(kind: str) -> None:
    named = OmegaConf.load(CONF / "dataset" / f"python_{kind}.yaml")
    dataset = DatasetConfig(**OmegaConf.to_container(named))
    source = read_source(dataset.kind, None, dataset)
    recorded = re.search(rf"# texts: .*python_{kind} (\w+)", (EXPERIMENTS / "ladder_tasks.yaml").read_text())
    assert recorded is not None
    assert text_hash(draw(source, 10_000, 42)).startswith(recorded[1])


# --------------------------------------------------------------------------------------------------- how they are made


@cache
def items(kind: str) -> list[dict[str, Any]]:
    return items_of(kind, FEW, N)


def place_of(row: dict[str, Any]) -> int:
    """The character of the file at which the choice begins that is right: on the line of the row."""
    text, asked = FILES[row["file"]], row["context"] + row["choices"][row["right"]]
    lines = [line + "\n" for line in text.split("\n")]
    begin = sum(map(len, lines[: row["line"] - 1]))
    ends = range(begin, begin + len(lines[row["line"] - 1]))
    (start,) = (end for end in ends if text.startswith(asked, end - len(row["context"])))
    return start


@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_the_context_in_its_file_is_the_right_choice_and_the_others_stand_there_too(kind: str) -> None:
    assert len({(row["file"], place_of(row)) for row in items(kind)}) == len(items(kind)) == N
    for row in items(kind):
        for choice in row["choices"]:
            assert re.search(rf"(?<!\w){re.escape(choice.strip())}", FILES[row["file"]]) or kind == "brackets"


def test_a_keyword_argument_is_one_that_python_sees() -> None:
    """Parsed from the whole file: an argument of a call begins where the choice does."""
    for row in items("keywords")[::8]:
        text, start = FILES[row["file"]], place_of(row)
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
    for row in items("brackets")[::15]:
        text, start = FILES[row["file"]], place_of(row)
        ast.parse(text)
        with pytest.raises(SyntaxError, match="does not match opening parenthesis"):
            ast.parse(text[:start] + row["choices"][1 - row["right"]] + text[start + 1 :])
