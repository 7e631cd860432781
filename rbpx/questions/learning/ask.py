"""Answers `learning`, a result for each family."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.laws.names import Axis
from rbpx.questions.learning import LearningKeys
from rbpx.questions.learning.figures import figures
from rbpx.questions.learning.hits import hit_times
from rbpx.questions.learning.improvements import improvements
from rbpx.questions.learning.sentences import sentence
from rbpx.questions.learning.tables import LearningRows, tables
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import Group
from rbpx.runs.run import Run, grouped
from rbpx.runs.select.budgets import best_of_budgets
from rbpx.runs.select.groups import select
from rbpx.runs.tokens import points_of, tokens_of
from rbpx.status import Status
from rbpx.store.sql import ask
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
_FEWEST: Final = 3  # points


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: LearningKeys) -> Sequence[Result]:
    """Finds which tokens of each group improve, and when they are learned."""
    found = list[LearningRows]()
    for group in groups:
        if group.axis is Axis.C:
            group = best_of_budgets(group)
        runs = points_of(group)
        found.append(LearningRows(group, runs, _rows(connection, group, runs, request)))
    return [_result(of, request) for of in grouped(found, lambda each: each.group.title_of_family).values()]


def _rows(
    connection: duckdb.DuckDBPyConnection, group: Group, runs: Sequence[Run], request: LearningKeys
) -> list[Record]:
    k_grid = sorted(request.k.grid(group.vocab_size, DEFAULT_K))
    tokens = tokens_of(connection, group, runs, request)
    M = len(tokens.key_M)
    rows, status = list[Record](), Status.too_few_sizes if M else Status.too_few_tokens
    if M and len(runs) >= _FEWEST:
        known = ask(connection, "token_texts", run_id=runs[0].run_id)
        texts = dict(zip(known["token_id"].to_pylist(), known["text"].to_pylist(), strict=True))
        rows = improvements(tokens, texts, k_grid[0], request.least)
        rows += [row for k in k_grid for row in hit_times(tokens, k, request.top, texts)]
        status = Status.ok
    about: Record = {"kind": "group", "n_points": len(runs), "n_tokens": M, "n_left_out": tokens.n_left_out}
    about |= {"status": status.value, "run_ids": group.run_ids}
    names = {**group.names(), "axis": group.axis.value}
    return [{"kind": row["kind"], **names, **row} for row in (about, *rows)]


def _result(of_family: Sequence[LearningRows], request: LearningKeys) -> Result:
    return Result(
        [found.group for found in of_family],
        alike([row for found in of_family for row in found.rows]),
        [table for found in of_family for table in tables(found, request.top)],
        [sentence(of_family, request.least)],
        partial(figures, of_family),
    )


QUESTION = Question(answer, select=partial(select, sizes=3, best_of_budget=False))
