"""Shows a text token by token: in passages, on a page of its own, and in tables of what surprised a model.

The page is HTML that needs no network and no other file.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from math import exp
from pathlib import Path
from typing import Any, Final

from rbpx.display.section import GRADES, RANKS, Passage, Piece, grade
from rbpx.display.section import Reading as Read
from rbpx.display.view import Column, Table, View, magnitude, text, whole
from rbpx.display.vocabulary import short
from rbpx.errors import number_of
from rbpx.files.visible import visible
from rbpx.questions.question import of_parts, one_by_one
from rbpx.questions.result import Result
from rbpx.questions.view.analysis import Reading, Token, Viewed, analyse, keep
from rbpx.runs.points.items import ItemReading
from rbpx.runs.select.ways import in_size

NATS: Final = (0.5, 2.0, 5.0)  # where a colour ends, when nats are coloured
_HERE: Final = Path(__file__).resolve().parent
_LONGEST: Final = 240  # tokens on a page, the first ones
_SURPRISES: Final = 8  # places whose best tokens are listed
_MOST_RANKS: Final = 20
_NO_TEXT: Final = "\N{REPLACEMENT CHARACTER}"
_GAP: Final = Piece("…", None, "not scored")


def page(results: Sequence[Result]) -> str:
    """The page of some documents."""
    views = [view for result in results for view in result.page]
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # which a table does not need
    from markupsafe import Markup

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
    """JSON in which no text can end the script around it."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _data(views: Sequence[Viewed]) -> dict[str, Any]:
    nats = [f"to {NATS[0]} nats", *(f"to {end:g}" for end in NATS[1:]), "beyond"]
    grades = {"rank": {"ends": RANKS, "names": GRADES}, "nats": {"ends": NATS, "names": nats}}
    return {"grades": grades, "views": [_view(view) for view in views]}


def _view(view: Viewed) -> dict[str, Any]:
    """The data of a document; texts are written once for all models that cut it into the same tokens."""
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
    return _NO_TEXT if text is None else visible(text)


@one_by_one
def passages(view: Viewed) -> Iterator[Passage]:
    """The beginning of a document, under the smallest model and the largest."""
    ordered = sorted(view.readings, key=lambda reading: reading.run.non_embedding_params)
    yield _passage(view, ordered if len(ordered) == 1 else [ordered[0], ordered[-1]], _LONGEST)


@one_by_one
def texts(view: Viewed) -> Iterator[Passage]:
    """The whole document under the last model, or under the two that were named."""
    yield _passage(view, _asked(view))


@one_by_one
def tables(view: Viewed) -> Iterator[Table]:
    """The most surprising places with what a model thought best there, if kept; and an item under every model."""
    for reading in _asked(view):
        known = [token for token in reading.tokens if token.best]
        rows = sorted(known, key=lambda token: -token.nats)[:_SURPRISES]
        title = f"The {len(rows)} most surprising places, and what {reading.name} thought best there"
        note = "The probability stands beside each token that it thought best."
        yield SURPRISES.table(title, rows, view.title, note=note)
    if view.item is not None:
        of_models = list(zip(view.readings, view.item.readings, strict=True))
        yield ITEM.table(f"Item {view.item.item}", of_models, view.dataset)


def _asked(view: Viewed) -> Sequence[Reading]:
    return view.readings if len(view.readings) == 2 else view.readings[-1:]


def _passage(view: Viewed, readings: Sequence[Reading], longest: int | None = None) -> Passage:
    n_tokens = max(len(reading.tokens) for reading in readings)
    is_cut = longest is not None and n_tokens > longest
    cut = f" Its first {longest} of {number_of(n_tokens, 'scored token')}." if is_cut else ""
    return Passage(
        name=f"{view.dataset}-{view.doc_id}",
        title=view.title,
        rule=f"Chosen: {view.rule}.{cut}",
        command=f"python -m rbpx view dataset={view.dataset} doc={view.doc_id} --format html --output text.html",
        readings=tuple(_read(view, reading, longest) for reading in readings),
    )


def _read(view: Viewed, reading: Reading, longest: int | None) -> Read:
    tokens = reading.tokens
    about = (
        f"{number_of(len(tokens), 'scored token')}, {reading.nats_a_token:.3f} nats per token, rank 1 for "
        f"{reading.hit_share:.0%}"
    )
    pieces = []
    if view.item is not None and view.item.context is not None:
        pieces.append(Piece(visible(view.item.context), None, "context"))
    elif tokens and tokens[0].position > 0:
        pieces.append(_GAP)
    for at, token in enumerate(tokens[:longest], 1):
        tip = f"rank {token.rank:,g}, probability {short(exp(-token.nats))}"
        pieces.append(Piece(_shown(token.text), grade(token.rank), tip))
        if at < len(tokens) and tokens[at].position - token.position > 1:
            pieces.append(_GAP)
    return Read(reading.name, about, tuple(pieces))


def _quoted(token: str | None) -> str:
    return _NO_TEXT if token is None else json.dumps(visible(token), ensure_ascii=False)


def _best(place: int, heading: str) -> Column[Token]:
    def best(token: Token) -> str | None:
        if place >= len(token.best):
            return None
        text, nats = token.best[place]
        return f"{_quoted(text)} {exp(-nats):.2g}"

    return text(heading, f"best_{place + 1}", best, spare=place)


def _ranks(of: ItemReading) -> str:
    return " ".join(f"{rank:g}" for rank in of.ranks[:_MOST_RANKS]) + (" …" if len(of.ranks) > _MOST_RANKS else "")


SURPRISES: Final = View[Token](
    "surprises",
    text("token", "text", lambda token: _quoted(token.text)),
    whole("at", "position", lambda token: token.position),
    whole("rank", "rank", lambda token: token.rank),
    [_best(place, heading) for place, heading in enumerate(("best", "second", "third", "fourth", "fifth"))],
)
ITEM: Final = View[tuple[Reading, ItemReading]](
    "item",
    text("model", "model", lambda row: row[0].name),
    text(
        "right", "right", lambda row: "yes" if row[1].is_right else "no",
        "by log-likelihood among choices, or greedily where there are none",
    ),
    magnitude(
        "probability", "probability", lambda row: row[1].probability,
        "of the right choice among the choices, or of the target",
    ),
    text("ranks of its tokens", "ranks", lambda row: _ranks(row[1])),
)  # fmt: skip


QUESTION = of_parts(
    analyse,
    keep,
    tables,
    passages=passages,
    texts=texts,
    page=page,
    together="family",
    select=partial(in_size, along=False),
)
