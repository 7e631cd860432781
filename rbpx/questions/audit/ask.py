"""Answers `audit`: how the ways of measuring differ, and what moved when runs were measured again."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval, interval_of
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
from rbpx.laws.intervals.estimate import Estimate
from rbpx.questions.audit.analysis import ROUNDING, Audit
from rbpx.questions.audit.variants import Way, compare_ways
from rbpx.questions.question import MeasuredRuns, Question
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.selections import in_size
from rbpx.runs.select.sizes import select
from rbpx.spelling import typed
from rbpx.status import Status
from rbpx.store.sql import connect
from rbpx.store.store import Record, Store


def audit(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request
) -> tuple[list[Result], MeasuredRuns]:
    """Compares the ways in which runs were measured, then measures `limit` documents of each run again."""
    ways, audits, measured = [*compare_ways(connection, groups, request)], list[Audit](), MeasuredRuns((), ())
    if request.limit != 0:
        from rbpx.questions.audit.remeasure import remeasure  # imports torch, which comparing ways does not need

        audits, measured = remeasure(connection, groups, request)
    if not ways and not audits:
        return [], measured
    rows = [row for _, of_text in ways for _, own in of_text for row in own] + [row for of in audits for row in of.rows]
    tables = [
        *chain.from_iterable(_differences(*of, brief=not audits) for of in ways),
        *chain.from_iterable(map(_moves, audits)),
    ]
    groups = [*(group for group, _ in ways), *(of.group for of in audits)]
    return [Result(groups, rows, tables, [*_noise_sentences(audits), *_way_sentences(ways)])], measured


def _answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Result]:
    return audit(connection, groups, request)[0]


def _remeasure(request: Request) -> tuple[Sequence[Result], MeasuredRuns]:
    with connect(Store(request.store), with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
        if not groups:
            raise RbpxError(f"no measured runs in store={request.store} match the request")
        return audit(connection, groups, request)


# ---------------------------------------------------------------------------------------------------------------- ways


_Text = tuple[Group, Sequence[Way]]
"""The reference of a family on a text, and all ways in which it was measured, the reference first."""


def _others(ways: Sequence[Way]) -> list[tuple[str, Record]]:
    """The differences of each other way from the reference; other tie rules only of the reference's own way."""
    return [(_named(of), row) for of, rows in ways[1:] if "ties" not in of or len(of) == 1 for row in rows]


def _differences(reference: Group, ways: Sequence[Way], brief: bool) -> Iterator[Table]:
    """Tables of the reference and of what differs from it, if anything does; a terminal shows one k."""
    (values, own), *_ = ways
    differing = [row | {"way": way} for way, row in _others(ways) if not _is_same(row)]

    def is_brief(row: Record) -> bool:
        return brief and row["value"] is not None and row["k"] in (None, own[0]["k"])

    if differing:
        yield REFERENCE.table("The reference", own, reference.title, brief=False)
        note = f"Shifts are in thousandths, from {_named(values)}."
        yield DIFFERENCES.table("Differences", differing, reference.title, note=note, brief=is_brief)


def _way_sentences(texts: Sequence[_Text]) -> Iterator[str]:
    """Yields which ways differ beyond noise and by how much, which do not, and what to do if there is one way only."""
    of_all = [(way, group.title, row) for group, ways in texts for way, row in _others(ways)]
    beyond = [(way, of, row) for way, of, row in of_all if Estimate(row["value"], row["lo"], row["hi"]).leaves_out_0]
    changing = list(dict.fromkeys(way for way, _, _ in beyond))
    still = "; ".join(dict.fromkeys(way for way, _, _ in of_all if way not in changing))
    is_one = all(set(of) == {"ties"} for _, (_, *others) in texts for of, _ in others)
    more = f"; no other way was measured, so measure one: {typed('measure', dtype='bfloat16')}" if is_one else ""
    if beyond:
        way, of, row = max(beyond, key=lambda each: (_quantity(each[2])[0] == "α", abs(each[2]["value"])))
        others = "; ".join(each for each in changing if each != way)
        yield (
            f"{len(beyond)} of {number_of(len(of_all), 'number')} differ beyond noise: {_quantity(row)} of {of} by "
            f"{interval(row['value'], row['lo'], row['hi'], 4)} under {way}"
            f"{f', others under {others}' if others else ''}{f'; none under {still}' if still else ''}{more}."
        )
    elif texts:
        titles, under = "; ".join(group.title for group, _ in texts), f" under {still}" if still else ""
        yield f"No number of {titles} differs beyond noise{under}{more}."


def _is_same(row: Record) -> bool:
    return row["value"] == 0 and row["lo"] is None and row["status"] in (Status.ok, Status.no_variation)


def _named(values: Mapping[str, Any]) -> str:
    given = [(name, value) for name, value in values.items() if value is not None]
    return ", ".join(str(v) if name in ("protocol", "dtype") else f"{name} {v}" for name, v in given)


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
    written("shift", "value", None, _thousandths),
    ends("lo hi", None, _thousandths),
    state(),
)

# ------------------------------------------------------------------------------------------------------ measured again


def _moves(of: Audit) -> Iterator[Table]:
    if not all(row["n_moved"] == 0 and ROUNDING.holds(row) for row in of.of_runs):
        about, shifted = of.group.title, [row for row in of.rows if row["kind"] == "law" or row["difference"]]
        yield MOVES.table(f"Ranks {_again(of)}, {_documents(of)}", of.of_runs, about)
        yield SHIFTS.table(f"RBP_k, nats and α {_again(of)}", shifted, about, brief=False)


def _noise_sentences(audits: Sequence[Audit]) -> Iterator[str]:
    for of in audits[:1]:
        runs = [row for each in audits for row in each.of_runs]
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
        yield f"{said}{', its own noise' if of.rows[0]['against'] == 'engine' else ''}."


def _again(of: Audit) -> str:
    return "asked again in another order" if of.rows[0]["against"] == "engine" else "measured again in float32"


def _documents(of: Audit) -> str:
    return f"{of.rows[0]['n_documents']:,} of {number_of(of.n_stored, 'document')}"


MOVES: Final = View[Record](
    "moves",
    text("size", "size"),
    whole("tokens", "n_tokens"),
    share("moved", "moved", lambda row: row["n_moved"] / row["n_tokens"], 3),
    magnitude("by, median", "median_move"),
    magnitude("largest", "largest_move"),
    share("changed", "changed", lambda row: row["n_changed"] / row["n_tokens"], 3, "other greater or equal logits", 1),
    magnitude("logprobs by", "largest_logprob_move"),
    text("agrees", "is_same", lambda row: {None: None, True: "yes", False: "no"}[row["is_same"]],
         "to rounding; another engine within tolerance= times as much, or as rbpx's own run in that precision has"),
)  # fmt: skip
SHIFTS: Final = View[Record](
    "shifts",
    _ABOUT,
    decimal("stored", "stored"),
    decimal("again", "again"),
    with_ends("difference", "difference", None, lambda value: signed(value, 5)),
    state(),
)
QUESTION = Question(_answer, partial(in_size, along=False), remeasure=_remeasure)
