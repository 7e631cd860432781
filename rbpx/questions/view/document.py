"""Reads one document of a text, token by token, under some models; chooses it where none was asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError
from rbpx.files.visible import visible
from rbpx.runs.group import Group, Run
from rbpx.runs.points.items import Answers, documents_of_items, item_answers, item_views, telling_items
from rbpx.runs.select.side import name_of
from rbpx.store.sql import ask
from rbpx.store.store import Record

_SHORTEST: Final = 32  # scored tokens that a document has, to be chosen


@dataclass(frozen=True, eq=False)
class Reading:
    """One document under one model: a row for each scored token.

    `position` is the index of the token in the document; `text` is None where it is not in the store, `rank` under the
    tie rule, `nats` -logprob. `best` are the texts and nats of the best tokens there, None where they were not kept
    (`measure best=5`).
    """

    run: Run
    tokens: Sequence[Record]

    @property
    def name(self) -> str:
        """The name of the model."""
        return name_of(self.run)


@dataclass(frozen=True, eq=False)
class Viewed:
    """One document under all models that were asked for; the last one is shown first.

    Attributes:
        group: the group of the last reading.
        doc_id: the document.
        source_id: its name in the source.
        rule: why this document was chosen.
        readings: by family and S; at least one.
        item: a row for each reading, of the item whose target, or right choice, the document is; none for texts.
        context: what models read before it; None for texts, and where its source is not here any more.
    """

    group: Group
    doc_id: int
    source_id: str
    rule: str
    readings: Sequence[Reading]
    item: Sequence[Record] = ()
    context: str | None = None

    @property
    def dataset(self) -> str:
        """The text that the document is of."""
        return self.group.first.dataset

    @property
    def title(self) -> str:
        """The name of the document."""
        return f"{self.dataset}, document {self.doc_id} ({self.source_id})"

    @property
    def asked(self) -> Sequence[Reading]:
        """The last model, or the two that were named."""
        return self.readings if len(self.readings) == 2 else self.readings[-1:]


def shown(text: str | None) -> str:
    """The text of a token; a sign where it is not known."""
    return "\N{REPLACEMENT CHARACTER}" if text is None else visible(text)


def view(connection: duckdb.DuckDBPyConnection, members: Sequence[tuple[Group, Run]], request: Request) -> Viewed:
    """Read the document that a request asks for, or one that tells most, under every model.

    Raises:
        RbpxError: the document does not exist or has no scored token.
    """
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
    readings = [_reading(connection, *member, doc_id, names[doc_id]) for member in members]
    viewed = Viewed(group, doc_id, names[doc_id], rule, readings)
    if not answers or doc_id >= len(answers[0].nats_I):
        return viewed
    (item,) = item_views(runs, answers, [doc_id], documents_of_items(connection, request.store, last.run_id))
    of_models = [
        {"model": name_of(run), "right": "yes" if of["is_right"] else "no"} | of
        for run, of in zip(runs, item["readings"], strict=True)
    ]
    return replace(viewed, item=of_models, context=item["context"])


def _answers(connection: duckdb.DuckDBPyConnection, members: Sequence[tuple[Group, Run]]) -> list[Answers]:
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


def _reading(connection: duckdb.DuckDBPyConnection, group: Group, run: Run, doc_id: int, source_id: str) -> Reading:
    best = {
        row["position"]: [{"text": text, "nats": nats} for text, nats in zip(row["texts"], row["nats"], strict=True)]
        for row in ask(connection, "best_tokens", run_id=run.run_id, doc_id=doc_id).to_pylist()
    }
    tokens = ask(connection, "viewed_tokens", run_id=run.run_id, doc_id=doc_id, ties=group.ties.value).to_pylist()
    names = {"dataset": run.dataset, "doc_id": doc_id, "source_id": source_id, "model": name_of(run)}
    names |= {"run_id": run.run_id, "ties": group.ties.value}
    return Reading(run, [{**names, **token, "best": best.get(token["position"])} for token in tokens])
