"""Answers the question learning: when each token of a text is learned along an axis, from groups of runs."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.laws.names import Axis
from rbpx.questions.learning.carriers import carriers
from rbpx.questions.learning.figures import figures
from rbpx.questions.learning.forecast import forecast
from rbpx.questions.learning.hits import hit_times
from rbpx.questions.learning.improvements import improvements
from rbpx.questions.learning.losses import losses
from rbpx.questions.learning.orders import TokenTimes, orders
from rbpx.questions.learning.sentences import sentences
from rbpx.questions.learning.tables import LearningRows, tables
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import Group, Run, grouped
from rbpx.runs.origin import spelled
from rbpx.runs.select.axis import AlongGroup, best_of_budgets
from rbpx.runs.select.selections import in_size
from rbpx.runs.tokens import points_of, tokens_of
from rbpx.status import Status
from rbpx.store.sql import ask
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
_FEWEST: Final = 3  # points


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Result]:
    """Finds when the tokens of each group are learned, and in which order on each text; one result for each family."""
    found, known = list[LearningRows](), list[TokenTimes]()
    for group in groups:
        if isinstance(group, AlongGroup) and group.axis is Axis.C:
            group = best_of_budgets(group)
        rows, times = _learning(connection, group, points_of(group), request)
        found.append(LearningRows(group.title, group, points_of(group), rows))
        known += times
    for of_text in grouped(known, lambda each: (each.group.first.dataset, each.group.first.text_hash)).values():
        k = _k_grid(request, of_text[0].group)[0]
        if (compared := orders(of_text, k)) is not None:
            found.append(LearningRows(f"{compared[0].first.dataset}, k = {k}", compared[0], (), compared[1]))
    return [_result(of, request) for of in grouped(found, lambda each: each.group.title_of_family).values()]


def _k_grid(request: Request, group: Group) -> list[int]:
    return sorted(request.k.grid(group.vocab_size, DEFAULT_K))


def _learning(
    connection: duckdb.DuckDBPyConnection, group: Group, runs: Sequence[Run], request: Request
) -> tuple[list[Record], list[TokenTimes]]:
    """Returns the rows of one group and its times; no times with few points, or if the runs share no token."""
    k, *_ = k_grid = _k_grid(request, group)
    tokens, top, least = tokens_of(connection, group, runs, request), request.top, request.least
    M = len(tokens.key_M)
    rows, times, status = list[Record](), list[TokenTimes](), Status.too_few_sizes if M else Status.different_tokens
    if M and len(runs) >= _FEWEST:
        known = ask(connection, "token_texts", run_id=runs[0].run_id)
        texts = dict(zip(known["token_id"].to_pylist(), known["text"].to_pylist(), strict=True))
        rows = improvements(tokens, texts, k, least)
        of_losses = losses(tokens, request.seed)
        status = Status.ok if of_losses else Status.not_identified
        slope, *carried = carriers(tokens, k, least, top)
        of_slope = {"run_id": runs[-2].run_id, "next_run_id": runs[-1].run_id, "ties": group.ties.value}
        slope["sql"] = spelled("slope_carriers", **of_slope, ln_ratio=float(tokens.x_T[-1] - tokens.x_T[-2]))
        rows += [*of_losses, *(row for each in k_grid for row in hit_times(tokens, each, top))]
        rows += [slope, *carried, *forecast(tokens, k, top)]
        for row in rows:
            if row["kind"] in ("history", "next"):
                row["text"] = texts.get(row["token_id"])
            elif row["kind"] == "carrier" and row["by"] == "token":
                row["text"] = texts.get(row["number"])
        times.append(TokenTimes.of(group, tokens, k))
    about: Record = {"kind": "group", "n_points": len(runs), "n_tokens": M, "n_left_out": tokens.n_left_out}
    about |= {"status": status.value, "run_ids": group.run_ids}
    names = {**group.names(), "axis": group.axis.value}
    return [{"kind": row["kind"], **names, **row} for row in (about, *rows)], times


def _result(of_family: Sequence[LearningRows], request: Request) -> Result:
    return Result(
        [found.group for found in of_family],
        alike([row for found in of_family for row in found.rows]),
        [table for found in of_family for table in tables(found, request.top)],
        [*sentences(of_family, request.least)],
        partial(figures, of_family),
    )


QUESTION = Question(answer, select=partial(in_size, sizes=3, best_of_budget=False))
