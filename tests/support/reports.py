"""Reports as their readers get them: stores with known laws, pages of them, and what stands in a page."""

import base64
import json
import re
import zlib
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support import synthetic
from tests.support.composed import here
from tests.support.synthetic import Truth, write_store

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FAST = "resamples=40"  # enough for an interval
TEXTS = {"prose": Truth(S=SIZES[:4]), "code": Truth(S=SIZES[:4], alpha=0.14)}


def store_of(root: Path, families: tuple[str, ...] = ("drawn",), n: int = 20) -> Path:
    """A store of a small vocabulary, each family on each text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "V", 3_000)
        for seed, (family, text) in enumerate((family, text) for family in families for text in TEXTS):
            write_store(root, TEXTS[text], seed, n_documents=n, n_tokens=50, dataset=text, family=family)
    return root


def report(store: Path, output: Path, cwd: Path, *words: str) -> str:
    """The text of the page that `python -m rbpx report` writes."""
    here("report", FAST, *words, "--store", store, "--output", output, cwd=cwd, check=0)
    return output.read_text(encoding="utf-8")


@dataclass
class Drawn:
    """A figure of a page: its name, what it says to those who do not see it, its chart, and its SQL."""

    name: str
    says: str
    spec: dict[str, Any]
    sql: str


class _Page(HTMLParser):
    """What a browser would find, read by the standard library alone."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[dict[str, str]]] = {}
        self.figures: dict[str, Drawn] = {}
        self._figure: Drawn | None = None
        self._names: list[str] = []
        self._row: list[str] | None = None
        self._raw: str | None = None
        self._in = ""
        self._held = ""
        self._table = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        a = dict(attrs)
        if tag == "figure":
            self._figure = Drawn(str(a["id"]), "", {}, "")
            self.figures[self._figure.name] = self._figure
        elif "data-file" in a:
            self._table = str(a["data-file"]).removesuffix(".csv")
            self.tables[self._table] = []
            self._names = []
        elif "plot" in str(a.get("class")).split() and self._figure is not None:
            self._figure.says = str(a["aria-label"])
        elif tag == "th":
            self._names.append(str(a["data-n"]))
        elif tag == "tr":
            self._end_row()
            self._row = []
        elif tag == "td":
            self._end_cell()
            self._in, self._held, self._raw = tag, "", a.get("data-v")
        elif (tag == "pre" and self._figure is not None) or a.get("id") == "charts":
            self._in, self._held = tag, ""

    def handle_data(self, data: str) -> None:
        self._held += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "figure":
            self._figure = None
        elif tag in ("tbody", "table"):
            self._end_row()
        elif tag == self._in == "pre" and self._figure is not None:
            self._figure.sql = self._held
        elif tag == self._in == "script" and self._held:
            for name, spec in json.loads(zlib.decompress(base64.b64decode(self._held))).items():
                self.figures[name].spec = spec
        if tag == self._in:
            self._in = ""

    def _end_cell(self) -> None:
        """HTML leaves out where a cell ends."""
        if self._in == "td" and self._row is not None:
            text = self._held.strip()
            self._row.append(("" if text == "–" else text) if self._raw is None else self._raw)
            self._in = ""

    def _end_row(self) -> None:
        self._end_cell()
        if self._row:
            self.tables[self._table].append(dict(zip(self._names, self._row, strict=True)))
        self._row = None


def read(text: str) -> _Page:
    """The tables and figures of a page."""
    return _Page(text)


def words_of(text: str) -> str:
    """What a page says, without its marks and scripts, indices beside their letters."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", bare))
