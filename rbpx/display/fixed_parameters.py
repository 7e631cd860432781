"""Shows fixed parameters and priors, and whether the points contradict them."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.section import interval_of
from rbpx.display.table import Table, interval, table_of
from rbpx.display.vocabulary import in_digits, significant
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.power.law import FixedParameter

GIVEN: Final = table_of(
    "given", ("law", "law"), ("constant", "constant"), ("given", "given"),
    ("p", "p", in_digits(2),
     "of the given value: how often points of a law with it would be as far from it, the other constants free"),
    *interval("free", "free", in_digits(4), "by the points alone"),
    *interval("taken as", "now", in_digits(4)),
    first="law constant given p free now, now_lo",
)  # fmt: skip


def given_tables(given: Sequence[tuple[str, FixedParameter]], about: str) -> list[Table]:
    """A table of them for each law, if there are any."""
    rows = [
        {"law": law, "constant": of.name, "given": str(of.pin), "p": of.p, **by_name(free=of.free, now=of.now)}
        for law, of in given
    ]
    return [GIVEN.of("Constants that were given", rows, about)] if rows else []


def said_of_given(title: str, pinned: Sequence[FixedParameter]) -> Iterator[str]:
    """Says whether the points of a law contradict them."""
    for each in pinned:
        what = f"{title}: {each.name} is given as {each.pin}"
        alone = "" if each.free.value is None else f", the points alone say {interval_of(each.free)}"
        if each.p is None:
            yield f"{what}{alone}."
        else:
            speak = "and speak against" if each.is_refused else "which does not speak against"
            yield f"{what}{alone}{',' if alone else ''} {speak} {each.pin.value:g} (p = {significant(each.p, 2)})."
