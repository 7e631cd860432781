"""Hydra is used as its documentation has it: no name of its inside is imported, and one module speaks with it."""

import ast
from pathlib import Path

from tests.support.places import PACKAGE

SPEAKS = {"config/compose.py", "cli/launcher.py"}  # the latter asks which job it is


def imported(path: Path) -> list[str]:
    """The full names that a module imports."""
    tree, names = ast.parse(path.read_text(encoding="utf-8")), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{each.name}" for each in node.names]
    return names


def test_no_module_imports_a_private_name_of_hydra_or_omegaconf() -> None:
    used = {path: imported(path) for path in PACKAGE.rglob("*.py")}
    of_hydra = {path: [name for name in names if name.split(".")[0] == "hydra"] for path, names in used.items()}
    assert {path.relative_to(PACKAGE).as_posix() for path, names in of_hydra.items() if names} == SPEAKS
    for names in used.values():
        assert [n for n in names if n.split(".")[0] in ("hydra", "omegaconf") and "._" in f".{n}"] == []


def test_nothing_of_hydra_is_patched() -> None:
    for name in SPEAKS:
        tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
        stored = [
            node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        ]
        assert [
            ast.unparse(node) for node in stored if ast.unparse(node) not in ("sys.argv", "request.study.name")
        ] == []
