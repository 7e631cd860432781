"""Writes the page of a text: HTML that needs no network and no other file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rbpx.analyses.view.analysis import Reading, Viewed
from rbpx.display.passage import GRADES, RANKS
from rbpx.display.visible import visible

NATS: Final = (0.5, 2.0, 5.0)  # where a colour ends, when nats are coloured
_HERE: Final = Path(__file__).resolve().parent


def page(views: Sequence[Viewed]) -> str:
    """The page of some documents."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("view.html.jinja").render(
        views=views,
        style=Markup((_HERE / "view.css").read_text(encoding="utf-8")),
        script=Markup((_HERE / "view.js").read_text(encoding="utf-8")),
        data=Markup(_script_safe(_data(views))),
    )


def _script_safe(value: Any) -> str:
    """JSON that no text in it can end the script of."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _data(views: Sequence[Viewed]) -> dict[str, Any]:
    nats = [f"to {NATS[0]} nats", *(f"to {end:g}" for end in NATS[1:]), "beyond"]
    grades = {"rank": {"ends": RANKS, "names": GRADES}, "nats": {"ends": NATS, "names": nats}}
    return {"grades": grades, "views": [_view(view) for view in views]}


def _view(view: Viewed) -> dict[str, Any]:
    """Texts are written once for all models that cut the document alike."""
    cut_by = [tuple((token.position, token.text) for token in reading.tokens) for reading in view.readings]
    cuts = list(dict.fromkeys(cut_by))
    return {
        "title": view.title,
        "cuts": [{"positions": [at for at, _ in cut], "texts": [_shown(text) for _, text in cut]} for cut in cuts],
        "readings": [_reading(each, cuts.index(cut)) for each, cut in zip(view.readings, cut_by, strict=True)],
        "pair": len(view.readings) == 2,
    }


def _reading(reading: Reading, cut: int) -> dict[str, Any]:
    ranks = [int(token.rank) if token.rank == int(token.rank) else token.rank for token in reading.tokens]
    nats = [float(f"{token.nats:.4g}") for token in reading.tokens]
    facts = {"name": reading.name, "run_id": reading.run.run_id, "cut": cut, "rank": ranks, "nats": nats}
    best = [[[_shown(text), float(f"{each:.3g}")] for text, each in token.best] for token in reading.tokens]
    return facts | ({"best": best} if any(best) else {})


def _shown(text: str | None) -> str:
    return "\N{REPLACEMENT CHARACTER}" if text is None else visible(text)
