"""Pages that show what commands print: run them again on the demo's store, and put what they print now in its place.

`make tutorial` runs it. In a page each block of `bash` is followed by the `text` that its last command prints; lines
longer than 80 characters, the explanations under tables, are left out. In a notebook the cells' outputs are replaced.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient

PAIR = re.compile(r"```bash\n(?P<commands>[^`]*)```\n+```text\n(?P<shown>.*?)```", re.DOTALL)
LONGEST = 80


def told(page: str) -> Iterator[tuple[list[str], str]]:
    """The command lines of each block that has an output, and that output."""
    for pair in PAIR.finditer(page):
        yield pair["commands"].strip().split("\n"), pair["shown"]


def excerpt(printed: str) -> str:
    """What a page shows of what was printed."""
    lines = [line.rstrip() for line in printed.rstrip().split("\n") if len(line.rstrip()) <= LONGEST]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def retell(page: str, folder: Path, environment: dict[str, str]) -> str:
    """A page with the outputs of now; its commands run in that folder."""

    def again(pair: re.Match[str]) -> str:
        printed = ""
        for command in pair["commands"].strip().split("\n"):
            words = shlex.split(command)
            words = [sys.executable, *words[1:]] if words[0] == "python" else words
            done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
            printed = done.stdout
        return f"```bash\n{pair['commands']}```\n\n```text\n{excerpt(printed)}```"

    return PAIR.sub(again, page)


def execute(notebook: Path, folder: Path) -> nbformat.NotebookNode:
    """A notebook with the outputs of now; it runs in that folder."""
    cells = nbformat.read(notebook, as_version=4)
    NotebookClient(cells, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    for cell in cells.cells:
        cell.metadata.pop("execution", None)  # when it ran
    return cells


def main(names: list[str]) -> None:
    """Tell these files again; the store is that of the working directory, or RBPX_STORE."""
    environment = {**os.environ, "COLUMNS": str(LONGEST)}
    for path in map(Path, names):
        if path.suffix == ".ipynb":
            nbformat.write(execute(path, Path.cwd()), path)
        else:
            path.write_text(retell(path.read_text(encoding="utf-8"), Path.cwd(), environment), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
