"""Renders documents, token by token, as a self-contained HTML page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rbpx.display.section import GRADES, RANKS
from rbpx.questions.result import Result
from rbpx.questions.view.document import DocumentTokens, DocumentView, token_text

NATS: Final = (0.5, 2.0, 5.0)  # upper limits of the colours when nats are coloured
_HERE: Final = Path(__file__).resolve().parent


def page(results: Sequence[Result]) -> str:
    """Renders the documents of the results."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # tables do not need it
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    views = [view for result in results for view in result.page]
    nats = [f"to {NATS[0]} nats", *(f"to {end:g}" for end in NATS[1:]), "beyond"]
    grades = {"rank": {"ends": RANKS, "names": GRADES}, "nats": {"ends": NATS, "names": nats}}
    style, script = (Markup((_HERE / name).read_text(encoding="utf-8")) for name in ("view.css", "view.js"))
    data = Markup(script_safe({"grades": grades, "views": [_view(view) for view in views]}))
    return environment.get_template("view.html.jinja").render(views=views, style=style, script=script, data=data)


def script_safe(value: Any) -> str:
    """JSON in which no text can end the enclosing script."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _view(view: DocumentView) -> dict[str, Any]:
    """Data of a document; models that cut the text into the same tokens share its texts."""
    cut_by = [tuple((token["position"], token["text"]) for token in reading.tokens) for reading in view.readings]
    cuts = list(dict.fromkeys(cut_by))
    return {
        "title": view.title,
        "cuts": [{"positions": [at for at, _ in cut], "texts": [token_text(text) for _, text in cut]} for cut in cuts],
        "readings": [_reading(each, cuts.index(cut)) for each, cut in zip(view.readings, cut_by, strict=True)],
        "pair": len(view.readings) == 2,
    }


def _reading(reading: DocumentTokens, cut: int) -> dict[str, Any]:
    best = [[[token_text(of["text"]), _short(of["nats"])] for of in token["best"] or ()] for token in reading.tokens]
    facts = {"name": reading.name, "run_id": reading.run.run_id, "cut": cut}
    facts |= {"rank": [_short(token["rank"], 16) for token in reading.tokens]}
    facts |= {"nats": [_short(token["nats"]) for token in reading.tokens]}
    return facts | ({"best": best} if any(best) else {})


def _short(value: float, digits: int = 4) -> float:
    """Rounds to significant digits, and to an integer where it is one."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
