"""Pages that show what commands print: run them on the demo's store, and put what they print now in its place.

`make tutorial` runs it on every such page. A block of `bash` is followed by the `text` that its last command prints.
Sentences are folded at 80 characters. Between the two `<!-- only: PATTERN -->` keeps the lines in which the pattern is
found. Between `<!-- demo -->` and `<!-- /demo -->` is what `make demo` prints. In a notebook the cells' outputs are
replaced.

Each page begins with a copy of the demo's store, or with none if it sets RBPX_STORE. So no page depends on another, and
what one measures or registers stays out of the store that it was copied from.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
PAGES = tuple(ROOT / name for name in ("README.md", "docs/tutorial.md", "docs/decision.md", "docs/example.ipynb"))
PAIR = re.compile(
    r"```bash\n(?P<commands>[^`]*)```\n+"
    r"(?P<kept><!-- only: (?P<only>[^\n]*) -->\n+)?"
    r"```text\n(?P<shown>.*?)```",
    re.DOTALL,
)
DEMO = re.compile(r"<!-- demo -->\n```text\n.*?```\n<!-- /demo -->", re.DOTALL)
MEASURED = "model=ladder dataset=pydoc,stdlib"  # what `make demo` sweeps over
OWN_STORE = "export RBPX_STORE="
LONGEST = 80


def told(page: str) -> Iterator[tuple[list[str], str]]:
    """The command lines of each block that has an output, and that output."""
    for pair in PAIR.finditer(page):
        yield lines_of(pair["commands"]), pair["shown"]


def lines_of(commands: str) -> list[str]:
    """The commands of a block; one may go on behind a backslash."""
    return commands.replace("\\\n", " ").strip().split("\n")


def excerpt(printed: str, only: str | None = None) -> str:
    """What a page shows of what was printed."""
    lines = [line.rstrip() for line in printed.strip("\n").split("\n") if only is None or re.search(only, line)]
    return "\n".join(part for line in lines for part in textwrap.wrap(line, LONGEST, break_on_hyphens=False) or [""])


def retell(page: str, folder: Path, environment: dict[str, str]) -> str:
    """A page with the outputs of now; its commands run in that folder."""

    def printed_by(command: str) -> str:
        words = shlex.split(command)
        words = [sys.executable, *words[1:]] if words[0] == "python" else words
        done = subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    def again(pair: re.Match[str]) -> str:
        printed = [printed_by(command) for command in lines_of(pair["commands"])][-1]
        shown = excerpt(printed, pair["only"])
        return f"```bash\n{pair['commands']}```\n\n{pair['kept'] or ''}```text\n{shown}\n```"

    def demo(_: re.Match[str]) -> str:
        printed = printed_by(f"python -m rbpx -m {MEASURED}").rstrip()
        return f"<!-- demo -->\n```text\n{excerpt(printed)}\n```\n<!-- /demo -->"

    return PAIR.sub(again, DEMO.sub(demo, page))


def execute(notebook: Path, folder: Path) -> nbformat.NotebookNode:
    """A notebook with the outputs of now; it runs in that folder."""
    cells = nbformat.read(notebook, as_version=4)
    NotebookClient(cells, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    for cell in cells.cells:
        cell.metadata.pop("execution", None)  # when it ran
    return cells


def demo_copy(folder: Path) -> Path:
    """A copy of the demo's store in that folder, to which a page may add."""
    return Path(shutil.copytree(Path(os.environ.get("RBPX_STORE", "store")), folder / "store"))


def main(pages: list[Path]) -> None:
    """Tell these pages again; the store is that of the working directory, or RBPX_STORE."""
    for path in pages:
        with TemporaryDirectory() as folder:
            place = Path(folder)
            page = path.read_text(encoding="utf-8")
            (place / "experiments").symlink_to(ROOT / "experiments")
            store = place / "own" if OWN_STORE in page else demo_copy(place)
            if path.suffix == ".ipynb":
                nbformat.write(execute(path, place), path)
            else:
                environment = {**os.environ, "COLUMNS": str(LONGEST), "RBPX_STORE": store.name}
                path.write_text(retell(page, place, environment), encoding="utf-8")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or list(PAGES))
