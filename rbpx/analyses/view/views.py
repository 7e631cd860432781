"""A text, token by token: passages for a page and for a terminal; what surprised a model, and items, as tables."""

import json
from collections.abc import Sequence
from math import exp
from typing import Final

from rbpx.analyses.question import Question
from rbpx.analyses.view.analysis import Reading, View, analyse, keep
from rbpx.counts import number_of
from rbpx.display.column import Column, magnitude, text, whole
from rbpx.display.numbers import short
from rbpx.display.passage import Passage, Piece, grade
from rbpx.display.passage import Reading as Read
from rbpx.display.view import Table
from rbpx.display.view import View as Columns
from rbpx.display.visible import visible
from rbpx.groups.item_views import ItemReading

_LONGEST: Final = 240  # tokens on a page, the first ones
_SURPRISES: Final = 8  # places whose best tokens are listed
_MOST_RANKS: Final = 20
_NO_TEXT: Final = "\N{REPLACEMENT CHARACTER}"
_GAP: Final = Piece("…", None, "not scored")


def passages(results: Sequence[View]) -> list[Passage]:
    """The beginning of a document of each text, under the smallest model and the largest."""
    found = []
    for view in results:
        ordered = sorted(view.readings, key=lambda reading: reading.run.non_embedding_params)
        found.append(_passage(view, ordered if len(ordered) == 1 else [ordered[0], ordered[-1]], _LONGEST))
    return found


def texts(results: Sequence[View]) -> list[Passage]:
    """The whole document under the last model, or under both that were named."""
    return [_passage(view, _asked(view)) for view in results]


def tables(results: Sequence[View]) -> list[Table]:
    """What a model held for best where it was surprised most, where that was kept; and an item under every model."""
    found = []
    for view in results:
        for reading in _asked(view):
            places = sorted(range(len(reading.best)), key=lambda i: (-reading.nats[i], i))[:_SURPRISES]
            title = f"The {len(places)} places of the most nats, and what {reading.name} held for best there"
            rows, note = [(reading, at) for at in places], "Beside each token that it held for best: its probability."
            found.append(SURPRISES.table(title, rows, _title(view), note=note))
        if view.item is not None:
            of_models = list(zip(view.readings, view.item.readings, strict=True))
            found.append(ITEM.table(f"Item {view.item.item}", of_models, view.dataset))
    return found


def _asked(view: View) -> Sequence[Reading]:
    return view.readings if len(view.readings) == 2 else view.readings[-1:]


def _title(view: View) -> str:
    return f"{view.dataset}, document {view.doc_id} ({view.source_id})"


def _passage(view: View, readings: Sequence[Reading], longest: int | None = None) -> Passage:
    n_tokens = max(len(reading.positions) for reading in readings)
    n_left = n_tokens if longest is None else longest
    cut = f" Its first {longest} of {number_of(n_tokens, 'scored token')}." if n_tokens > n_left else ""
    return Passage(
        name=f"{view.dataset}-{view.doc_id}",
        title=_title(view),
        rule=f"Chosen: {view.rule}.{cut}",
        command=f"python -m rbpx view dataset={view.dataset} doc={view.doc_id} --format html --output text.html",
        readings=tuple(_read(view, reading, longest) for reading in readings),
    )


def _read(view: View, reading: Reading, longest: int | None) -> Read:
    about = (
        f"{number_of(len(reading.ranks), 'scored token')}, {reading.nats_a_token:.3f} nats a token, rank 1 for "
        f"{reading.hit_share:.0%}"
    )
    pieces = []
    if view.item is not None and view.item.context is not None:
        pieces.append(Piece(visible(view.item.context), None, "context"))
    elif reading.gap_before:
        pieces.append(_GAP)
    columns = reading.texts, reading.ranks, reading.nats, reading.gaps_after
    for token, rank, nats, gap in list(zip(*columns, strict=True))[:longest]:
        tip = f"rank {rank:,g}, probability {short(exp(-nats))}"
        pieces.append(Piece(_NO_TEXT if token is None else visible(token), grade(rank), tip))
        if gap:
            pieces.append(_GAP)
    return Read(reading.name, about, tuple(pieces))


def _quoted(token: str | None) -> str:
    return _NO_TEXT if token is None else json.dumps(visible(token), ensure_ascii=False)


def _best(place: int, heading: str) -> Column[tuple[Reading, int]]:
    def best(row: tuple[Reading, int]) -> str | None:
        of_row = row[0].best[row[1]]
        return f"{_quoted(of_row[place][0])} {exp(-of_row[place][1]):.2g}" if place < len(of_row) else None

    return text(heading, f"best_{place + 1}", best, spare=place)


def _ranks(of: ItemReading) -> str:
    return " ".join(f"{rank:g}" for rank in of.ranks[:_MOST_RANKS]) + (" …" if len(of.ranks) > _MOST_RANKS else "")


SURPRISES: Final = Columns[tuple[Reading, int]](
    "surprises",
    (
        text("token", "text", lambda row: _quoted(row[0].texts[row[1]])),
        whole("at", "position", lambda row: row[0].positions[row[1]]),
        whole("rank", "rank", lambda row: row[0].ranks[row[1]]),
        [_best(place, heading) for place, heading in enumerate(("best", "second", "third", "fourth", "fifth"))],
    ),
)
ITEM: Final = Columns[tuple[Reading, ItemReading]](
    "item",
    (
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
    ),
)  # fmt: skip


def _page(results: Sequence[View]) -> str:
    from rbpx.analyses.view.page import page  # with the templates of pages, which a table does not need

    return page(results)


QUESTION = Question(analyse, keep, tables, passages=passages, texts=texts, page=_page)
