"""The tree of rbpx: few modules flat, folders that say in a docstring what they are, modules that stay small."""

import ast
from pathlib import Path

from tests.support.places import PACKAGE

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
    interfaces = (PACKAGE, PACKAGE / "laws", PACKAGE / "measure")  # which people import from, or call
    rooms = [path for path in MODULES if path.name == "__init__.py" and path.parent not in interfaces]
    assert len(rooms) > 20
    for path in rooms:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), named(path)
        rest = tree.body[1:]
        if path.parent.parent == QUESTIONS:  # the registry reads what a question says of itself
            *imported, keys, says = rest
            assert all(isinstance(each, ast.Import | ast.ImportFrom) for each in imported), named(path)
            assert isinstance(keys, ast.ClassDef), named(path)
            assert isinstance(says, ast.Assign)
            assert ast.unparse(says).startswith("ANALYSIS = Analysis("), named(path)
        else:
            assert rest == [], named(path)
