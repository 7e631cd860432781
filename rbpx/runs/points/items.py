"""What each run answered to the items of a task, and single items as people look at them, with context and target.

A store keeps tokens of targets, not contexts, so contexts are read again from where the items came from; where that has
changed or gone, the context is not known.

Shapes: I items.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.config.compose import restored
from rbpx.data.corpus import Document, text_hash
from rbpx.data.samples import sample_here
from rbpx.errors import MeasureError, RbpxError
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Run
from rbpx.store.sql import ask
from rbpx.store.store import Store
from rbpx.ties import Ties


@dataclass(frozen=True, eq=False)
class Answers:
    """What one run gave the items of a task, by item.

    Attributes:
        right_I: whether the right choice has the highest log-likelihood; without choices, whether each token is greedy.
        right_by_characters_I: the same with log-likelihoods over the characters of the choice; NaN without choices.
        right_by_bytes_I: over its bytes.
        chance_I: one over the number of choices; NaN without.
        probability_I: of the right choice among the choices, or of the target where there are none.
        nats_I: of the target, or of the right choice.
        bytes_I: that its tokens stand for.
        words_I: of a text; NaN for items.
        tied_I: whether a tie decides: the right choice is as likely as another, and none is likelier; without choices,
            greedy decoding hangs on one.
        ranks: of its tokens, in order.
        category_I: what it is about, or None.
        domain_I: what that belongs to, or None.
    """

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


def item_answers(connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties) -> Answers:
    """The answers of one run under a tie rule."""
    return answers_of(ask(connection, "item_scores", run_id=run_id, ties=ties.value))


def answers_of(scored: pa.Table) -> Answers:
    """What a run gave its items, from the rows of `item_scores`: the true ones first, in the order of the items."""
    columns: dict[str, Any] = {
        name: scored[name].to_pylist()
        if name in ("ranks", "category", "domain", "correct")
        else scored[name].to_numpy()
        for name in scored.column_names
    }
    is_true = np.array([correct is not False for correct in columns["correct"]])
    true = np.flatnonzero(is_true)
    n_items = len(true)
    has_choices = len(true) > 0 and columns["correct"][true[0]] is not None
    right = {name: np.full(n_items, np.nan) for name in ("plain", "characters", "bytes")}
    chance_I, tied_I = np.full(n_items, np.nan), columns["is_tied"][true].astype(bool)
    probability_I = np.exp(columns["loglikelihood"][true])
    is_item = scored["n_characters"].null_count == 0
    if has_choices:
        place = {int(item): at for at, item in enumerate(columns["item"][true])}
        at_N = np.array([place[int(item)] for item in columns["item"]])
        loglikelihood = columns["loglikelihood"]
        over = {"plain": 1.0, "characters": columns["n_characters"], "bytes": columns["n_answer_bytes"]}
        for name, length in over.items():
            right[name] = _is_best(loglikelihood / length, at_N, columns["choice"], is_true, n_items)
        chance_I = 1 / np.bincount(at_N, minlength=n_items)
        best_I = np.full(n_items, -np.inf)
        np.maximum.at(best_I, at_N, loglikelihood)
        n_best_I = np.bincount(at_N[loglikelihood == best_I[at_N]], minlength=n_items)
        tied_I = (loglikelihood[true] == best_I) & (n_best_I > 1)
        of_all_I = np.bincount(at_N, weights=np.exp(loglikelihood - best_I[at_N]), minlength=n_items)
        probability_I = np.exp(loglikelihood[true] - best_I) / of_all_I
    elif is_item:
        right["plain"] = columns["is_greedy"][true].astype(np.float64)
    return Answers(
        right_I=right["plain"],
        right_by_characters_I=right["characters"],
        right_by_bytes_I=right["bytes"],
        chance_I=chance_I,
        probability_I=probability_I,
        nats_I=-columns["loglikelihood"][true],
        bytes_I=columns["n_bytes_scored"][true].astype(np.float64),
        words_I=columns["n_words"][true].astype(np.float64),
        tied_I=tied_I,
        ranks=[np.asarray(columns["ranks"][at]) for at in true],
        category_I=np.array([columns["category"][at] for at in true], object),
        domain_I=np.array([columns["domain"][at] for at in true], object),
    )


def _is_best(score_N: Floats, at_N: Any, choice_N: Any, is_true: Any, n_items: int) -> Floats:
    """Whether the right choice of each item has the highest score; of equal ones the first counts, as in numpy."""
    order = np.lexsort((choice_N, -score_N, at_N))
    first = np.ones(len(order), bool)
    first[1:] = at_N[order][1:] != at_N[order][:-1]
    best = order[first]
    right_I = np.zeros(n_items)
    right_I[at_N[best]] = is_true[best]
    return right_I


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
        drawn = sample_here(request.dataset, request.limit, request.seed, Store(store))
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
