"""Tables of the effects of choices: the values of the reference, and what differs from it in each other way."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rbpx.analyses.choices.analysis import COLUMNS, Choices, Number, Way, analyse, keep
from rbpx.analyses.question import Question, one_by_one
from rbpx.display.view import Table, View, state, text, with_ends
from rbpx.display.vocabulary import UNKNOWN
from rbpx.ties import Ties

_SPEAK_FOR_THEMSELVES: Final = ("protocol", "dtype", "ties")  # their values need no name beside them


@one_by_one
def tables(choices: Choices) -> Iterator[Table]:
    """The reference and the differences from it; none for a text on which every way gives the same."""
    group = choices.group
    differing = list(_differing(choices))
    if differing:
        way = {name: getattr(group.first, name) for name in COLUMNS} | {"ties": group.ties.value}
        note = f"The reference of {group.title} is {', '.join(_named(way))}."
        yield REFERENCE.table("The reference", choices.numbers, group.title, note=note)
        yield DIFFERENCES.table("Differences from the reference", differing, group.title)


def sentences(results: Sequence[Choices]) -> list[str]:
    """The ways in which no document differs, one line for all texts; and whether there is only one way."""
    same: dict[str, list[str]] = {}
    for choices in results:
        for _, rules in groupby(choices.ways, key=_runs):
            alike = [way for way in rules if all(number.is_same for number in way.numbers)]
            if alike:
                same.setdefault(_label(choices, alike, "ties "), []).append(choices.group.title)
    found = [
        f"No document of {'; '.join(titles)} differs in RBP_k, cross-entropy or α under {label}."
        for label, titles in same.items()
    ]
    if all(set(way.differs) == {"ties"} for choices in results for way in choices.ways):
        found.append("Only one way was measured; measure another: python -m rbpx measure dtype=bfloat16")
    return found


def _differing(choices: Choices) -> Iterator[tuple[str, Number]]:
    """What differs in each way; tie rules that give the same number share a row."""
    for _, rules in groupby(choices.ways, key=_runs):
        ways = list(rules)
        for numbers in zip(*(way.numbers for way in ways), strict=True):
            for number, alike in groupby(zip(ways, numbers, strict=True), key=lambda pair: pair[1]):
                if not number.is_same:
                    yield _label(choices, [way for way, _ in alike]), number


def _quantity(number: Number) -> str:
    _, k = number.key
    return f"{'α ' if number.of_law else ''}{'CE' if k is None else f'RBP_{k}'}"


def _runs(way: Way) -> Sequence[str]:
    return way.group.run_ids


def _label(choices: Choices, ways: Sequence[Way], before: str = "") -> str:
    """How ways of the same runs differ from the reference; without the tie rule where it is that of the reference."""
    rules = [way.group.ties for way in ways]
    ties = "any ties" if len(rules) == len(Ties) else before + " or ".join(rules)
    said = _named({name: value for name, value in ways[0].differs.items() if name != "ties"})
    return ", ".join(said if rules == [choices.group.ties] else [*said, ties])


def _named(values: Mapping[str, Any]) -> list[str]:
    given = [(name, value) for name, value in values.items() if value is not None]
    return [str(value) if name in _SPEAK_FOR_THEMSELVES else f"{name} {value}" for name, value in given]


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
QUESTION = Question(analyse, keep, tables, sentences)
