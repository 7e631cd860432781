"""The layers of rbpx, from the settings that hold them: a table from the top, with what each module says of itself."""

import ast
import re
import tomllib
from pathlib import Path

from ext.markdown import name, plain, table

PROJECT = Path(__file__).parents[2]


def layers() -> str:
    """Each module with the first line of its docstring; a rule of dashes between layers would say no more."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in settings["tool"]["importlinter"]["contracts"] if c["id"] == "layers"]
    rows = []
    for number, layer in enumerate(contract["layers"], 1):
        for place, module in enumerate(re.split(r"[:|]", layer)):
            rows.append([str(number) if place == 0 else "", name(module.strip()), plain(_first_line(module.strip()))])
    return table(["layer", "module", "in, and out"], rows)


def _first_line(module: str) -> str:
    path = PROJECT / "rbpx" / f"{module}.py"
    path = path if path.is_file() else PROJECT / "rbpx" / module / "__init__.py"
    return str(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))).split("\n")[0]
