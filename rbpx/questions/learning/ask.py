"""Answers when each token of a text is learned: groups of runs along an axis in, tables and rows out."""

import math
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
from rbpx.questions.learning.orders import Learned, orders
from rbpx.questions.learning.tables import Found, tables
from rbpx.questions.learning.tokens import points_of, tokens_of
from rbpx.questions.learning.words import sentences
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import Group, Run, grouped
from rbpx.runs.origin import spelled
from rbpx.runs.select.along import AlongGroup, best_of_budgets
from rbpx.runs.select.ways import in_size
from rbpx.status import Status
from rbpx.store.sql import ask
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100)
_FEWEST: Final = 3  # points


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Result]:
    """Find when the tokens of each group are learned, and on each text in which order; a result for each family."""
    found, known = list[Found](), list[Learned]()
    for group in groups:
        if isinstance(group, AlongGroup) and group.axis is Axis.C:
            group = best_of_budgets(group)
        rows, times = _learning(connection, group, points_of(group), request)
        found.append(Found(group.title, group, points_of(group), rows))
        known += times
    for of_text in grouped(known, lambda each: (each.group.first.dataset, each.group.first.text_hash)).values():
        k = _k_grid(request, of_text[0].group)[0]
        if (compared := orders(of_text, k)) is not None:
            found.append(Found(f"{compared[0].first.dataset}, k = {k}", compared[0], (), compared[1]))
    return [_result(of, request) for of in grouped(found, lambda each: each.group.title_of_family).values()]


def _k_grid(request: Request, group: Group) -> list[int]:
    return sorted(request.k.grid(group.vocab_size, DEFAULT_K))


def _learning(
    connection: duckdb.DuckDBPyConnection, group: Group, runs: Sequence[Run], request: Request
) -> tuple[list[Record], list[Learned]]:
    """The rows of one group, and its times; none of these with few points, or where its runs share no token."""
    k, *_ = k_grid = _k_grid(request, group)
    tokens, top, least = tokens_of(connection, group, runs, request), request.top, request.least
    M = len(tokens.key_M)
    rows, times, status = list[Record](), list[Learned](), Status.too_few_sizes if M else Status.different_tokens
    if M and len(runs) >= _FEWEST:
        rows += improvements(connection, runs[0].run_id, tokens, k, least)
        of_losses = losses(tokens, request.seed)
        status = Status.ok if of_losses else Status.not_identified
        slope, *carried = carriers(tokens, k, least, top)
        rows += [*of_losses, *(row for each in k_grid for row in hit_times(tokens, each, top))]
        rows += [slope | {"sql": _carriers_sql(group, runs)}, *carried, *forecast(tokens, k, top)]
        _add_texts(connection, runs[0], rows)
        times.append(Learned.of(group, tokens, k))
    about: Record = {"kind": "group", "n_points": len(runs), "n_tokens": M, "n_left_out": tokens.n_left_out}
    about |= {"status": status.value, "run_ids": group.run_ids}
    names = {**group.names(), "axis": group.axis.value}
    return [{"kind": row["kind"], **names, **row} for row in (about, *rows)], times


def _carriers_sql(group: Group, runs: Sequence[Run]) -> str:
    """The query that gives each token's part of the slope between the last two runs."""
    before, last = runs[-2:]
    ln_ratio = math.log((last.x or 1.0) / (before.x or 1.0))
    ids = {"run_id": before.run_id, "next_run_id": last.run_id}
    return spelled("slope_carriers", **ids, ln_ratio=ln_ratio, ties=group.ties.value)


def _add_texts(connection: duckdb.DuckDBPyConnection, run: Run, rows: Sequence[Record]) -> None:
    """Write into rows about single tokens what their ids stand for."""
    named = [(row["token_id"], row) for row in rows if row["kind"] in ("history", "next")]
    named += [(row["number"], row) for row in rows if row["kind"] == "carrier" and row["by"] == "token"]
    known = ask(connection, "token_texts", run_id=run.run_id, token_ids=sorted({token_id for token_id, _ in named}))
    texts = dict(zip(*known.select(["token_id", "text"]).to_pydict().values(), strict=True))
    for token_id, row in named:
        row["text"] = texts.get(token_id)


def _result(of_family: Sequence[Found], request: Request) -> Result:
    return Result(
        [found.group for found in of_family],
        alike([row for found in of_family for row in found.rows]),
        [table for found in of_family for table in tables(found, request.top)],
        [sentence for found in of_family for sentence in sentences(found, request.least)],
        partial(figures, of_family),
    )


QUESTION = Question(answer, select=partial(in_size, sizes=3, best_of_budget=False))
