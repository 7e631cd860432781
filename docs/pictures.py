"""Every picture of the pages, on light and on dark ground, from the demo's store and the studies: `make gallery`.

The gallery's are those that docs/gallery.md shows, each by the command above it; they go to docs/_static/gallery with
their rows as CSV; the first screen of the report, by Chromium, to
docs/report-light.png and -dark.png; figures of the page on open questions to docs/_static.
"""

import csv
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import vl_convert
from playwright.sync_api import sync_playwright
from retell import ROOT, demo_copy
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import rbpx
from rbpx.display.chart.colours import GROUNDS, INKS, SERIES, config
from rbpx.report.pictures import with_indices

DOCS = ROOT / "docs"
OPEN = {  # figures of the page on open questions, by their names in a folder of figures
    "closure-errors": "ladder-on-stdlib-ranks-errors",
    "closure-residuals": "ladder-on-stdlib-ranks-residuals",
    "regimes-r2": "ladder-on-stdlib-regimes-r2",
    "regimes-r2-pydoc": "ladder-on-pydoc-regimes-r2",
}
PLACE: Final = DOCS / "_static" / "gallery"
THEMES: Final = ("light", "dark")
CUT: Final = {"text": (24, "ladder/3.2m")}  # lines of the terminal that are shown, and the model whose rows are data
WIDTH = 420  # of a chart without its axes, in points
COLUMNS = 112  # of the terminals


class Picture(NamedTuple):
    """A picture, the commands that bring in what is drawn, and the words of the one that draws it, behind `rbpx`."""

    name: str
    before: list[list[str]]
    words: list[str]


def pictures() -> list[Picture]:
    """Those of the gallery, in its order."""
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    found = []
    for block, name in re.findall(r"```text\n(.*?)```.*?_static/gallery/(\w+)-light", page, re.DOTALL):
        *before, words = (shlex.split(line)[3:] for line in block.splitlines())
        found.append(Picture(name, before, words))
    return found


def main() -> None:
    """Draw all pictures; the store is that of the working directory, or RBPX_STORE."""
    with TemporaryDirectory() as folder:
        store = demo_copy(Path(folder))
        report(store, Path(folder))  # of the demo alone: some pictures measure more
        for picture in pictures():
            draw(picture, store)


def draw(picture: Picture, store: Path) -> None:
    """One picture of the gallery under both themes, and its rows."""
    for command in picture.before:
        printed_by(command, store)
    PLACE.mkdir(exist_ok=True)
    n_lines, model = CUT.get(picture.name, (None, None))
    rows = printed_by([*picture.words, "--format", "csv"], store)
    (PLACE / f"{picture.name}.csv").write_text(of_model(rows, model), encoding="utf-8")
    for theme in THEMES:
        is_text = picture.words[0] == "view"
        drawn = terminal(picture, store, theme, n_lines) if is_text else chart(picture, store, theme)
        (PLACE / f"{picture.name}-{theme}.svg").write_text(drawn, encoding="utf-8")


def printed_by(words: list[str], store: Path, **environment: str) -> str:
    """What a command prints."""
    known = {**os.environ, "RBPX_STORE": store.name, "COLUMNS": str(COLUMNS), **environment}
    line = [sys.executable, "-m", "rbpx", *words]
    return subprocess.run(line, cwd=store.parent, env=known, stdout=subprocess.PIPE, text=True, check=True).stdout


def of_model(rows: str, model: str | None) -> str:
    """The rows of one model, or all."""
    head, *others = csv.reader(io.StringIO(rows))
    kept = io.StringIO()
    chosen = [row for row in others if model is None or row[head.index("model")] == model]
    csv.writer(kept, lineterminator="\n").writerows([head, *chosen])
    return kept.getvalue()


def chart(picture: Picture, store: Path, theme: str) -> str:
    """The picture that an answer has in Python, as SVG."""
    verb, *keys = picture.words
    asked = dict(key.split("=", 1) for key in keys)
    values = {name: next(csv.reader([value.strip("[]")])) if "[" in value else value for name, value in asked.items()}
    numbers = {name: [int(k) for k in value] if name == "k" else value for name, value in values.items()}
    spec = {**getattr(rbpx.open(store), verb)(**numbers).plot().to_dict(), "width": WIDTH}
    look = config(theme) | {"background": GROUNDS[theme], "padding": 12}
    look["font"] = "Liberation Sans, Arial, Helvetica, sans-serif"
    return with_indices(vl_convert.vegalite_to_svg(spec, config=look))


def terminal(picture: Picture, store: Path, theme: str, n_lines: int | None) -> str:
    """What a terminal with colours shows, as SVG whose letters are text."""
    printed = printed_by(picture.words, store, FORCE_COLOR="1", COLORTERM="truecolor", TERM="xterm-256color")
    lines = printed.rstrip().split("\n")
    shown = "\n".join(lines[:n_lines]) + ("\n…" if n_lines and len(lines) > n_lines else "")
    with Path(os.devnull).open("w") as nowhere:
        screen = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        screen.print(Text.from_ansi(shown))
        drawn = screen.export_svg(
            title=f"python -m rbpx {picture.words[0]}", theme=of_terminal(theme), unique_id=picture.name
        )
    return re.sub(r"@font-face \{.*?\}\n?", "", drawn, flags=re.DOTALL)  # fonts from a network


def of_terminal(theme: str) -> TerminalTheme:
    """The colours of the charts under the names that terminals have for them."""
    ink, black = rgb(INKS[theme]), rgb(INKS["light"])
    blue, orange, green, pink, olive, _, teal, _ = map(rgb, SERIES[theme])
    return TerminalTheme(rgb(GROUNDS[theme]), ink, [black, orange, green, olive, blue, pink, teal, ink])


def rgb(colour: str) -> tuple[int, int, int]:
    """A colour as three numbers."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def report(store: Path, folder: Path) -> None:
    """The first screen of the report, and the figures of the page on open questions."""
    page = folder / "report.html"
    printed_by(["report", "source=measured", "model=ladder", "--output", str(page)], store)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for theme in THEMES:
            tab = browser.new_page(viewport={"width": 1280, "height": 960}, color_scheme=theme)
            tab.goto(page.as_uri())
            tab.wait_for_function("document.documentElement.dataset.drawn === 'all'", timeout=120_000)
            tab.screenshot(path=DOCS / f"report-{theme}.png")
        browser.close()
    figures = folder / "figures"
    printed_by(["report", "source=measured", "model=ladder", "--format", "svg", "--output", str(figures)], store)
    for name, figure in OPEN.items():
        shutil.copy(figures / f"{figure}.svg", DOCS / "_static" / f"open-{name}.svg")


if __name__ == "__main__":
    main()
