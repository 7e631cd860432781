"""Counts in words: one function, and no `1 documents` or `document(s)` anywhere."""

import re
from pathlib import Path

import pytest

import rbpx
from rbpx.errors import number_of

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
