"""Answers when each token of a text is learned: groups of runs along an axis in, tables and rows out."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import Table
from rbpx.display.vocabulary import legible
from rbpx.laws.learning.curves import FEWEST
from rbpx.laws.names import Axis
from rbpx.questions.learning import columns
from rbpx.questions.learning.carriers import carriers
from rbpx.questions.learning.figures import figures
from rbpx.questions.learning.forecast import forecast
from rbpx.questions.learning.found import Found
from rbpx.questions.learning.hits import hit_times
from rbpx.questions.learning.improvements import Trend, improvements, of_trend
from rbpx.questions.learning.losses import Over, losses
from rbpx.questions.learning.orders import Times, orders
from rbpx.questions.learning.tokens import points_of, tokens_of
from rbpx.questions.learning.words import sentences
from rbpx.questions.question import Question
from rbpx.questions.result import Result
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
    learned = [_learning(connection, group, request) for group in groups]
    known = [times for _, times in learned if times is not None]
    texts = grouped(known, lambda times: (times.group.first.dataset, times.group.first.text_hash)).values()
    compared = [orders(of_text, min(_k_grid(request, of_text[0].group))) for of_text in texts]
    found = [*(each for each, _ in learned), *(each for each in compared if each is not None)]
    return [_result(of, request) for of in grouped(found, lambda each: each.group.title_of_family).values()]


def _k_grid(request: Request, group: Group) -> list[int]:
    return request.k.grid(group.vocab_size, DEFAULT_K)


def _learning(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> tuple[Found, Times | None]:
    """What is found of one group, and its times; none with few points, or where its runs share no token."""
    if isinstance(group, AlongGroup) and group.axis is Axis.C:
        group = best_of_budgets(group)
    runs, k_grid, top = points_of(group), _k_grid(request, group), request.top
    tokens = tokens_of(connection, group, runs)
    times, status = None, Status.too_few_sizes if len(tokens.doc_M) else Status.different_tokens
    rows: list[Record] = []
    if len(tokens.doc_M) and len(runs) >= _FEWEST:
        over = Over(tokens, group.weights(request), group.n_resampled)
        rows += improvements(connection, group, runs, tokens.x_T, k_grid[0], request.least)
        of_losses = losses(over, request.seed)
        status = Status.ok if of_losses else Status.not_identified
        slope, *carried = carriers(over, k_grid[0], request.least, top)
        rows += [*of_losses, *(row for k in k_grid for row in hit_times(over, k, top))]
        rows += [slope | {"sql": _carriers_sql(group, runs)}, *carried, *forecast(over, k_grid[0], top)]
        _add_texts(connection, runs[0], rows)
        times = Times.of(group, tokens, k_grid[0])
    about = {"kind": "group", "n_points": len(runs), "n_tokens": len(tokens.doc_M), "n_left_out": tokens.n_left_out}
    about |= {"status": status.value, "run_ids": group.run_ids}
    return Found.of_rows(group.title, group, [about, *rows], group.names(), runs), times


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
        [row for found in of_family for row in found.rows],
        [table for found in of_family for table in _tables(found, request) if table.rows],
        [sentence for found in of_family for sentence in sentences(found, request)],
        partial(figures, of_family),
    )


def _tables(found: Found, request: Request) -> Iterator[Table]:
    """The tables of one group, or of the orders on one text; those without rows are left out."""
    about, axis = found.about, found.group.axis
    for row in found.of("token")[:1]:
        note, better, worse = f"k = {row['k']}; ties {row['ties']}.", Trend.improves, Trend.worsens
        improved, worsened = of_trend(found, better)[: request.top], of_trend(found, worse)[: -request.top - 1 : -1]
        yield columns.BETTER.table("What improves, by share", improved, about, axis, note)
        yield columns.WORSE.table("What gets worse, the worst first", worsened, about, axis, note)
    note = "" if found.of("kind") else f"Sigmoids need {FEWEST} points: fewer do not identify four numbers."
    points = [row | {"first": found.runs[0].x, "last": found.runs[-1].x} for row in found.of("group")]
    yield columns.GROUP.table("Points and tokens", points, about, axis, note)
    for view, title, kind in columns.OF_KIND:
        rows, note = [*_often(found)] if view is columns.IDS else found.of(kind), ""
        if rows and view is columns.FACTORS:
            rows = [row | {f"factor_{n}": each for n, each in enumerate(row["loadings"], 1)} for row in rows]
            note = _of_factors(found)
        if rows:
            yield view.table(title.format(**rows[0]), rows, about, axis, note)


def _often(found: Found) -> Iterator[Record]:
    """The token ids that have each history as often as others at their place, in words."""
    for of_k in found.of("tokens"):
        said = [
            [
                f"{legible(row['text'], row['token_id'])} {row['n']:,} ({row['n_scored']:,})"
                for row in found.of("history", k=of_k["k"], history=history)
            ]
            for history in columns.OFTEN
        ]
        for row in zip_longest(*said):
            yield {"k": of_k["k"], **dict(zip(columns.OFTEN, row, strict=True))}


def _of_factors(found: Found) -> str:
    """Under the factors: whose variance each is a share of."""
    factors = found.of("factor")
    shares = ", ".join(f"{row['share']:.0%}" for row in factors)
    return f"Factors of the ranks of {factors[0]['n_tokens']:,} tokens; shares of their variance: {shares}."


QUESTION = Question(answer, select=partial(in_size, sizes=3, best_of_budget=False))
