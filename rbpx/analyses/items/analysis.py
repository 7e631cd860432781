"""Items of tasks (verb items): runs on items in, their scores and exact matches by size out; no law is fitted."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import duckdb
import numpy as np

from rbpx.analyses.items.exact_match import ExactMatch, exact_match
from rbpx.analyses.items.scores import Scores, score
from rbpx.config.protocol import HARNESS
from rbpx.config.request import ITEM_SLICES, Request
from rbpx.errors import RbpxError
from rbpx.groups.item_answers import Answers, item_answers
from rbpx.groups.selection import Group, Run
from rbpx.laws.bootstrap import document_weights
from rbpx.laws.interval import Estimate
from rbpx.store.store import Record, Store

DEFAULT_K = (1, 10, 100, 1000)


@dataclass(frozen=True)
class RunItems:
    """The items of one run, all of them or those of one slice.

    Attributes:
        run: the run.
        part: the category or domain; None for all items.
        scores: of these items.
        matches: exact match at each k.
    """

    run: Run
    part: str | None
    scores: Scores
    matches: tuple[ExactMatch, ...]


@dataclass(frozen=True, eq=False)
class GroupItems:
    """The runs of one group, in order of S, each with its slices behind it."""

    group: Group
    runs: tuple[RunItems, ...]


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[GroupItems]:
    """Score the items of every group that has any.

    Raises:
        RbpxError: no group has items, or they have no categories to be sliced by.
    """
    if request.slices is not None and request.slices not in ITEM_SLICES:
        raise RbpxError(
            f"slices={request.slices} is not one of items; give {' or '.join(ITEM_SLICES)}, or leave it out"
        )
    of_items = [group for group in groups if group.first.protocol == HARNESS]
    if groups and not of_items:
        raise RbpxError(
            f"none of the {len(groups)} groups in store={request.store} has items; measure some, such as "
            "python -m rbpx measure dataset=lambada, or a text with protocol=harness"
        )
    return [_analyse(connection, group, request) for group in of_items]


def _analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> GroupItems:
    weights_BI = document_weights(group.n_documents, request.resamples, request.seed)
    runs = []
    for run in group.runs:
        answers = item_answers(connection, run.run_id, group.ties)
        scored = weights_BI[:, : len(answers.nats_I)]
        # A text of thousands of tokens is never matched as a whole.
        k_grid = request.k_grid(run.vocab_size or 2, DEFAULT_K) if answers.of_items else []
        for part, chosen_I in _parts(answers, group, request):
            matches = tuple(exact_match(answers.ranks, scored, chosen_I, k) for k in k_grid)
            runs.append(RunItems(run, part, score(answers, scored, chosen_I), matches))
    return GroupItems(group, tuple(runs))


def _parts(answers: Answers, group: Group, request: Request) -> list[tuple[str | None, np.ndarray]]:
    """All items, then those of each category or domain."""
    parts: list[tuple[str | None, np.ndarray]] = [(None, np.ones(len(answers.nats_I), bool))]
    if request.slices is None:
        return parts
    of_I = answers.category_I if request.slices == "category" else answers.domain_I
    names = sorted({str(name) for name in of_I if name is not None})
    if not names:
        raise RbpxError(
            f"slices={request.slices}: the items of {group.title} have none; name the column with dataset.category= "
            "(and dataset.domains=) and measure them anew"
        )
    return parts + [(name, np.asarray(of_I == name)) for name in names]


def keep(store: Store, items: GroupItems) -> list[Record]:
    """A row for each run and slice (kind items), and for each k of it (kind exact_match); no law is stored."""
    rows = []
    for each in items.runs:
        run = each.run
        row: Record = {**items.group.names(), "size": run.size, "run_id": run.run_id}
        row |= {"non_embedding_params": run.non_embedding_params, "slice": each.part, "n_items": each.scores.n_items}
        rows.append({"kind": "items", **row, **_flat(asdict(each.scores))})
        rows += [{"kind": "exact_match", **row, **_flat(asdict(match))} for match in each.matches]
    return rows


def _flat(values: Record) -> Record:
    """Numbers as they are; an estimate as three columns."""
    flat: Record = {}
    for name, value in values.items():
        if isinstance(value, dict):
            value = Estimate(**value)
        if isinstance(value, Estimate):
            flat |= {name: value.value, f"{name}_lo": value.lo, f"{name}_hi": value.hi}
        else:
            flat[name] = value
    return flat
