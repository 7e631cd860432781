"""One page: a report in, an HTML text that needs no network and no other file out."""

import json
from pathlib import Path
from typing import Any, Final

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rbpx.figures.colours import config
from rbpx.figures.figure import Undrawn
from rbpx.figures.sheet import Cell
from rbpx.report.contents import Report

__all__ = ["MARK", "page"]

MARK: Final = '<meta name="generator" content="rbpx'  # by which a report is known
_HERE: Final = Path(__file__).resolve().parent
_OPEN_UP_TO: Final = 3  # parts: more are folded, so that the page can be read
_BUNDLE: Final = "window.vega = vega; window.vegaLite = vegaLite;"


def page(report: Report) -> str:
    """The page of a report."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.tests["undrawn"] = lambda figure: isinstance(figure, Undrawn)
    environment.filters["raw"] = _raw
    themes = {theme: config(theme) for theme in ("light", "dark")}
    return environment.get_template("page.html.jinja").render(
        report=report,
        unfolded=len(report.parts) <= _OPEN_UP_TO,
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup((_HERE / "page.js").read_text(encoding="utf-8")),
        # a script ends at the first </script, wherever it stands
        vega=Markup(vl_convert.javascript_bundle(_BUNDLE).replace("</script", "<\\/script")) if report.parts else "",
        themes=themes,
    )


def _raw(cell: Cell) -> str | None:
    """What a cell stands for, where its text does not say all of it."""
    texts = ["" if value is None else str(value) for value in cell.values]
    raw = "|".join(texts)
    return None if raw == cell.text else raw


def as_json(value: Any) -> str:
    """JSON in one line, without blanks."""
    return json.dumps(value, separators=(",", ":"))
