"""A text on a page: views in, HTML that needs no network and no other file out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rbpx.analyses.view.analysis import Reading, View
from rbpx.display.passage import GRADES, RANKS
from rbpx.display.visible import visible

NATS: Final = (0.5, 2.0, 5.0)  # where a colour ends, when nats are coloured
_HERE: Final = Path(__file__).resolve().parent


def page(views: Sequence[View]) -> str:
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


def _data(views: Sequence[View]) -> dict[str, Any]:
    nats = [f"to {NATS[0]} nats", *(f"to {end:g}" for end in NATS[1:]), "beyond"]
    grades = {"rank": {"ends": RANKS, "names": GRADES}, "nats": {"ends": NATS, "names": nats}}
    return {"grades": grades, "views": [_view(view) for view in views]}


def _view(view: View) -> dict[str, Any]:
    """Texts are written once for all models that cut the document alike."""
    cuts: list[tuple[tuple[int, ...], tuple[str | None, ...]]] = []
    for reading in view.readings:
        if (reading.positions, reading.texts) not in cuts:
            cuts.append((reading.positions, reading.texts))
    return {
        "title": f"{view.dataset}, document {view.doc_id} ({view.source_id})",
        "cuts": [{"positions": positions, "texts": [_shown(text) for text in texts]} for positions, texts in cuts],
        "readings": [_reading(reading, cuts.index((reading.positions, reading.texts))) for reading in view.readings],
        "pair": len(view.readings) == 2,
    }


def _reading(reading: Reading, cut: int) -> dict[str, Any]:
    ranks = [int(rank) if rank == int(rank) else rank for rank in reading.ranks]
    nats = [float(f"{each:.4g}") for each in reading.nats]
    facts = {"name": reading.name, "run_id": reading.run.run_id, "cut": cut, "rank": ranks, "nats": nats}
    best = [[[_shown(text), float(f"{each:.3g}")] for text, each in of_place] for of_place in reading.best]
    return facts | ({"best": best} if best else {})


def _shown(text: str | None) -> str:
    return "\N{REPLACEMENT CHARACTER}" if text is None else visible(text)
