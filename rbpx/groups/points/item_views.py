"""Single items of a task as people look at them: context and target in words, ranks and probability under each model.

A store keeps tokens of targets, not contexts, so those are read again from where the items came from; where that has
changed or gone, the context is not known.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np

from rbpx.config.hydra.compose import restored
from rbpx.data.corpus import Document, text_hash
from rbpx.data.samples import sample_here
from rbpx.errors import MeasureError, RbpxError
from rbpx.groups.group import Run
from rbpx.groups.points.items import Answers
from rbpx.store.named import open_store
from rbpx.store.sql.queries import ask

_ASKED: Final = ("dataset", "limit", "seed")


@dataclass(frozen=True)
class ItemReading:
    """One item under one model.

    Attributes:
        size: of the model.
        is_right: by log-likelihood among choices, or greedily where there are none.
        probability: of the right choice among the choices, or of the target.
        ranks: of the tokens of the target, in order.
    """

    size: str
    is_right: bool
    probability: float
    ranks: tuple[float, ...]


@dataclass(frozen=True)
class ItemView:
    """One item.

    Attributes:
        item: its number in the sample.
        context: what the models read; None where its source is not here any more.
        target: what followed; None as before.
        readings: by size.
    """

    item: int
    context: str | None
    target: str | None
    readings: tuple[ItemReading, ...]


def documents_of_items(connection: duckdb.DuckDBPyConnection, store: str, run_id: str) -> dict[int, Document]:
    """The documents that a run read, by doc_id, from where they came; none where that has not the same text any more.

    Args:
        connection: to the store.
        store: its name.
        run_id: of a run on items.
    """
    (row,) = ask(connection, "run_request", run_id=run_id).to_pylist()
    config = json.loads(row["config"]) if isinstance(row["config"], str) else row["config"]
    values = {name: config.get(name) for name in _ASKED}
    if None in values.values():
        return {}
    try:
        request = restored(values, _ASKED)
        assert request.dataset is not None, "a run is of a text"
        drawn = sample_here(request.dataset, request.limit, request.seed, open_store(store))
    except (RbpxError, MeasureError):  # a file that has gone, a record of another version
        return {}
    if drawn is None or text_hash(drawn.documents) != row["text_hash"]:
        return {}
    return {document.doc_id: document for document in drawn.documents}


def item_views(
    runs: Sequence[Run], answers: Sequence[Answers], items: Sequence[int], documents: dict[int, Document]
) -> list[ItemView]:
    """Some items of a task.

    Args:
        runs: of the models, on one text.
        answers: of each run.
        items: which, by number.
        documents: of `documents_of_items`; a right choice has the number of its item.
    """
    views = []
    for item in items:
        readings = tuple(
            ItemReading(run.size, bool(of.right_I[item]), float(of.probability_I[item]), tuple(of.ranks[item].tolist()))
            for run, of in zip(runs, answers, strict=True)
        )
        document = documents.get(item)
        context = target = None
        if document is not None and document.part is not None:
            at = document.part.n_context
            context, target = document.text[:at], document.text[at:]
        views.append(ItemView(item, context, target, readings))
    return views


def telling_items(answers: Sequence[Answers], most: int) -> list[int]:
    """The items that the largest model gains and loses most over the smallest, in nats; half of them each."""
    gains_I = answers[0].nats_I - answers[-1].nats_I
    order = np.argsort(-gains_I, kind="stable").tolist()
    half = most // 2
    chosen = order if len(order) <= most else [*order[: most - half], *order[-half:]]
    return [int(item) for item in chosen]
