"""Reads one document of each text, token by token, under every model that was asked for (verb view)."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError
from rbpx.runs.group import Group, Run
from rbpx.runs.points.items import Answers, ItemView, documents_of_items, item_answers, item_views, telling_items
from rbpx.runs.select.side import Side, name_of, runs_by_text
from rbpx.store.sql import ask
from rbpx.store.store import Record, Store

_SHORTEST: Final = 32  # scored tokens that a document has, to be chosen


@dataclass(frozen=True)
class Token:
    """One scored token under one model.

    Attributes:
        position: its index in the document; positions that are missing were not scored.
        text: None where it is not in the store.
        rank: under the tie rule.
        nats: -logprob.
        best: the best tokens there, with their nats; empty where they were not kept (`measure best=5`).
    """

    position: int
    text: str | None
    rank: float
    nats: float
    best: tuple[tuple[str | None, float], ...]


@dataclass(frozen=True)
class Reading:
    """One document under one model."""

    run: Run
    tokens: tuple[Token, ...]

    @property
    def name(self) -> str:
        """The name of the model."""
        return name_of(self.run)

    @property
    def nats_a_token(self) -> float:
        """Mean nats; 0 without tokens."""
        return sum(token.nats for token in self.tokens) / max(len(self.tokens), 1)

    @property
    def hit_share(self) -> float:
        """The share of tokens of rank 1; 0 without tokens."""
        return sum(token.rank == 1 for token in self.tokens) / max(len(self.tokens), 1)


@dataclass(frozen=True, eq=False)
class Viewed:
    """One document under all models that were asked for; the last one is shown first.

    Attributes:
        group: the group of the last reading.
        doc_id: the document.
        source_id: its name in the source.
        rule: why this document was chosen.
        readings: by family and S; at least one.
        item: the item whose target, or right choice, the document is; None for texts.
    """

    group: Group
    doc_id: int
    source_id: str
    rule: str
    readings: tuple[Reading, ...]
    item: ItemView | None

    @property
    def dataset(self) -> str:
        """The text that the document is of."""
        return self.group.first.dataset

    @property
    def title(self) -> str:
        """The name of the document."""
        return f"{self.dataset}, document {self.doc_id} ({self.source_id})"


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Viewed]:
    """Read one document of each text that the request selects, under its models.

    Raises:
        RbpxError: a= or b= names no run, or the document does not exist or has no scored token.
    """
    sides = [Side.read(key, name) for key, name in (("a", request.a), ("b", request.b)) if name is not None]
    chosen = [_chosen(members, sides) for members in runs_by_text(groups)]
    views = [_view(connection, members, request) for members in chosen if members]
    named = " and ".join(f"{side.key}={side.name}" for side in sides)
    if named and not views:
        raise RbpxError(f"{named}: no such model was measured on the texts asked about; see python -m rbpx status")
    return views


def _chosen(members: list[tuple[Group, Run]], sides: Sequence[Side]) -> list[tuple[Group, Run]]:
    """All runs on a text, or those that a= and b= name."""
    named = [side.one_of(run for _, run in members) for side in sides]
    return [member for run in named for member in members if member[1] is run] if sides else members


def _view(connection: duckdb.DuckDBPyConnection, members: list[tuple[Group, Run]], request: Request) -> Viewed:
    group, last = members[-1]
    runs, size = [run for _, run in members], attrgetter("non_embedding_params")
    ends = list({run.run_id: run for run in (min(runs, key=size), max(runs, key=size))}.values())
    read = ends if request.doc is None else runs  # two models suffice to choose a document
    rows = ask(connection, "view_documents", run_ids=[run.run_id for run in read]).to_pylist()
    names = {row["doc_id"]: row["source_id"] for row in rows}
    answers = _answers(connection, members)
    if request.doc is None and answers:
        (doc_id, *_), rule = telling_items(answers, 1), "the item that gains most from the first model to the last"
    elif request.doc is None:
        doc_id, rule = _telling(rows, ends[0], ends[-1])
    else:
        doc_id, rule = request.doc, "as asked for"
    if doc_id not in names:
        is_range = len(names) == max(names) - min(names) + 1
        known = f"{min(names)} to {max(names)}" if is_range else f"{len(names)} others"
        raise RbpxError(f"doc={doc_id} has no scored token of {last.dataset}; documents that have: {known}")
    readings = tuple(_reading(connection, each, run, doc_id) for each, run in members)
    item = None
    if answers and doc_id < len(answers[0].nats_I):
        documents = documents_of_items(connection, request.store, last.run_id)
        (item,) = item_views(runs, answers, [doc_id], documents)
    return Viewed(group, doc_id, names[doc_id], rule, readings, item)


def _answers(connection: duckdb.DuckDBPyConnection, members: list[tuple[Group, Run]]) -> list[Answers]:
    """The answers of each model to the items of a task; none for texts."""
    if any(group.first.protocol != HARNESS for group, _ in members):
        return []
    answers = [item_answers(connection, run.run_id, group.ties) for group, run in members]
    return answers if all(each.of_items for each in answers) else []


def _telling(rows: list[Record], first: Run, last: Run) -> tuple[int, str]:
    """The document to show where none was asked for, and the rule by which it was chosen."""
    nats: dict[int, dict[str, float]] = {}
    for row in rows:
        if row["n_tokens"] >= _SHORTEST:
            nats.setdefault(row["doc_id"], {})[row["run_id"]] = row["nats"] / row["n_tokens"]
    both = {doc_id: of for doc_id, of in nats.items() if {first.run_id, last.run_id} <= of.keys()}
    if not both:
        return min(row["doc_id"] for row in rows), f"the first; none has {_SHORTEST} scored tokens"
    if first is last:
        ordered = sorted(both, key=lambda doc_id: (both[doc_id][last.run_id], doc_id))
        return ordered[len(ordered) // 2], "the median one by nats per token"
    falls = {doc_id: of[first.run_id] - of[last.run_id] for doc_id, of in both.items()}
    chosen = max(falls, key=lambda doc_id: (falls[doc_id], -doc_id))
    return chosen, f"it gains most nats per token from {name_of(first)} to {name_of(last)}"


def _reading(connection: duckdb.DuckDBPyConnection, group: Group, run: Run, doc_id: int) -> Reading:
    best = {
        row["position"]: tuple(zip(row["texts"], row["nats"], strict=True))
        for row in ask(connection, "best_tokens", run_id=run.run_id, doc_id=doc_id).to_pylist()
    }
    rows = ask(connection, "viewed_tokens", run_id=run.run_id, doc_id=doc_id, ties=group.ties.value).to_pylist()
    return Reading(run, tuple(Token(**row, best=best.get(row["position"], ())) for row in rows))


def keep(store: Store, view: Viewed) -> list[Record]:
    """A row for each token under each model; no law is stored."""
    rows: list[Record] = []
    for reading in view.readings:
        names = {"dataset": view.dataset, "doc_id": view.doc_id, "source_id": view.source_id, "model": reading.name}
        names |= {"run_id": reading.run.run_id, "ties": view.group.ties.value}
        for token in reading.tokens:
            best = [{"text": text, "nats": nats} for text, nats in token.best]
            rows.append({**names, **vars(token), "best": best or None})
    return rows
