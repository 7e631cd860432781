"""Reads what each run answered to the items of a task, and single items with context and target for display.

A store keeps tokens of targets; contexts are read again from their source, and unknown where it has changed or gone.

Shapes: I items.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.config.compose import restored
from rbpx.config.text.dataset import HARNESS
from rbpx.data.corpus import Document
from rbpx.data.samples import sample_here
from rbpx.errors import MeasureError, RbpxError
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Group
from rbpx.runs.run import Run
from rbpx.store.columns import numbers
from rbpx.store.sql import ask
from rbpx.store.store import Record, Store
from rbpx.ties import Ties

_NUMBERS: Final = (
    *("is_right", "is_right_by_characters", "is_right_by_bytes", "chance", "probability", "nats", "n_bytes_scored"),
    "n_words",
)


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of one run to the items of a task.

    Attributes:
        item_I: number of the item in the sample, ascending, with gaps where items were left out.
        right_I: whether the right choice has the highest log-likelihood; without choices, whether each token is greedy.
        right_by_characters_I: the same over the characters of the choice; NaN without choices.
        chance_I: one over the number of choices; NaN without.
        probability_I: of the right choice among the choices, or of the target where there are none; so is nats_I.
        words_I: of a text; NaN for items.
        tied_I: whether a tie decides: the right choice is as likely as another, and none is likelier; without choices,
            whether greedy decoding depends on one.
        ranks: of the tokens of the right choice or target.
    """

    item_I: npt.NDArray[np.int64]
    right_I: Floats
    right_by_characters_I: Floats
    right_by_bytes_I: Floats
    chance_I: Floats
    probability_I: Floats
    nats_I: Floats
    bytes_I: Floats
    words_I: Floats
    tied_I: npt.NDArray[np.bool_]
    ranks: list[Floats]
    category_I: npt.NDArray[np.object_]
    domain_I: npt.NDArray[np.object_]

    @property
    def of_items(self) -> bool:
        """Whether these are items of a task, not texts."""
        return not np.isfinite(self.words_I).all()

    def at(self, item_I: npt.NDArray[np.int64]) -> "Answers":
        """The answers to some of the items."""
        places = np.searchsorted(self.item_I, item_I)
        columns = {name: value[places] for name, value in vars(self).items() if name != "ranks"}
        return Answers(**columns, ranks=[self.ranks[place] for place in places])


def answers_of(connection: duckdb.DuckDBPyConnection, group: Group) -> list[Answers]:
    """The answers of each run to the items that all of them have; empty where the runs read texts."""
    if group.first.protocol != HARNESS:
        return []
    answers = [item_answers(connection, run.run_id, group.ties) for run in group.runs]
    return in_common(answers) if all(each.of_items for each in answers) else []


def in_common(answers: Sequence[Answers]) -> list[Answers]:
    """Restrict answers to the items that all runs have; tokenizers may join different targets to contexts."""
    common_I = reduce(np.intersect1d, [each.item_I for each in answers])
    return [each.at(common_I) for each in answers] if len(common_I) else []


def item_answers(connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties) -> Answers:
    """The answers of one run under a tie rule."""
    scored = ask(connection, "item_scores", run_id=run_id, ties=ties.value)
    right, characters, n_bytes, chance, probability, nats, scored_bytes, words = (
        numbers(scored[name]).astype(np.float64) for name in _NUMBERS
    )
    ranks = [np.asarray(of) for of in scored["ranks"].to_pylist()]
    category, domain = (np.array(scored[name].to_pylist(), object) for name in ("category", "domain"))
    is_tied = numbers(scored["is_tied"]).astype(bool)
    item_I = numbers(scored["item"]).astype(np.int64)
    return Answers(item_I, right, characters, n_bytes, chance, probability, nats, scored_bytes, words, is_tied, ranks,
                   category, domain)  # fmt: skip


_ASKED: Final = ("dataset", "limit", "seed")


def documents_of_items(connection: duckdb.DuckDBPyConnection, store: str, run_id: str) -> dict[int, Document]:
    """The documents that a run read, by doc_id, from their source; empty where its text has changed."""
    (row,) = ask(connection, "run_request", run_id=run_id).to_pylist()
    config = json.loads(row["config"]) if isinstance(row["config"], str) else row["config"]
    values = {name: config.get(name) for name in _ASKED}
    if None in values.values():
        return {}
    try:
        request = restored(values)
        assert request.dataset is not None, "a run is of a text"
        drawn = sample_here(request.dataset, request.limit, request.seed, Store(store))
    except (RbpxError, MeasureError):  # a missing file, or a record of another version
        return {}
    if drawn is None or drawn.text_hash != row["text_hash"]:
        return {}
    return {document.doc_id: document for document in drawn.documents}


def item_views(
    runs: Sequence[Run], answers: Sequence[Answers], items: Sequence[int], documents: dict[int, Document]
) -> Iterator[Record]:
    """Records of some items of a task; `context` and `target` are None where their source is gone.

    `readings` has for each model its `size`, `is_right`, `probability` and `ranks`, as of `Answers`.
    """
    for item in items:
        document, context, target = documents.get(item), None, None
        if document is not None and document.part is not None:
            at = document.part.n_context
            context, target = document.text[:at], document.text[at:]
        readings: list[Record] = [
            {"size": run.size, "is_right": bool(of.right_I[0]), "probability": float(of.probability_I[0]),
             "ranks": tuple(of.ranks[0].tolist())}
            for run, of in zip(runs, (each.at(np.array([item])) for each in answers), strict=True)
        ]  # fmt: skip
        yield {"item": item, "context": context, "target": target, "readings": readings}


def telling_items(answers: Sequence[Answers], most: int) -> list[int]:
    """The `most` items that the largest model gains and loses most over the smallest, in nats; half of each."""
    if not answers:
        return []
    gains_I = answers[0].nats_I - answers[-1].nats_I
    order = np.argsort(-gains_I, kind="stable").tolist()
    half = most // 2
    chosen = order if len(order) <= most else [*order[: most - half], *order[-half:]]
    return [int(answers[0].item_I[at]) for at in chosen]
