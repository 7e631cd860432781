"""Renders a report as one HTML page that needs no network."""

import base64
import json
import re
import zlib
from functools import cache
from html import unescape
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rbpx.display.chart.colours import config, variables
from rbpx.display.chart.figure import Figure
from rbpx.display.section import GRADES
from rbpx.display.table import Column, Row, statuses_of
from rbpx.display.terminal import shown_columns
from rbpx.display.vocabulary import UNKNOWN, true_minus
from rbpx.files.digest import cache_folder, digest, read_cache, write_cache
from rbpx.questions.registry import analysis
from rbpx.report.contents import MOST_OPEN, PageGroup, Report
from rbpx.status import Status

_HERE: Final = Path(__file__).resolve().parent
_BUNDLE: Final = "window.vegaEmbed = vegaEmbed;"  # the only importable name in vl-convert 1.9


def page(report: Report) -> str:
    """The page of a report."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = _cell
    environment.filters["shown_columns"] = shown_columns
    environment.filters["typeset"] = _typeset
    charts: dict[str, Any] = {}  # by anchor

    def placed(figure: Figure, anchor: str) -> str:
        charts[anchor] = figure.spec
        return anchor

    def glimpse(part: PageGroup) -> list[Figure]:
        """The figure for the card of a group, if groups are few."""
        drawn = [figure for section in part.sections[:1] for figure in section.figures if isinstance(figure, Figure)]
        return drawn[:1] if len(report.parts) <= MOST_OPEN else []

    environment.filters["placed"] = placed
    environment.tests["on_card"] = lambda name: analysis(name).on_card
    return environment.get_template("page.html.jinja").render(
        report=report,
        glimpse=glimpse,
        most_open=MOST_OPEN,
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup((_HERE / "page.js").read_text(encoding="utf-8")),
        vega=_packed(_vega()) if report.has_contents else "",
        themes={theme: variables(theme) for theme in ("light", "dark")},
        config=config(None),
        grades=GRADES,
        charts=lambda: _packed(json.dumps(charts, separators=(",", ":"))),  # last, when all figures have their place
    )


@cache
def _vega() -> str:
    """The library that draws the figures; bundling it takes seconds, once on each machine."""
    kept = cache_folder() / f"vega-{metadata.version('vl-convert-python')}-{digest(_BUNDLE)}.json"
    script = read_cache(kept).get("script")
    if not isinstance(script, str):
        script = vl_convert.javascript_bundle(_BUNDLE)
        write_cache(kept, {"script": script})
    return script


def _packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@cache  # most texts of a page stand there several times
def _typeset(text: str) -> Markup:
    """Renders a sentence in HTML with subscripts and superscripts; names stay as they are."""
    safe = str(escape(true_minus(text)))
    safe = re.sub(r"\bRBP_(\d+|k)\b", r"RBP<sub>\1</sub>", safe)
    safe = re.sub(r"\b(S|D|C|k|step)\^(−?(?:[α-ω]|[\d.]*\d))(_k)?", r"\1<sup>\2\3</sup>", safe)
    safe = re.sub(r"([α-ω]|L|S|D|C)_(k|f|A|B|S|D|C|ref)\b", r"\1<sub>\2</sub>", safe)
    return Markup(re.sub(r"(?<=[)>])\^(δ|N)", r"<sup>\1</sup>", safe))


def _raw(column: Column, row: Row, told: str) -> str | None:
    """The raw value of an entry; None if its text is exact."""
    raw = "|".join("" if v is None else f"{v:.7g}" if isinstance(v, float) else str(v) for v in column.values(row))
    shown = told.replace(",", "") if column.is_number else re.sub(r"<[^>]*>", "", _typeset(told))
    return None if raw == unescape(shown) or (raw == "" and told == UNKNOWN) else raw


def _cell(row: Row, column: Column, is_shown: bool) -> Markup:
    """Renders a table cell in as little HTML as possible, since a page has tens of thousands of them."""
    told = column.text(row)
    raw, text = _raw(column, row, told), escape(true_minus(told)) if column.is_number else _typeset(told)
    is_doubt = column.tells_status and statuses_of(row)[0] is not Status.ok
    marks = [] if column.is_number else ["class=doubt" if is_doubt else "class=t"]
    marks += [] if is_shown else ["hidden"]
    if raw is not None:
        marks.append(f"data-v={raw}" if re.fullmatch(r"[\w.+|-]+", raw) else f'data-v="{escape(raw)}"')
    return Markup(f"<td{''.join(f' {mark}' for mark in marks)}>{text}")
