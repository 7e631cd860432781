"""Tables of the audit: what differs between ways of measuring, and what moved when runs were measured again."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.view import Table, View, decimal, magnitude, share, state, text, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, law_title, short, signed
from rbpx.errors import RbpxError, number_of
from rbpx.questions.audit import analysis, ways
from rbpx.questions.audit.analysis import ROUNDING, Audit, RunAudit
from rbpx.questions.audit.ways import COLUMNS, Number, Way, Ways, compare_ways
from rbpx.questions.question import Measured, Question, one_by_one
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.sizes import select
from rbpx.runs.select.ways import in_size
from rbpx.runs.shifts import LawShift, Shift
from rbpx.store.sql import connect
from rbpx.store.store import Store
from rbpx.ties import Ties

_SPEAK_FOR_THEMSELVES: Final = ("protocol", "dtype", "ties")  # their values need no name beside them
_IS_SAME: Final = {None: None, True: "yes", False: "no"}
_SAME: Final = (
    "whether a second measurement in float32, or of an engine that is asked again, agrees: at most 1 token in 1,000 "
    f"changed, log-probabilities within {ROUNDING.nats:g} nats; a run of another engine may differ from rbpx's float32 "
    "by tolerance= times as much or, in 16 bits, by tolerance= times as much as rbpx's own run in that precision"
)
MOVES: Final = View[RunAudit](
    "moves",
    text("size", "size", lambda row: row.run.size),
    whole("tokens", "n_tokens", lambda row: row.moves.n_tokens),
    share(
        "changed", "changed", lambda row: row.moves.share_changed, 3,
        "tokens whose number of greater or of equal logits differs",
    ),
    share("moved", "moved", lambda row: row.moves.n_moved / row.moves.n_tokens, 3, "tokens whose rank differs"),
    magnitude("by", "median_move", lambda row: row.moves.median_move, "median change of a rank, then the largest"),
    magnitude("largest", "largest_move", lambda row: row.moves.largest_move),
    magnitude(
        "nats", "largest_logprob_move", lambda row: row.moves.largest_logprob_move,
        "the largest difference of a log-probability",
    ),
    text("same", "is_same", lambda row: _IS_SAME[row.is_same], _SAME),
)  # fmt: skip
LAWS: Final = View[LawShift](
    "laws",
    text("law", "law", lambda law: law_title(law.law, law.k)),
    decimal("stored", "stored", lambda law: law.before.alpha),
    decimal("again", "again", lambda law: law.after.alpha),
    with_ends("difference", "difference", lambda law: law.difference.exponent, lambda value: signed(value, 5)),
    state(lambda law: law.difference.status),
)
SHIFTS: Final = View[tuple[RunAudit, str, Shift]](
    "shifts",
    text("size", "size", lambda row: row[0].run.size),
    text("of", "of", lambda row: row[1]),
    decimal("stored", "stored", lambda row: row[2].before),
    decimal("again", "again", lambda row: row[2].after),
    with_ends("difference", "difference", lambda row: row[2].difference, lambda value: signed(value, 5)),
)


def _quantity(number: Number) -> str:
    return f"{'α ' if number.of_law else ''}{_value_name(number.key[1])}"


def _value_name(k: int | None) -> str:
    return "CE" if k is None else f"RBP_{k}"


def _thousandths(value: float | None) -> str:
    """A difference in thousandths with its sign, in at most six characters if it is below 10."""
    if value is None:
        return UNKNOWN
    size = abs(1000 * value)
    return f"{1000 * value:+.{3 if size < 0.1 else 2 if size < 10 else 1 if size < 100 else 0}f}"


REFERENCE: Final = View[Number](
    "reference",
    text("quantity", "quantity", _quantity),
    text("of", "of", lambda row: row.of),
    with_ends("value", "value", lambda row: row.value),
    state(lambda row: row.status),
)
DIFFERENCES: Final = View[tuple[str, Number]](
    "differences",
    text("way", "way", lambda row: row[0]),
    text("quantity", "quantity", lambda row: _quantity(row[1])),
    text("of", "of", lambda row: row[1].of, spare=1),
    with_ends(
        "shift", "difference", lambda row: row[1].value, _thousandths,
        "in thousandths (CE: nats / 1000); what is not listed is the same in every document; 95 % over documents, "
        "resampled on both sides together, and for α over models too; protocols may score different tokens",
    ),
    state(lambda row: row[1].status),
)  # fmt: skip


def _shifts(audit: Audit) -> Iterator[tuple[RunAudit, str, Shift]]:
    """The quantities of each run that differ in some document, cross-entropy first."""
    for run in audit.runs:
        for (_, k), shift in sorted(run.shifts.items(), key=lambda of: of[0][1] is not None):
            if shift.difference.value:
                yield run, _value_name(k), shift


def _is_unmoved(audit: Audit) -> bool:
    """Whether no rank moved, and no log-probability beyond rounding."""
    return all(each.moves.n_moved == 0 and each.moves.is_same for each in audit.runs)


def _documents(audit: Audit) -> str:
    return f"{audit.n_documents:,} of {number_of(audit.n_stored, 'document')}"


def _again(audit: Audit) -> str:
    return "asked again in another order" if audit.by_engine else "measured again in float32"


def _differing(of: Ways) -> Iterator[tuple[str, Number]]:
    """What differs in each way; tie rules that give the same number share a row."""
    for _, rules in groupby(of.ways, key=_way_runs):
        ways = list(rules)
        for numbers in zip(*(way.numbers for way in ways), strict=True):
            for number, alike in groupby(zip(ways, numbers, strict=True), key=lambda pair: pair[1]):
                if not number.is_same:
                    yield _label(of, [way for way, _ in alike]), number


def _way_runs(way: Way) -> Sequence[str]:
    return way.group.run_ids


def _label(of: Ways, ways: Sequence[Way], before: str = "") -> str:
    """How ways of the same runs differ from the reference; without the tie rule where it is that of the reference."""
    rules = [way.group.ties for way in ways]
    ties = "any ties" if len(rules) == len(Ties) else before + " or ".join(rules)
    said = _named({name: value for name, value in ways[0].differs.items() if name != "ties"})
    return ", ".join(said if rules == [of.group.ties] else [*said, ties])


def _named(values: Mapping[str, Any]) -> list[str]:
    given = [(name, value) for name, value in values.items() if value is not None]
    return [str(value) if name in _SPEAK_FOR_THEMSELVES else f"{name} {value}" for name, value in given]


@one_by_one
def tables(of: Ways | Audit) -> Iterator[Table]:
    """What differs between ways, and how ranks moved; none where nothing does."""
    about = of.group.title
    if isinstance(of, Ways):
        differing = list(_differing(of))
        if differing:
            way = {name: getattr(of.group.first, name) for name in COLUMNS} | {"ties": of.group.ties.value}
            note = f"The reference of {about} is {', '.join(_named(way))}."
            yield REFERENCE.table("The reference", of.numbers, about, note=note)
            yield DIFFERENCES.table("Differences from the reference", differing, about)
    elif not _is_unmoved(of):
        title = f"Ranks {_again(of)}, {_documents(of)}"
        yield MOVES.table(title, of.runs, about, note=f"Ranks count ties as {of.group.ties.value}.")
        note = "Both on the same documents; leaves out a number that differs in none of them."
        yield SHIFTS.table(f"RBP_k and nats {_again(of)}", _shifts(of), about, note=note)
        note = "Intervals are over documents and models; no variation: no rank crossed k, so nothing shifts."
        yield LAWS.table(f"α of the laws {_again(of)}", of.laws, about, note=note if of.laws else "")


def sentences(results: Sequence[Ways | Audit]) -> list[str]:
    """The ways in which no document differs, one line for all texts; then what stayed, or is an engine's noise."""
    compared = [each for each in results if isinstance(each, Ways)]
    same: dict[str, list[str]] = {}
    for of in compared:
        for _, rules in groupby(of.ways, key=_way_runs):
            alike = [way for way in rules if all(number.is_same for number in way.numbers)]
            if alike:
                same.setdefault(_label(of, alike, "ties "), []).append(of.group.title)
    found = [
        f"No document of {'; '.join(titles)} differs in RBP_k, cross-entropy or α under {label}."
        for label, titles in same.items()
    ]
    if compared and all(set(way.differs) == {"ties"} for of in compared for way in of.ways):
        found.append("Only one way was measured; measure another: python -m rbpx measure dtype=bfloat16")
    return [*found, *(line for each in results if isinstance(each, Audit) for line in _of_audit(each))]


def _of_audit(audit: Audit) -> Iterator[str]:
    """One line for a group in which nothing moved, or on the noise of an engine."""
    n_tokens = sum(each.moves.n_tokens for each in audit.runs)
    largest = short(max(each.moves.largest_logprob_move for each in audit.runs))
    if _is_unmoved(audit):
        yield (
            f"{audit.group.title}: {number_of(len(audit.runs), 'size')}, {_documents(audit)}, "
            f"{number_of(n_tokens, 'token')} {_again(audit)}: no rank moved, and no log-probability moved by more than "
            f"{largest} nats."
        )
    elif audit.by_engine:
        n_moved = sum(each.moves.n_moved for each in audit.runs)
        furthest = max(each.moves.largest_move or 0 for each in audit.runs)
        by = f" by up to {furthest:,g}" if n_moved else ""
        yield (
            f"What moved is the noise of the engine itself, asked again in another order: {n_moved:,} of "
            f"{number_of(n_tokens, 'rank')} moved{by}, and log-probabilities by up to {largest} nats. A difference "
            "between its runs that is no larger may be the same noise."
        )


def audit(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request
) -> tuple[list[Ways | Audit], Measured]:
    """Compare the ways in which runs were measured, then measure documents of them again, unless none are asked for."""
    compared = list(compare_ways(connection, groups, request))
    if request.limit == 0:
        return [*compared], Measured((), ())
    from rbpx.questions.audit.remeasure import remeasure  # with torch, which ways do not need

    audits, measured = remeasure(connection, groups, request)
    return [*compared, *audits], measured


def _remeasure(request: Request) -> tuple[Sequence[Result], Measured]:
    with connect(Store(request.store), with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
        if not groups:
            raise RbpxError(f"no measured runs in store={request.store} match the request; see python -m rbpx status")
        found, measured = audit(connection, groups, request)
    return [_told(found)] if found else [], measured


def _told(found: Sequence[Ways | Audit]) -> Result:
    rows = [row for of in found for row in (ways.records(of) if isinstance(of, Ways) else analysis.records(of))]
    return Result([of.group for of in found], rows, tables(found), sentences(found))


def _answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Result]:
    found, _ = audit(connection, groups, request)
    return [_told(found)] if found else []


QUESTION = Question(_answer, partial(in_size, along=False), remeasure=_remeasure)
