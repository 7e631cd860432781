"""Reads one document of a text, token by token, which it selects if the request names none."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import duckdb

from rbpx.config.text.dataset import HARNESS
from rbpx.errors import RbpxError
from rbpx.files.escapes import visible
from rbpx.questions.view import ViewKeys
from rbpx.runs.group import Group
from rbpx.runs.points.items import documents_of_items, in_common, item_answers, item_views, telling_items
from rbpx.runs.run import Run, grouped
from rbpx.runs.select.side import name_of
from rbpx.store.sql import ask
from rbpx.store.store import Record

_SHORTEST: Final = 32  # fewest scored tokens of a document that is selected automatically


class DocumentTokens(NamedTuple):
    """One document under one model, a row for each scored token; `best` are the best tokens, if kept (`best=5`)."""

    run: Run
    name: str
    tokens: Sequence[Record]


class DocumentView(NamedTuple):
    """One document under all requested models, of which the last, in `group`, is shown first.

    `rule` says why it was selected, `readings` are by family and S. For each of them `item` has the item of which the
    document is the target or right choice, and `context` is what the models read before it.
    """

    group: Group
    dataset: str
    doc_id: int
    title: str
    rule: str
    readings: Sequence[DocumentTokens]
    item: Sequence[Record] = ()
    context: str | None = None

    @property
    def asked(self) -> Sequence[DocumentTokens]:
        """The last model, or the two that were named."""
        return self.readings if len(self.readings) == 2 else self.readings[-1:]


def token_text(text: str | None) -> str:
    """The text of a token, or a sign where unknown."""
    return "\N{REPLACEMENT CHARACTER}" if text is None else visible(text)


def read_document(
    connection: duckdb.DuckDBPyConnection, members: Sequence[tuple[Group, Run]], request: ViewKeys
) -> DocumentView:
    """Reads the requested document, or an informative one, under every model; RbpxError where it has no token."""
    (group, last), runs = members[-1], [run for _, run in members]
    ends = tuple(of(runs, key=attrgetter("non_embedding_params")) for of in (min, max))
    read = ends if request.doc is None else runs  # two models suffice to select a document
    rows = ask(connection, "view_documents", run_ids=[run.run_id for run in read]).to_pylist()
    names = {row["doc_id"]: row["source_id"] for row in rows}
    answers = [item_answers(connection, run.run_id, of.ties) for of, run in members if of.first.protocol == HARNESS]
    answers = in_common(answers) if answers and all(each.of_items for each in answers) else []
    if request.doc is not None:
        doc_id, rule = request.doc, "as asked for"
    elif answers:
        (doc_id, *_), rule = telling_items(answers, 1), "the item that gains most from the first model to the last"
    else:
        doc_id, rule = _choose_document(rows, *ends)
    if doc_id not in names:
        raise RbpxError(
            f"doc={doc_id} has no scored token of {last.dataset}; {len(names)} documents have, from {min(names)} to "
            f"{max(names)}"
        )
    readings = [*_readings(connection, members, doc_id, names[doc_id])]
    viewed = DocumentView(
        group, last.dataset, doc_id, f"{last.dataset}, document {doc_id} ({names[doc_id]})", rule, readings
    )
    if not answers or doc_id not in answers[0].item_I:
        return viewed
    (item,) = item_views(runs, answers, [doc_id], documents_of_items(connection, request.store, last.run_id))
    of_models = [
        {"model": name_of(run), "right": "yes" if of["is_right"] else "no"} | of
        for run, of in zip(runs, item["readings"], strict=True)
    ]
    return viewed._replace(item=of_models, context=item["context"])


def _choose_document(rows: Sequence[Record], first: Run, last: Run) -> tuple[int, str]:
    rate = {
        (row["run_id"], row["doc_id"]): row["nats"] / row["n_tokens"] for row in rows if row["n_tokens"] >= _SHORTEST
    }
    documents = sorted(doc_id for run_id, doc_id in rate if run_id == first.run_id and (last.run_id, doc_id) in rate)
    if not documents:
        return min(row["doc_id"] for row in rows), f"the first; none has {_SHORTEST} scored tokens"
    if first is last:
        documents.sort(key=lambda doc_id: rate[last.run_id, doc_id])
        return documents[len(documents) // 2], "the median one by nats per token"
    chosen = max(documents, key=lambda doc_id: rate[first.run_id, doc_id] - rate[last.run_id, doc_id])
    return chosen, f"it gains most nats per token from {name_of(first)} to {name_of(last)}"


def _readings(
    connection: duckdb.DuckDBPyConnection, members: Sequence[tuple[Group, Run]], doc_id: int, source_id: str
) -> Iterator[DocumentTokens]:
    best: dict[tuple[str, int], list[Record]] = {}
    for row in ask(connection, "best_tokens", run_ids=[run.run_id for _, run in members], doc_id=doc_id).to_pylist():
        texts = zip(row["texts"], row["nats"], strict=True)
        best[row["run_id"], row["position"]] = [{"text": text, "nats": nats} for text, nats in texts]
    tokens: dict[str, list[Record]] = {}
    for ties, own in grouped(members, lambda member: member[0].ties.value).items():
        run_ids = [run.run_id for _, run in own]
        rows = ask(connection, "viewed_tokens", run_ids=run_ids, doc_id=doc_id, ties=ties).to_pylist()
        tokens |= grouped(rows, lambda row: row.pop("run_id"))
    for group, run in members:
        names: Record = {"dataset": run.dataset, "doc_id": doc_id, "source_id": source_id, "model": name_of(run)}
        names |= {"run_id": run.run_id, "ties": group.ties.value}
        rows = tokens.get(run.run_id, [])
        yield DocumentTokens(
            run, names["model"], [{**names, **row, "best": best.get((run.run_id, row["position"]))} for row in rows]
        )
