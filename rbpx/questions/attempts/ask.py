"""Answers `attempts`: pass@k, exponents, forecasts and laws."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.display.law_columns import BACKTEST, CONSTANT, R2, with_params
from rbpx.display.table import PLACE, SIZE, STATUS, Column, Table, interval, table_of
from rbpx.display.vocabulary import in_digits, law_title, number, percent, short, whole
from rbpx.errors import number_of
from rbpx.laws.names import Axis
from rbpx.questions.attempts import AttemptsKeys
from rbpx.questions.attempts.analysis import items_of_runs, laws, rows_of_run
from rbpx.questions.attempts.figures import figures
from rbpx.questions.attempts.forecasts import BETA, LINE, hide
from rbpx.questions.attempts.passing import CountedItems
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import alike, fit_record
from rbpx.runs.group import Group
from rbpx.runs.run import grouped
from rbpx.runs.select.groups import select
from rbpx.status import Status
from rbpx.store.store import Record


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: AttemptsKeys) -> list[Result]:
    """A result for each group that has items."""
    return [found for group in groups for found in _of_group(connection, group, request)]


def _of_group(connection: duckdb.DuckDBPyConnection, group: Group, request: AttemptsKeys) -> Iterator[Result]:
    read = items_of_runs(connection, group, request)
    if not read:
        return
    of_runs = [[*rows_of_run(group, each, request)] for each in read]
    found = [*laws(group, read, of_runs)]
    counted = [each.items for each in read if isinstance(each.items, CountedItems)]
    fits = [fit_record(group, law, request.resamples) for law in found]
    of_all = [{"kind": "hidden", **group.names(), **row} for row in hide(counted, request.seed)]
    of_all += [{"kind": "law", **fit} for fit in fits]
    at = group.axis.value
    shown = [row | {"size": of.label, at: of.run.x} for of, own in zip(read, of_runs, strict=True) for row in own]
    shown += of_all
    yield Result(
        [group],
        alike([*(row for rows in of_runs for row in rows), *of_all]),
        [*_tables(group, shown, request)],
        [*_sentences(group, shown)],
        partial(figures, group, {each.label: each.items for each in read}),
        fits,
    )


_WAYS: Final = {LINE: "least squares", BETA: "beta"}
_K: Final = Column("k", "k", whole)
_WAY: Final = Column("by", "way")
_PROBABILITY: Final = in_digits(3)
PASSES: Final = table_of(
    "passes", SIZE, *PLACE, ("items", "n_items", whole), _K, *interval("pass@k", "passes", _PROBABILITY),
    ("± samples", "passes_stderr_of_samples", _PROBABILITY, "if these very items were tried again"),
    ("slope", "slope_neg_ln", ".3f", "local exponent in k of −ln pass@k, and of 1 − pass@k (of failures)"),
    ("of failures", "slope_failures", ".3f"),
    first="size {x} k passes, slope_neg_ln slope_failures, passes_stderr_of_samples, n_items",
)  # fmt: skip
EXPONENTS: Final = table_of(
    "exponents", SIZE, ("by", "how"),
    *interval("exponent", "alpha", _PROBABILITY, "of −ln pass@k by least squares, or a of the tail, p^(a − 1)"),
    ("of k", "k_from k_to", short, "where it speaks of: beta's from k far above b"),
    ("b", "b", _PROBABILITY), STATUS,
    first="size how alpha status, k_from",
)  # fmt: skip
FORECASTS: Final = table_of("forecasts", SIZE, _K, _WAY, *interval("pass@k", "passes", _PROBABILITY))
HIDDEN: Final = table_of(
    "hidden", _WAY, ("models", "n_models", whole),
    ("samples left", "n_samples", whole, "of each item, a hundredth, drawn five times"),
    ("error", "error", ".1%", "mean of |predicted / measured − 1| of −ln pass@k"),
    ("bias", "bias", percent, "mean of predicted / measured − 1"),
    ("inside", "inside", ".1%", "of the 95 % intervals, those that hold what was measured"),
)  # fmt: skip
LAWS: Final = table_of(
    "laws", ("of", "law"),
    *interval("α", "alpha", number, "falls as {x}^−α; below 0: grows"),
    *CONSTANT, *R2, BACKTEST, STATUS,
    first="law alpha status, r2, backtest_error, C, r2_lo",
)  # fmt: skip


def _told(row: Record) -> Record:
    if row["kind"] == "law":
        return with_params(row) | {"law": law_title(row["law"], row["k"])}
    return row | {key: _WAYS[row[key]] for key in ("how", "way") if row.get(key) in _WAYS}


def _tables(group: Group, rows: Sequence[Record], request: AttemptsKeys) -> Iterator[Table]:
    """The tables that have rows, and always the first two.

    A terminal shows the first and the last k, or every k of the request, with those predicted by beta.
    """
    asked, about = request.k.listed(), (group.title, group.axis)
    of = grouped(map(_told, rows), lambda row: str(row["kind"]))
    passes, exponents, forecasts = (of.get(kind, []) for kind in ("pass", "exponent", "forecast"))
    is_brief = [row["k"] in (asked or (passes[0]["k"], passes[-1]["k"])) for row in passes]
    yield PASSES.of("Pass@k", passes, *about, brief=is_brief)
    yield EXPONENTS.of("Exponents in k", exponents, *about, brief=False)
    if forecasts:
        is_brief = [row["k"] in asked and row["way"] == _WAYS[BETA] for row in forecasts]
        yield FORECASTS.of("Pass@k at more attempts", forecasts, *about, brief=is_brief)
    if "hidden" in of:
        yield HIDDEN.of("Forecasts with samples hidden", of["hidden"], *about, brief=False)
    if "law" in of:
        yield LAWS.of(f"Laws of attempts in {group.axis.value}", of["law"], *about, brief=False)


def _sentences(group: Group, rows: Sequence[Record]) -> Iterator[str]:
    last = [row for row in rows if row["kind"] == "pass"][-1]
    own = [row for row in rows if row.get("size") == last["size"]]
    first, *_ = (row for row in own if row["kind"] == "pass")
    said = f"Of {number_of(last['n_items'], 'item')} {last['size']} solves a share of {_share(first, '95 %: ')} "
    said += "at the first attempt" if first["k"] == 1 else f"within {first['k']:,} attempts"
    said += "" if first is last else f" and of {_share(last)} within {last['k']:,}"
    for row in [row for row in own if row["kind"] == "forecast" and row["way"] == BETA][:1]:
        said += f"; within {row['k']:,} it will be {_share(row)}, if chances of items follow a beta distribution"
    line, tail = (row for how in (LINE, BETA) for row in own if row["kind"] == "exponent" and row["how"] == how)
    if Status.bends in line["reasons"]:
        said += "; no item is nearly out of reach, so an item takes finitely many attempts on average"
    elif tail["alpha"] is not None:
        trust = "" if tail["status"] == Status.ok else f", {Status(tail['status']).label}"
        far = f" beyond k = {short(tail['b'])}" if tail["b"] > last["k"] else ""
        said += f"; the share unsolved falls as k^−{tail['alpha']:.3f}{far} (95 %: {_ends(tail, 'alpha')}{trust})"
    yield f"{said}."
    if group.axis is Axis.S and group.has_trainings:
        yield (
            "Models of one size were trained on different numbers of tokens, so there is no law in S: axis=D asks for "
            "one along the tokens of each size."
        )


def _share(row: Record, level: str = "") -> str:
    return _PROBABILITY(row["passes"]) + ("" if row["passes_lo"] is None else f" ({level}{_ends(row, 'passes')})")


def _ends(row: Record, key: str) -> str:
    return " to ".join(_PROBABILITY(row[f"{key}_{end}"]) for end in ("lo", "hi"))


QUESTION = Question(answer, select=partial(select, needs_law=False))
