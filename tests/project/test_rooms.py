"""The tree of rbpx: few modules flat, folders that say in a docstring what they are, modules that stay small."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.places import DOCS, PACKAGE, PROJECT

FLAT = {"__init__", "__main__", "cores", "errors", "status", "ties", "version"}
LONGEST = 400  # lines; 300 is the aim
MOST = 16  # modules of a folder
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = [path for path in MODULES if path.name == "__init__.py" and path.parent != PACKAGE]
QUESTIONS = PACKAGE / "analyses"
GUIDE = (DOCS / "contributing" / "index.md").read_text(encoding="utf-8")
WHERE = [  # what is looked for, files, names in them: the rows of a table
    (looked_for, re.findall(r"\{file\}`([^`]+)`", files), re.findall(r"`([^`]+)`", names))
    for looked_for, files, names in re.findall(r"^\| (wh[^|]+) \| ([^|]+) \| ([^|]+) \|$", GUIDE, re.MULTILINE)
]


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_few_modules_lie_outside_the_rooms() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == FLAT


@pytest.mark.parametrize("path", ROOMS, ids=named)
def test_a_room_says_what_it_is_in_one_docstring_and_does_nothing(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    rest = tree.body[1:]
    if path.parent.parent == QUESTIONS:  # the registry reads what a question says of itself
        imported, says = rest
        assert ast.unparse(imported) == "from rbpx.analyses.registry import Analysis"
        assert isinstance(says, ast.Assign)
        assert ast.unparse(says).startswith("ANALYSIS = Analysis(")
    else:
        assert rest == []


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_stays_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_a_folder_has_few_modules() -> None:
    folders = {path.parent for path in MODULES}
    many = {named(each): len(list(each.glob("[!_]*.py"))) for each in folders}
    assert {name: n for name, n in many.items() if n > MOST} == {}


def test_the_guide_answers_ten_questions_of_a_newcomer() -> None:
    assert len(WHERE) >= 10


@pytest.mark.parametrize(("looked_for", "files", "names"), WHERE, ids=[looked_for for looked_for, _, _ in WHERE])
def test_what_a_newcomer_looks_for_is_where_the_guide_says(looked_for: str, files: list[str], names: list[str]) -> None:
    text = "\n".join((PROJECT / file).read_text(encoding="utf-8") for file in files)
    assert names, looked_for
    assert [
        name for name in names if not re.search(rf"^ *(def|class) {name}\b|^{name}\b.* = ", text, re.MULTILINE)
    ] == []
