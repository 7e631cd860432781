"""Answers `view`: one document of each text under the selected models."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from math import exp
from typing import Final

import duckdb

from rbpx.display.section import Passage, Piece, grade
from rbpx.display.section import TextReading as Read
from rbpx.display.table import Table, table_of
from rbpx.display.vocabulary import short, whole
from rbpx.errors import RbpxError, number_of
from rbpx.files.escapes import visible
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.questions.view import ViewKeys
from rbpx.questions.view.document import DocumentTokens, DocumentView, read_document, token_text
from rbpx.runs.group import By, Group
from rbpx.runs.run import grouped
from rbpx.runs.select.groups import select
from rbpx.runs.select.side import Side, runs_by_text
from rbpx.spelling import typed
from rbpx.store.store import Record

_SURPRISES: Final = 8  # places whose best tokens are listed
_MOST_RANKS: Final = 20
_GAP: Final = Piece("…", None, "not scored")


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: ViewKeys) -> list[Result]:
    """Reads one document of each text under its models; raises RbpxError where a= or b= names no run."""
    sides = [Side.read(key, name) for key, name in (("a", request.a), ("b", request.b)) if name is not None]
    views = list[DocumentView]()
    for members in runs_by_text(groups):
        if sides:
            named = [side.one_of(run for _, run in members) for side in sides]
            members = [member for run in named for member in members if member[1] is run]
        if members:
            views.append(read_document(connection, members, request))
    if sides and not views:
        named_so = " and ".join(f"{side.key}={side.name}" for side in sides)
        raise RbpxError(f"{named_so}: no such model was measured on the texts asked about")
    return [
        Result(
            [each.group for each in own],
            [row for each in own for reading in each.readings for row in reading.tokens],
            [table for each in own for table in _tables(each)],
            [f"{'; '.join(map(_sentence, own))}."],
            passages=[_passage(each, _ends(each)) for each in own],
            texts=[_passage(each, each.asked) for each in own],
        )
        for own in grouped(views, lambda each: each.group.title_of_family).values()
    ]


def _tables(view: DocumentView) -> Iterator[Table]:
    for reading in view.asked:
        rows = sorted((token for token in reading.tokens if token["best"]), key=lambda token: -token["nats"])
        title = f"The most surprising places, and what {reading.name} thought best there"
        told = [row | {"text": _quoted(row["text"]), "best": _best(row)} for row in rows[:_SURPRISES]]
        yield SURPRISES.of(title, told, view.title)
    if view.item:
        told = [row | {"ranks": _ranks(row)} for row in view.item]
        yield ITEM.of(f"Item {view.doc_id}", told, view.dataset)


def _sentence(view: DocumentView) -> str:
    few = view.readings[:: -max(1, len(view.readings) - 1)]
    if view.item:
        p = {row["model"]: f"{row['model']} with probability {short(row['probability'])}" for row in view.item}
        return f"{view.title}: the right answer is given by {', by '.join(p[reading.name] for reading in few)}"
    others = "".join(f", that of {reading.name} for {_first(reading):.0%}" for reading in few[1:])
    n_tokens = number_of(len(few[0].tokens), "token")
    return f"{view.title}: the likeliest token of {few[0].name} is right for {_first(few[0]):.0%} of {n_tokens}{others}"


def _ends(view: DocumentView) -> Sequence[DocumentTokens]:
    ordered = sorted(view.readings, key=lambda reading: reading.run.non_embedding_params)
    return ordered if len(ordered) == 1 else [ordered[0], ordered[-1]]


def _passage(view: DocumentView, readings: Sequence[DocumentTokens]) -> Passage:
    return Passage(
        f"{view.dataset}-{view.doc_id}",
        view.title,
        f"Chosen: {view.rule}.",
        typed("view", dataset=view.dataset, doc=view.doc_id, format="html", output="text.html"),
        tuple(_read(view, reading) for reading in readings),
    )


def _read(view: DocumentView, reading: DocumentTokens) -> Read:
    tokens, n = reading.tokens, max(len(reading.tokens), 1)
    about = (
        f"{number_of(len(tokens), 'scored token')}, {sum(token['nats'] for token in tokens) / n:.3f} nats per token, "
        f"rank 1 for {_first(reading):.0%}"
    )
    pieces = []
    if view.context is not None:
        pieces.append(Piece(visible(view.context), None, "context"))
    elif tokens and tokens[0]["position"] > 0:
        pieces.append(_GAP)
    for at, token in enumerate(tokens, 1):
        tip = f"rank {token['rank']:,g}, probability {short(exp(-token['nats']))}"
        pieces.append(Piece(token_text(token["text"]), grade(token["rank"]), tip))
        if at < len(tokens) and tokens[at]["position"] - token["position"] > 1:
            pieces.append(_GAP)
    return Read(reading.name, about, tuple(pieces))


def _first(reading: DocumentTokens) -> float:
    return float(sum(token["rank"] == 1 for token in reading.tokens) / max(len(reading.tokens), 1))


def _quoted(text: str | None) -> str:
    return token_text(None) if text is None else json.dumps(visible(text), ensure_ascii=False)


def _best(token: Record) -> str | None:
    return ", ".join(f"{_quoted(of['text'])} {exp(-of['nats']):.2g}" for of in token["best"])


def _ranks(row: Record) -> str:
    more = " …" if len(row["ranks"]) > _MOST_RANKS else ""
    return " ".join(f"{rank:g}" for rank in row["ranks"][:_MOST_RANKS]) + more


SURPRISES: Final = table_of(
    "surprises", ("token", "text"), ("at", "position", whole), ("rank", "rank", whole),
    ("best, and their probability", "best"),
)  # fmt: skip
ITEM: Final = table_of(
    "item", ("model", "model"), ("right", "right"), ("probability", "probability", short),
    ("ranks of its tokens", "ranks"),
)  # fmt: skip


QUESTION = Question(answer, select=partial(select, by=By.size))
