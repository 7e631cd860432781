"""Ways of measuring as tables: the values of the reference, and what differs from it under each other way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from rbpx.analyses.choices.analysis import COLUMNS, Choices, Way, analyse, keep
from rbpx.analyses.question import Question
from rbpx.display.column import state, text, with_ends
from rbpx.display.numbers import UNKNOWN
from rbpx.display.view import Table, View
from rbpx.groups.group import Group
from rbpx.groups.shifts import Key
from rbpx.laws.interval import Estimate
from rbpx.laws.power import PowerLawFit
from rbpx.status import Status
from rbpx.ties import Ties

_SPEAK_FOR_THEMSELVES: Final = ("protocol", "dtype", "ties")  # their values need no name beside them


@dataclass(frozen=True)
class _Row:
    """A number of the largest size or of a law, or how far it differs; the same where no document differs."""

    quantity: str
    of: str
    value: Estimate
    status: Status = Status.ok

    @property
    def is_same(self) -> bool:
        return self.value.value == 0 and self.value.lo is None and self.status in (Status.ok, Status.no_variation)


def tables(results: Sequence[Choices]) -> list[Table]:
    """The reference of each text that is not the same in every way, and what differs."""
    found = []
    for choices in results:
        group, reference = choices.group, choices.reference
        differing = list(_differing(choices))
        if differing:
            way = {name: getattr(group.first, name) for name in COLUMNS} | {"ties": group.ties.value}
            rows = _rows(group, reference.run.size, reference.values, reference.laws)
            note = f"The reference of {group.title} is {', '.join(_say(way))}."
            found.append(REFERENCE.table("The reference", rows, group.title, note=note))
            found.append(DIFFERENCES.table("Differences from the reference", differing, group.title))
    return found


def sentences(results: Sequence[Choices]) -> list[str]:
    """What is the same in every document, a line for all texts, and whether there is anything to compare."""
    same: dict[str, list[str]] = {}
    for choices in results:
        for _, rules in groupby(choices.ways, key=_runs):
            alike = [way for way in rules if all(row.is_same for row in _shifts(way))]
            if alike:
                same.setdefault(_label(choices, alike, "ties "), []).append(choices.group.title)
    found = [
        f"The same for all: {'; '.join(titles)}: no document differs in RBP_k, cross-entropy and α under {label}."
        for label, titles in same.items()
    ]
    if all(set(way.differs) == {"ties"} for choices in results for way in choices.ways):
        found.append("Only one way was measured; measure another: python -m rbpx measure dtype=bfloat16")
    return found


def _differing(choices: Choices) -> Iterator[tuple[str, _Row]]:
    """What differs under each way; tie rules under which a number is the same share a row."""
    for _, rules in groupby(choices.ways, key=_runs):
        ways = list(rules)
        for rows in zip(*map(_shifts, ways), strict=True):
            for row, alike in groupby(zip(ways, rows, strict=True), key=lambda pair: pair[1]):
                if not row.is_same:
                    yield _label(choices, [way for way, _ in alike]), row


def _shifts(way: Way) -> list[_Row]:
    shifts = {key: shift.difference for key, shift in way.shifts.items()}
    return _rows(way.group, way.run.size, shifts, {key: shift.difference for key, shift in way.laws.items()})


def _rows(group: Group, size: str, values: Mapping[Key, Estimate], laws: Mapping[Key, PowerLawFit]) -> list[_Row]:
    of_size = [_Row(_name(key), size, value) for key, value in values.items()]
    sizes = f"{len(group.runs)} sizes"
    return of_size + [_Row(f"α {_name(key)}", sizes, fit.exponent, fit.status) for key, fit in laws.items()]


def _name(key: Key) -> str:
    return "CE" if key[1] is None else f"RBP_{key[1]}"


def _runs(way: Way) -> Sequence[str]:
    return way.group.run_ids


def _label(choices: Choices, ways: Sequence[Way], before: str = "") -> str:
    """What ways of the same runs differ in; no tie rule where it is that of the reference."""
    rules = [way.group.ties for way in ways]
    ties = "any ties" if len(rules) == len(Ties) else before + " or ".join(rules)
    said = _say({name: value for name, value in ways[0].differs.items() if name != "ties"})
    return ", ".join(said if rules == [choices.group.ties] else [*said, ties])


def _say(names: Mapping[str, Any]) -> list[str]:
    given = {name: value for name, value in names.items() if value is not None}
    return [str(v) if name in _SPEAK_FOR_THEMSELVES else f"{name} {v}" for name, v in given.items()]


def _thousandths(value: float | None) -> str:
    """A difference in thousandths with its sign, in at most six characters if it is below 10."""
    if value is None:
        return UNKNOWN
    size = abs(1000 * value)
    return f"{1000 * value:+.{3 if size < 0.1 else 2 if size < 10 else 1 if size < 100 else 0}f}"


REFERENCE: Final = View[_Row](
    "reference",
    (
        text("quantity", "quantity", lambda row: row.quantity),
        text("of", "of", lambda row: row.of),
        with_ends("value", "value", lambda row: row.value),
        state(lambda row: row.status),
    ),
)
DIFFERENCES: Final = View[tuple[str, _Row]](
    "differences",
    (
        text("way", "way", lambda row: row[0]),
        text("quantity", "quantity", lambda row: row[1].quantity),
        text("of", "of", lambda row: row[1].of, spare=1),
        with_ends(
            "shift", "difference", lambda row: row[1].value, _thousandths,
            "in thousandths, of CE nats / 1000; what is not listed is the same in every document; 95 % over documents, "
            "resampled together on both sides, and for α over models too; protocols may score different tokens",
        ),
        state(lambda row: row[1].status),
    ),
)  # fmt: skip
QUESTION = Question(analyse, keep, tables, sentences)
