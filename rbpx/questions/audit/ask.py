"""Answers `audit`: what moved when runs were measured again."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import duckdb

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.table import SIZE, STATUS, Table, interval, table_of
from rbpx.display.vocabulary import short, whole
from rbpx.errors import RbpxError, number_of
from rbpx.questions.audit import AuditKeys
from rbpx.questions.audit.analysis import ROUNDING, Audit
from rbpx.questions.question import MeasuredRuns, Question
from rbpx.questions.result import Result
from rbpx.runs.group import By, Group
from rbpx.runs.select.groups import select
from rbpx.spelling import typed
from rbpx.store.sql import connect
from rbpx.store.store import Record, Store


def audit(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: AuditKeys
) -> tuple[list[Result], MeasuredRuns]:
    """Measures `limit` documents of each run again.

    Raises:
        RbpxError: limit=0, or as of `remeasure`.
    """
    if request.limit == 0:
        raise RbpxError(
            f"limit=0 measures nothing again; in its place: {typed('fit')}, which has a law for each protocol, bos and "
            f"dtype, and {typed('fit', ties='mid')}"
        )
    from rbpx.questions.audit.remeasure import remeasure  # imports torch, which --help does not need

    audits, measured = remeasure(connection, groups, request)
    if not audits:
        return [], measured
    rows, tables = [row for of in audits for row in of.rows], [*chain.from_iterable(map(_moves, audits))]
    return [Result([of.group for of in audits], rows, tables, [_sentence(audits)])], measured


def _answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: AuditKeys) -> Sequence[Result]:
    return audit(connection, groups, request)[0]


def _remeasure(request: AuditKeys) -> tuple[Sequence[Result], MeasuredRuns]:
    with connect(Store(request.store), with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
        if not groups:
            raise RbpxError(f"no measured runs in store={request.store} match the request")
        return audit(connection, groups, request)


def _moves(of: Audit) -> Iterator[Table]:
    if not all(row["n_moved"] == 0 and ROUNDING.holds(row) for row in of.of_runs):
        about, shifted = of.group.title, [row for row in of.rows if row["kind"] == "law" or row["difference"]]
        yield MOVES.of(f"Ranks {_again(of)}, {_documents(of)}", map(_moved, of.of_runs), about)
        yield SHIFTS.of(f"RBP_k, nats and α {_again(of)}", map(_shifted, shifted), about, brief=False)


def _sentence(audits: Sequence[Audit]) -> str:
    of, runs = audits[0], [row for each in audits for row in each.of_runs]
    laws = [row for each in audits for row in each.rows if row["kind"] == "law" and row["difference"]]
    n_moved, n = (sum(row[name] for row in runs) for name in ("n_moved", "n_tokens"))
    furthest, nats = (max(row[name] or 0 for row in runs) for name in ("largest_move", "largest_logprob_move"))
    said = f"{of.group.title}: {number_of(len(runs), 'size')}, {_documents(of)}"
    said = f"{len(audits)} groups of runs" if len(audits) > 1 else said
    said += f", {number_of(n, 'token')} {_again(of)}: "
    said += f"{n_moved:,} of {number_of(n, 'rank')} moved by up to {furthest:,g}" if n_moved else "no rank moved"
    for law in sorted(laws, key=lambda row: -abs(row["difference"]))[: n_moved and 1]:
        said += f", {_quantity(law)} by {interval_of(estimate_in(law, 'difference'), 5)}"
    said += f", and no log-probability by more than {short(nats)} nats"
    return f"{said}{', its own noise' if of.rows[0]['against'] == 'engine' else ''}."


def _again(of: Audit) -> str:
    return "asked again in another order" if of.rows[0]["against"] == "engine" else "measured again in float32"


def _documents(of: Audit) -> str:
    return f"{of.rows[0]['n_documents']:,} of {number_of(of.n_stored, 'document')}"


def _quantity(row: Record) -> str:
    name = "CE" if row["k"] is None else f"RBP_{row['k']}"
    return f"α {name}" if row["kind"] == "law" else name


def _moved(row: Record) -> Record:
    shares = {name: row[f"n_{name}"] / row["n_tokens"] for name in ("moved", "changed")}
    return row | shares | {"is_same": {None: None, True: "yes", False: "no"}[row["is_same"]]}


def _shifted(row: Record) -> Record:
    return row | {"quantity": _quantity(row), "of": row.get("size") or f"{row['n_points']} sizes"}


MOVES: Final = table_of(
    "moves", SIZE, ("tokens", "n_tokens", whole), ("moved", "moved", ".3%"), ("by, median", "median_move", short),
    ("largest", "largest_move", short),
    ("changed", "changed", ".3%", "other greater or equal logits"),
    ("logprobs by", "largest_logprob_move", short),
    ("agrees", "is_same", str,
     "to rounding; another engine within tolerance= times as much, or as rbpx's own run in that precision has"),
    first="size n_tokens moved median_move largest_move largest_logprob_move is_same",
)  # fmt: skip
SHIFTS: Final = table_of(
    "shifts", ("quantity", "quantity"), ("of", "of"), ("stored", "stored", ".4f"), ("again", "again", ".4f"),
    *interval("difference", "difference", "+.5f"), STATUS,
    first="quantity stored again difference status",
)  # fmt: skip
QUESTION = Question(_answer, partial(select, by=By.size), remeasure=_remeasure)
