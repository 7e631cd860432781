"""Figures in files, for a column of a paper: as wide as asked, and no text on another."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from rbpx.questions.registry import analyses
from tests.support.asked import WORDS, few
from tests.support.commands import here
from tests.support.reports import store_of

DRAWN = [name for name, each in analyses().items() if each.draws and not each.measures]
OVERLAPS = """
[...document.querySelectorAll('svg text')].filter(each => each.getAttribute('opacity') !== '0')
    .map(each => [each.textContent, each.getBoundingClientRect()])
    .filter(([said, box]) => said && box.width)
    .flatMap(([one, a], at, all) => all.slice(at + 1)
        .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        .map(([other]) => one + ' on ' + other))
"""


@pytest.fixture(scope="module")
def store(place: Path) -> Path:
    return store_of(place.parent / "store")


def asked(name: str, store: Path) -> list[str]:
    words = [word for word in WORDS.get(name, ()) if not word.startswith(("base=", "variant="))]
    sizes = {"compare": ["a=drawn/1k", "b=drawn/100k", "dataset=prose"]}
    return [name, *sizes.get(name, words), *few(name), "--store", str(store)]


@pytest.mark.parametrize("name", DRAWN)
def test_figures_of_a_column_are_as_wide_as_asked_and_no_text_lies_on_another(
    name: str, store: Path, cwd: Path, browser: Any
) -> None:
    look = ("--format", "svg", "--output", "figures", "width=3.3", "font_size=8")
    answer = here(*asked(name, store), *look, cwd=cwd, writes=True)
    if answer.returncode:
        assert answer.stderr.count("\n") == 1
        return
    pictures = list((cwd / "figures").glob("*.svg"))
    page = browser.new_page()
    for picture in pictures:
        assert re.fullmatch(r"[\w.-]+", picture.name)
        root = ElementTree.parse(picture).getroot()
        assert float(root.attrib["width"]) == pytest.approx(3.3 * 96, abs=1)
        page.goto(picture.as_uri())
        assert page.evaluate(OVERLAPS) == [], picture.name
    page.close()
