"""Answers what the ways of measuring differ in, and what moved when runs were measured again."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
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
from rbpx.display.vocabulary import UNKNOWN, law_title, short, signed
from rbpx.errors import RbpxError, number_of
from rbpx.questions.audit.analysis import ROUNDING, Audit
from rbpx.questions.audit.ways import COLUMNS, Way, compare_ways
from rbpx.questions.question import Measured, Question
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.sizes import select
from rbpx.runs.select.ways import in_size
from rbpx.status import Status
from rbpx.store.sql import connect
from rbpx.store.store import Record, Store
from rbpx.ties import Ties
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
    rows = [row for of_text in ways for way in of_text for row in way.rows] + [row for of in audits for row in of.rows]
    tables = [table for of in ways for table in _differences(of)] + [table for of in audits for table in _moves(of)]
    said = [*_alike(ways), *(line for of in audits for line in _noise(of))]
    return [Result([*(of[0].group for of in ways), *(of.group for of in audits)], rows, tables, said)], measured


def _answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Result]:
    return audit(connection, groups, request)[0]


def _remeasure(request: Request) -> tuple[Sequence[Result], Measured]:
    with connect(Store(request.store), with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
        if not groups:
            raise RbpxError(f"no measured runs in store={request.store} match the request")
        return audit(connection, groups, request)


# ---------------------------------------------------------------------------------------------------------------- ways


def _differences(ways: Sequence[Way]) -> Iterator[Table]:
    """What differs between the ways of a text; tie rules that give the same number share a row. None where nothing."""
    reference, differing = ways[0], list[Record]()
    for alike in _by_runs(ways):
        for numbers in zip(*(way.rows for way in alike), strict=True):
            for _, same in groupby(zip(alike, numbers, strict=True), key=lambda pair: _value(pair[1])):
                of, (row, *_) = zip(*same, strict=True)
                differing += [] if _is_same(row) else [row | {"way": _label(reference, of)}]
    if differing:
        about, first = reference.group.title, reference.group.first
        way = {name: getattr(first, name) for name in COLUMNS} | {"ties": reference.group.ties.value}
        note = f"The reference of {about} is {', '.join(_named(way))}."
        yield REFERENCE.table("The reference", reference.rows, about, note=note)
        yield DIFFERENCES.table("Differences from the reference", differing, about)


def _alike(texts: Sequence[Sequence[Way]]) -> Iterator[str]:
    """The ways in which no document differs, one line for all texts, and what to do where only one was measured."""
    same: dict[str, list[str]] = {}
    for ways in texts:
        for rules in _by_runs(ways):
            if alike := [way for way in rules if all(map(_is_same, way.rows))]:
                same.setdefault(_label(ways[0], alike, "ties "), []).append(ways[0].group.title)
    for label, titles in same.items():
        yield f"No document of {'; '.join(titles)} differs in RBP_k, cross-entropy or α under {label}."
    if texts and all(set(way.differs) == {"ties"} for ways in texts for way in ways[1:]):
        yield f"Only one way was measured; measure another: {typed('measure', dtype='bfloat16')}"


def _by_runs(ways: Sequence[Way]) -> Iterator[list[Way]]:
    """The ways beside the reference, those of the same runs together."""
    return (list(rules) for _, rules in groupby(ways[1:], key=lambda way: way.group.run_ids))


def _value(row: Record) -> tuple[object, ...]:
    return row["value"], row["lo"], row["hi"], row["status"]


def _is_same(row: Record) -> bool:
    """Whether no document differs."""
    return row["value"] == 0 and row["lo"] is None and row["status"] in (Status.ok, Status.no_variation)


def _label(reference: Way, ways: Sequence[Way], before: str = "") -> str:
    """How ways of the same runs differ from the reference; without the tie rule where it is that of the reference."""
    rules = [way.group.ties for way in ways]
    ties = "any ties" if len(rules) == len(Ties) else before + " or ".join(rules)
    said = _named({name: value for name, value in ways[0].differs.items() if name != "ties"})
    return ", ".join(said if rules == [reference.group.ties] else [*said, ties])


def _named(values: Mapping[str, Any]) -> list[str]:
    given = [(name, value) for name, value in values.items() if value is not None]
    return [str(value) if name in ("protocol", "dtype", "ties") else f"{name} {value}" for name, value in given]


def _quantity(row: Record) -> str:
    name = "CE" if row["k"] is None else f"RBP_{row['k']}"
    return f"α {name}" if row.get("quantity", "").startswith("alpha") else name


def _thousandths(value: float | None) -> str:
    """A difference in thousandths with its sign, in at most six characters if it is below 10."""
    if value is None:
        return UNKNOWN
    size = abs(1000 * value)
    return f"{1000 * value:+.{3 if size < 0.1 else 2 if size < 10 else 1 if size < 100 else 0}f}"


def _sizes(row: Record) -> str:
    return row["size"] or f"{row['n_points']} sizes"


REFERENCE: Final = View[Record](
    "reference",
    text("quantity", "quantity", _quantity),
    text("of", "of", _sizes),
    (decimal("value", "value"), ends("lo hi")),
    state(),
)
DIFFERENCES: Final = View[Record](
    "differences",
    text("way", "way"),
    text("quantity", "quantity", _quantity),
    text("of", "of", _sizes, spare=1),
    written(
        "shift", "value", None, _thousandths,
        "in thousandths (CE: nats / 1000); what is not listed is the same in every document; 95 % over documents, "
        "resampled on both sides together, and for α over models too; protocols may score different tokens",
    ),
    ends("lo hi", None, _thousandths),
    state(),
)  # fmt: skip

# ------------------------------------------------------------------------------------------------------ measured again


def _moves(of: Audit) -> Iterator[Table]:
    """How ranks moved, the numbers that shifted, and the laws; none where nothing did."""
    if _is_unmoved(of):
        return
    about, again, run_ids = of.group.title, _again(of), [row["run_id"] for row in of.of_runs]
    note = f"Ranks count ties as {of.group.ties.value}."
    yield MOVES.table(f"Ranks {again}, {_documents(of)}", of.of_runs, about, note=note)
    shifted = [row for row in of.rows if row["kind"] == "run" and row["difference"]]
    shifted.sort(key=lambda row: (run_ids.index(row["run_id"]), row["k"] is not None))
    note = "Both on the same documents; leaves out a number that differs in none of them."
    yield SHIFTS.table(f"RBP_k and nats {again}", shifted, about, note=note)
    laws = [row for row in of.rows if row["kind"] == "law"]
    note = "Intervals are over documents and models; no variation: no rank crossed k, so nothing shifts."
    yield LAWS.table(f"α of the laws {again}", laws, about, note=note if laws else "")


def _noise(of: Audit) -> Iterator[str]:
    """One line for a group in which nothing moved, or on the noise of an engine."""
    runs = of.of_runs
    tokens, largest = sum(row["n_tokens"] for row in runs), short(max(row["largest_logprob_move"] for row in runs))
    if _is_unmoved(of):
        yield (
            f"{of.group.title}: {number_of(len(runs), 'size')}, {_documents(of)}, {number_of(tokens, 'token')} "
            f"{_again(of)}: no rank moved, and no log-probability moved by more than {largest} nats."
        )
    elif _is_by_engine(of):
        n_moved, furthest = sum(row["n_moved"] for row in runs), max(row["largest_move"] or 0 for row in runs)
        by = f" by up to {furthest:,g}" if n_moved else ""
        yield (
            f"What moved is the noise of the engine itself, {_again(of)}: {n_moved:,} of {number_of(tokens, 'rank')} "
            f"moved{by}, and log-probabilities by up to {largest} nats. A difference between its runs that is no "
            "larger may be the same noise."
        )


def _is_unmoved(of: Audit) -> bool:
    """Whether no rank moved, and no log-probability beyond rounding."""
    return all(row["n_moved"] == 0 and ROUNDING.holds(row) for row in of.of_runs)


def _is_by_engine(of: Audit) -> bool:
    return bool(of.rows[0]["against"] == "engine")


def _again(of: Audit) -> str:
    return "asked again in another order" if _is_by_engine(of) else "measured again in float32"


def _documents(of: Audit) -> str:
    return f"{of.rows[0]['n_documents']:,} of {number_of(of.n_stored, 'document')}"


_CHANGE: Final[Columns[Record]] = (
    decimal("stored", "stored"),
    decimal("again", "again"),
    with_ends("difference", "difference", None, lambda value: signed(value, 5)),
)
_SAME: Final = (
    "whether a second measurement in float32, or of an engine that is asked again, agrees: at most 1 token in 1,000 "
    f"changed, log-probabilities within {ROUNDING.nats:g} nats; a run of another engine may differ from rbpx's float32 "
    "by tolerance= times as much or, in 16 bits, by tolerance= times as much as rbpx's own run in that precision"
)
MOVES: Final = View[Record](
    "moves",
    text("size", "size"),
    whole("tokens", "n_tokens"),
    share(
        "changed", "changed", lambda row: row["n_changed"] / row["n_tokens"], 3,
        "tokens whose number of greater or of equal logits differs",
    ),
    share("moved", "moved", lambda row: row["n_moved"] / row["n_tokens"], 3, "tokens whose rank differs"),
    magnitude("by", "median_move", means="median change of a rank, then the largest"),
    magnitude("largest", "largest_move"),
    magnitude("nats", "largest_logprob_move", means="the largest difference of a log-probability"),
    text("same", "is_same", lambda row: {None: None, True: "yes", False: "no"}[row["is_same"]], _SAME),
)  # fmt: skip
SHIFTS: Final = View[Record]("shifts", text("size", "size"), text("of", "of", _quantity), _CHANGE)
LAWS: Final = View[Record]("laws", text("law", "law", lambda row: law_title(row["law"], row["k"])), _CHANGE, state())
QUESTION = Question(_answer, partial(in_size, along=False), remeasure=_remeasure)
