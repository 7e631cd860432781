"""The tree of rbpx: few modules flat, folders that say in a docstring what they are, modules that stay small."""

import ast
import re
from pathlib import Path

from tests.support.places import DOCS, PACKAGE, PROJECT

FLAT = {"__init__", "__main__", "cores", "errors", "status", "ties", "spelling", "version"}
LONGEST = 400  # lines; 300 is the aim
MOST = 16  # modules of a folder
MODULES = sorted(PACKAGE.rglob("*.py"))
QUESTIONS = PACKAGE / "questions"


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_few_modules_lie_outside_the_rooms_and_none_is_long() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == FLAT
    n_lines = {named(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: n for name, n in n_lines.items() if n > LONGEST} == {}
    n_modules = {named(folder): len(list(folder.glob("[!_]*.py"))) for folder in {path.parent for path in MODULES}}
    assert {name: n for name, n in n_modules.items() if n > MOST} == {}


def test_a_room_says_what_it_is_in_one_docstring_and_does_nothing() -> None:
    interfaces = (PACKAGE, PACKAGE / "laws")  # whose names people import
    rooms = [path for path in MODULES if path.name == "__init__.py" and path.parent not in interfaces]
    assert len(rooms) > 20
    for path in rooms:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), named(path)
        rest = tree.body[1:]
        if path.parent.parent == QUESTIONS:  # the registry reads what a question says of itself
            imported, says = rest
            assert ast.unparse(imported) == "from rbpx.questions.registry import Analysis", named(path)
            assert isinstance(says, ast.Assign)
            assert ast.unparse(says).startswith("ANALYSIS = Analysis("), named(path)
        else:
            assert rest == [], named(path)


def test_what_a_newcomer_looks_for_is_where_the_guide_says() -> None:
    """What is looked for, files, names in them: the rows of a table."""
    guide = (DOCS / "contributing" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (wh[^|]+) \| ([^|]+) \| ([^|]+) \|$", guide, re.MULTILINE)
    assert len(rows) >= 10
    for looked_for, files, names in rows:
        paths, known = re.findall(r"\{file\}`([^`]+)`", files), re.findall(r"`([^`]+)`", names)
        text = "\n".join((PROJECT / path).read_text(encoding="utf-8") for path in paths)
        absent = [name for name in known if not re.search(rf"^ *(def|class) {name}\b|^{name}\b.* = ", text, re.M)]
        assert known, looked_for
        assert absent == [], looked_for
