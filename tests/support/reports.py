"""Reports as their readers get them: stores with known laws, pages of them, and what stands in a page."""

import base64
import json
import re
import zlib
from dataclasses import dataclass
from html import unescape
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


@dataclass
class Page:
    """What stands in a page, by name: the rows of tables, with all digits, and figures."""

    tables: dict[str, list[dict[str, str]]]
    figures: dict[str, Drawn]


def read(text: str) -> Page:
    """The tables and figures of a page."""
    packed = re.search(r'id="charts">([^<]*)', text)
    specs = json.loads(zlib.decompress(base64.b64decode(packed[1]))) if packed else {}
    figures, tables = {}, {}
    for name, held in re.findall(r'<figure id="([^"]+)">(.*?)</figure>', text, re.S):
        says, sql = (
            unescape(re.search(of, held, re.S)[1]) for of in (' aria-label="([^"]*)"', "<pre[^>]*>(.*?)</pre>")
        )
        figures[name] = Drawn(name, says, specs[name], sql)
    _, *parts = re.split(r'data-file="([^"]+)\.csv"', text)
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        head, _, body = part.partition("</table>")[0].partition("<tbody>")
        names = re.findall(r'<th[^>]* data-n="([^"]*)"', head)
        cells = [map(_cell, row.split("<td")[1:]) for row in body.split("<tr")[1:]]
        tables[name] = [dict(zip(names, row, strict=True)) for row in cells]
    return Page(tables, figures)


def _cell(cell: str) -> str:
    """All digits of what begins behind `<td`; HTML leaves out where it ends."""
    attributes, _, shown = cell.partition(">")
    raw = re.search(r' data-v=(?:"([^"]*)"|(\S+))', attributes)
    said = raw[1] or raw[2] or "" if raw else re.sub(r"<[^>]*>", "", shown).strip()
    return "" if said == "–" else unescape(said)


def words_of(text: str) -> str:
    """What a page says, without its marks and scripts, indices beside their letters."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", bare))
