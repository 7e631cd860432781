"""The layers of rbpx, from the settings that hold them: a list from the top, with what each package says of itself."""

import ast
import re
import tomllib
from pathlib import Path

from ext.markdown import name, plain

PROJECT = Path(__file__).parents[2]


def layers() -> str:
    """Each package with the first line of its docstring, and the single modules by name."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in settings["tool"]["importlinter"]["contracts"] if c["id"] == "layers"]
    lines = []
    for layer in contract["layers"]:
        modules = [module.strip() for module in re.split(r"[:|]", layer)]
        rooms = [module for module in modules if (PROJECT / "rbpx" / module).is_dir()]
        said = [f"{name(module)}: {plain(_first_line(module).rstrip('.'))}" for module in rooms]
        said += (
            [", ".join(name(module) for module in modules if module not in rooms)] if len(rooms) < len(modules) else []
        )
        lines.append(f"1. {'; '.join(said)}")
    return "\n".join(lines)


def _first_line(module: str) -> str:
    path = PROJECT / "rbpx" / f"{module}.py"
    path = path if path.is_file() else PROJECT / "rbpx" / module / "__init__.py"
    return str(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))).split("\n")[0]
