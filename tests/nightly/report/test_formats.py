"""Figures in files, for a column of a paper: as wide as asked, and no text on another."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from rbpx.questions.registry import analyses
from tests.support.asked import WORDS, few
from tests.support.commands import here
from tests.support.reports import SIZES, store_of
from tests.support.synthetic import Truth

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
    truths = {"prose": Truth(S=SIZES[:4]), "code": Truth(S=SIZES[:4], alpha=0.14)}
    return store_of(place.parent / "store", texts=truths, n=20)


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


def test_one_figure_goes_into_a_file_and_several_into_a_folder(store: Path, cwd: Path) -> None:
    words = ("klaw", "dataset=prose", "resamples=25", "--store", store)
    here(*words, "--format", "svg", "--output", "one.svg", "legend=none", "font=Courier", cwd=cwd, check=0, writes=True)
    text = (cwd / "one.svg").read_text()
    assert "Courier" in text
    assert "role-legend" not in text
    here(*words, "--format", "pdf", "--output", "one.pdf", cwd=cwd, check=0, writes=True)
    (box,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ", (cwd / "one.pdf").read_bytes())
    assert float(box) == pytest.approx(6.5 * 72, abs=1)
    answer = here("klaw", *words[2:], "--format", "svg", "--output", "two.svg", cwd=cwd, check=2, writes=True)
    assert answer.stderr.endswith("output=two.svg is one file, and 2 figures can be drawn; name a folder: output=two\n")
    assert not (cwd / "two.svg").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("width=3.3",), "width= is of figures in files: add --format svg, pdf or png, or drop it"),
        (("width=0.1", "--format", "svg"), "width=0.1 is not between 1 and 40 inches; give one that is"),
        (("font_size=80", "--format", "pdf"), "font_size=80 is not between 4 and 40 points; give one that is"),
        (("legend=middle", "--format", "svg"), "legend"),
    ],
)
def test_a_look_that_is_none_is_refused(words: tuple[str, ...], says: str, store: Path, cwd: Path) -> None:
    answer = here("klaw", *words, "--store", store, cwd=cwd, check=2)
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_names_of_strangers_steer_no_terminal_and_end_no_line_in_md_and_tex(cwd: Path, tmp_path: Path) -> None:
    family = "[bold]x[/] </script> &lt; \x1b[31mRED\x1b[0m \u202eabc\u202c a|b\n\n$x$ \\end{table}"
    rows = [
        {"family": family, "size": f"s{i}", "S": 10**i, "dataset": "d", "loss_nats": 6 - i / 2} for i in (4, 5, 6, 7)
    ]
    file, store = tmp_path / "theirs.json", tmp_path / "store"
    file.write_text(json.dumps(rows))
    here("import", file, "source=them", "--store", store, cwd=cwd, check=0)
    for form in ("md", "tex"):
        shown = here("fit", "resamples=20", "--format", form, "--store", store, cwd=cwd, check=0).stdout
        assert "x1b[31mRED" in shown.replace("\\textbackslash{}", "").replace("\\[", "[").replace("\\\\", "")
        assert not [line for line in shown.splitlines() if not line.isprintable()]
        if form == "md":
            assert "\\&lt;" in shown
        else:
            assert "\\textbackslash{}end\\{table\\}" in shown
