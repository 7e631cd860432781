"""Answers what the ways of measuring differ in, and what moved when runs were measured again."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import (
    Columns,
    Table,
    View,
    decimal,
    ends,
    magnitude,
    share,
    state,
    text,
    whole,
    with_ends,
    written,
)
from rbpx.display.vocabulary import UNKNOWN, short, signed
from rbpx.errors import RbpxError, number_of
from rbpx.questions.audit.analysis import ROUNDING, Audit
from rbpx.questions.audit.ways import Way, compare_ways
from rbpx.questions.question import Measured, Question
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.sizes import select
from rbpx.runs.select.ways import in_size
from rbpx.status import Status
from rbpx.store.sql import connect
from rbpx.store.store import Record, Store
from rbpx.typed import typed


def audit(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request
) -> tuple[list[Result], Measured]:
    """Compare the ways in which runs were measured, then measure documents of them again, unless none are asked for."""
    ways, audits, measured = [*compare_ways(connection, groups, request)], list[Audit](), Measured((), ())
    if request.limit != 0:
        from rbpx.questions.audit.remeasure import remeasure  # with torch, which ways do not need

        audits, measured = remeasure(connection, groups, request)
    if not ways and not audits:
        return [], measured
    rows = [row for _, of_text in ways for _, own in of_text for row in own] + [row for of in audits for row in of.rows]
    tables = [table for of in ways for table in _differences(*of)] + [table for of in audits for table in _moves(of)]
    said = [*_alike(ways), *(line for of in audits for line in _noise(of))]
    return [Result([*(group for group, _ in ways), *(of.group for of in audits)], rows, tables, said)], measured


def _answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Result]:
    return audit(connection, groups, request)[0]


def _remeasure(request: Request) -> tuple[Sequence[Result], Measured]:
    with connect(Store(request.store), with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
        if not groups:
            raise RbpxError(f"no measured runs in store={request.store} match the request")
        return audit(connection, groups, request)


# ---------------------------------------------------------------------------------------------------------------- ways


def _differences(reference: Group, ways: Sequence[Way]) -> Iterator[Table]:
    """The reference and what differs from it, other ties of another way left out; none where nothing does."""
    (values, own), *others = ways
    others = [(of, rows) for of, rows in others if "ties" not in of or len(of) == 1]
    differing = [row | {"way": _named(of)} for of, rows in others for row in rows if not _is_same(row)]
    if differing:
        note = f"The reference of {reference.title} is {_named(values)}."
        yield REFERENCE.table("The reference", own, reference.title, note=note)
        yield DIFFERENCES.table("Differences from the reference", differing, reference.title)


def _alike(texts: Sequence[tuple[Group, Sequence[Way]]]) -> Iterator[str]:
    """The ways in which no document differs, one line for all texts, and what to do where only one was measured."""
    same: dict[str, list[str]] = {}
    for group, (_, *others) in texts:
        if alike := [_named(of) for of, rows in others if all(map(_is_same, rows))]:
            same.setdefault("; ".join(alike), []).append(group.title)
    for label, titles in same.items():
        yield f"No document of {'; '.join(titles)} differs in RBP_k, cross-entropy or α under {label}."
    if texts and all(set(of) == {"ties"} for _, (_, *others) in texts for of, _ in others):
        yield f"Only one way was measured; measure another: {typed('measure', dtype='bfloat16')}"


def _is_same(row: Record) -> bool:
    """Whether no document differs."""
    return row["value"] == 0 and row["lo"] is None and row["status"] in (Status.ok, Status.no_variation)


def _named(values: Mapping[str, Any]) -> str:
    given = [(name, value) for name, value in values.items() if value is not None]
    return ", ".join(str(v) if name in ("protocol", "dtype", "ties") else f"{name} {v}" for name, v in given)


def _quantity(row: Record) -> str:
    name = "CE" if row["k"] is None else f"RBP_{row['k']}"
    return f"α {name}" if row["kind"] == "law" or row.get("quantity", "").startswith("alpha") else name


def _thousandths(value: float | None) -> str:
    return UNKNOWN if value is None else f"{1000 * value:+.3g}"


def _sizes(row: Record) -> str:
    return f"{row['n_points']} sizes" if row.get("size") is None else str(row["size"])


_ABOUT: Final[Columns[Record]] = (
    text("quantity", "quantity", _quantity),
    text("of", "of", _sizes, spare=1),
)
REFERENCE: Final = View[Record]("reference", _ABOUT, (decimal("value", "value"), ends("lo hi")), state())
DIFFERENCES: Final = View[Record](
    "differences",
    text("way", "way"),
    _ABOUT,
    written("shift", "value", None, _thousandths, "in thousandths (CE: nats / 1000); 95 % over documents"),
    ends("lo hi", None, _thousandths),
    state(),
)

# ------------------------------------------------------------------------------------------------------ measured again


def _moves(of: Audit) -> Iterator[Table]:
    """How ranks moved, and the numbers and exponents that shifted; none where nothing did."""
    if _is_unmoved(of):
        return
    about, note = of.group.title, f"Ranks count ties as {of.group.ties.value}."
    yield MOVES.table(f"Ranks {_again(of)}, {_documents(of)}", of.of_runs, about, note=note)
    shifted = [row for row in of.rows if row["kind"] == "law" or row["difference"]]
    note = "Both on the same documents; without a number that differs in none of them."
    yield SHIFTS.table(f"RBP_k, nats and α {_again(of)}", shifted, about, note=note)


def _noise(of: Audit) -> Iterator[str]:
    """One line for a group in which nothing moved, or on the noise of an engine itself."""
    runs, by_engine = of.of_runs, of.rows[0]["against"] == "engine"
    if _is_unmoved(of) or by_engine:
        n_moved, n = (sum(row[name] for row in runs) for name in ("n_moved", "n_tokens"))
        furthest, nats = (max(row[name] or 0 for row in runs) for name in ("largest_move", "largest_logprob_move"))
        ranks = f"{n_moved:,} of {number_of(n, 'rank')} moved by up to {furthest:,g}" if n_moved else "no rank moved"
        yield (
            f"{of.group.title}: {number_of(len(runs), 'size')}, {_documents(of)}, {number_of(n, 'token')} "
            f"{_again(of)}: {ranks}, and no log-probability by more than {short(nats)} nats"
            f"{', its own noise' if by_engine else ''}."
        )


def _is_unmoved(of: Audit) -> bool:
    """Whether no rank moved, and no log-probability beyond rounding."""
    return all(row["n_moved"] == 0 and ROUNDING.holds(row) for row in of.of_runs)


def _again(of: Audit) -> str:
    return "asked again in another order" if of.rows[0]["against"] == "engine" else "measured again in float32"


def _documents(of: Audit) -> str:
    return f"{of.rows[0]['n_documents']:,} of {number_of(of.n_stored, 'document')}"


_SAME: Final = (
    "whether a second measurement in float32, or of an engine asked again, agrees to rounding; of another engine, "
    "whether it is within tolerance= times as much, or as rbpx's own run in that precision has"
)
MOVES: Final = View[Record](
    "moves",
    text("size", "size"),
    whole("tokens", "n_tokens"),
    share("changed", "changed", lambda row: row["n_changed"] / row["n_tokens"], 3, "other greater or equal logits"),
    share("moved", "moved", lambda row: row["n_moved"] / row["n_tokens"], 3, "another rank"),
    magnitude("by", "median_move", means="median change of a rank, then the largest"),
    magnitude("largest", "largest_move"),
    magnitude("nats", "largest_logprob_move", means="the largest difference of a log-probability"),
    text("same", "is_same", lambda row: {None: None, True: "yes", False: "no"}[row["is_same"]], _SAME),
)
SHIFTS: Final = View[Record](
    "shifts",
    _ABOUT,
    decimal("stored", "stored"),
    decimal("again", "again"),
    with_ends("difference", "difference", None, lambda value: signed(value, 5)),
    state(),
)
QUESTION = Question(_answer, partial(in_size, along=False), remeasure=_remeasure)
