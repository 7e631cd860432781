"""Items of tasks (verb items): the scores and exact matches of each run on items, and the law of the exact matches."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.analyses.items.exact_match import ExactMatch, exact_match, laws_of_items
from rbpx.analyses.items.scores import Scores, score
from rbpx.config.keys.tokens import ITEM_SLICES
from rbpx.config.request import Request
from rbpx.config.text.protocol import HARNESS
from rbpx.errors import RbpxError
from rbpx.groups.group import Group, Run
from rbpx.groups.points.item_views import ItemView, documents_of_items, item_views, telling_items
from rbpx.groups.points.items import Answers, item_answers
from rbpx.laws.counts.fit import OutcomeFit
from rbpx.laws.intervals.bootstrap import document_weights
from rbpx.laws.intervals.estimate import Estimate, by_name
from rbpx.store.store import Record, Store

DEFAULT_K = (1, 10, 100, 1000)
_SHOWN = 12  # items in a report


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
    """The runs of one group, in order of S, each with its slices behind it.

    Attributes:
        group: the runs.
        runs: what they score.
        laws: of exact match over all items, by k and by what is assumed of the hits of one; empty below 2 sizes.
        shown: some of the items, those that the largest model gains and loses most.
    """

    group: Group
    runs: tuple[RunItems, ...]
    laws: tuple[tuple[int, OutcomeFit], ...]
    shown: tuple[ItemView, ...]


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
            f"no group of runs in store={request.store} has items; measure some, such as "
            "python -m rbpx measure dataset=lambada, or a text with protocol=harness"
        )
    return [_analyse(connection, group, request) for group in of_items]


def _analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> GroupItems:
    weights_BI = document_weights(group.n_documents, request.resamples, request.seed)
    runs, of_runs, k_grid = [], [], list[int]()
    for run in group.runs:
        answers = item_answers(connection, run.run_id, group.ties)
        of_runs.append(answers)
        scored = weights_BI[:, : len(answers.nats_I)]
        # A text of thousands of tokens is never matched as a whole.
        k_grid = request.k.grid(run.vocab_size or 2, DEFAULT_K) if answers.of_items else []
        for part, chosen_I in _parts(answers, group, request):
            matches = tuple(exact_match(answers.ranks, scored, chosen_I, k) for k in k_grid)
            runs.append(RunItems(run, part, score(answers, scored, chosen_I), matches))
    if not of_runs[0].of_items:
        return GroupItems(group, tuple(runs), (), ())
    # Items are cut alike at every size of a family unless its tokenizers differ.
    alike = all([*map(len, each.ranks)] == [*map(len, of_runs[0].ranks)] for each in of_runs)
    fits = group.n_sizes > 1 and alike and request.slices is None
    laws = tuple((k, law) for k in (k_grid if fits else ()) for law in laws_of_items(group, of_runs, scored, k))
    documents = documents_of_items(connection, request.store, group.runs[-1].run_id)
    shown = item_views(group.runs, of_runs, telling_items(of_runs, _SHOWN), documents)
    return GroupItems(group, tuple(runs), laws, tuple(shown))


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
    """A row for each run and slice (kind items), for each k of it (kind exact_match), and for each law (kind law)."""
    rows: list[Record] = []
    for each in items.runs:
        about = {**items.group.names(), **each.run.names(), "run_id": each.run.run_id}
        about |= {"slice": each.part, "n_items": each.scores.n_items}
        rows.append({"kind": "items", **about, **_flat(each.scores)})
        rows += [{"kind": "exact_match", **about, **_flat(match)} for match in each.matches]
    for k, fit in items.laws:
        row = {"kind": "law", **items.group.names(), "k": k, "correction": fit.correction.value}
        rows.append(row | {name: getattr(fit, name) for name in _OF_LAW} | {"reasons": fit.record().get("reasons")})
    return rows


_OF_LAW = ("C", "alpha", "alpha_lo", "alpha_hi", "r", "r_lo", "r_hi", "aic", "n_sizes", "n_sequences", "status")


def _flat(found: Scores | ExactMatch) -> Record:
    """Numbers as they are; an estimate as three columns."""
    flat: Record = {}
    for name, value in vars(found).items():
        flat |= by_name(**{name: value}) if isinstance(value, Estimate) else {name: value}
    return flat
