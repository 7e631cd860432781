"""What choices do: the ways of each text in, one table of the largest size and one of the exponents out."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.choices.analysis import COLUMNS, Choices, Key, Reference, Way
from rbpx.display.tables import UNKNOWN, console, grid, number, put, remedies, span, status_name
from rbpx.laws.power import PowerLawFit
from rbpx.status import Status
from rbpx.ties import Ties

_SPEAK_FOR_THEMSELVES = ("protocol", "dtype", "ties")  # their values need no name beside them


def show(found: Sequence[Choices]) -> None:
    """Print for each text every way in which it was measured, as differences from the reference."""
    screen = console()
    for choices in found:
        first = choices.group.first
        names = {name: getattr(first, name) for name in COLUMNS} | {"ties": choices.group.ties.value}
        title = f"{first.family} on {first.dataset}{f', revision {first.revision}' if first.revision else ''}"
        _print(screen, f"{title}: {choices.reference.run.size}", choices, _of_run, _shift_of_run)
        if choices.reference.laws:
            _print(screen, f"{title}: alpha of {len(choices.group.runs)} sizes", choices, _of_laws, _shift_of_laws)
        screen.print(f"{title}: the reference is {', '.join(_say(names))}.", markup=False, soft_wrap=True)
    screen.print(
        "First row: the values of the reference; below: differences from it, in thousandths (nats / 1000 for CE), or "
        "same in every document. 95 % intervals over documents, drawn together for both, and for alpha over models. "
        "Protocols may score other tokens.",
        soft_wrap=True,
    )
    if all(set(way.differs) == {"ties"} for choices in found for way in choices.ways):
        screen.print("Only one way was measured; for another: python -m rbpx measure dtype=bfloat16", soft_wrap=True)
    for line in remedies(_doubts(found)):
        screen.print(line, soft_wrap=True)


def _print(
    screen: Console,
    title: str,
    choices: Choices,
    value: Callable[[Reference, Key], str],
    difference: Callable[[Way, Key], str],
) -> None:
    keys = list(choices.reference.values)
    table = grid(f"{title}, and differences in thousandths", ["", *map(_column, keys)])
    table.add_row("reference", *(value(choices.reference, key) for key in keys))
    for ways in _alike(choices, lambda way: [difference(way, key) for key in keys]):
        differs = {name: value for name, value in ways[0].differs.items() if name != "ties"}
        label = [*_say(differs), *_rules(choices, ways), *_where(choices, ways[0])]
        table.add_section()
        table.add_row(escape("\n".join(label)), *(difference(ways[0], key) for key in keys))
    put(screen, table)


def _rules(choices: Choices, ways: Sequence[Way]) -> list[str]:
    """The tie rules of a row: none where it is that of the reference."""
    rules = [way.group.ties for way in ways]
    if len(rules) == len(Ties):
        return ["any ties"]
    return [" or ".join(rules)] if rules != [choices.group.ties] else []


def _alike(choices: Choices, cells: Callable[[Way], list[str]]) -> list[list[Way]]:
    """The ways that make a row each: those under all tie rules make one where these come to the same."""
    found = []
    for _, one in groupby(choices.ways, key=lambda way: way.group.run_ids):
        rules = list(one)
        same = all(cells(way) == cells(rules[0]) for way in rules)
        found += [rules] if same else [[way] for way in rules]
    return found


def _say(names: dict[str, Any]) -> list[str]:
    said = {name: value for name, value in names.items() if value is not None}
    return [str(v) if name in _SPEAK_FOR_THEMSELVES else f"{name} {v}" for name, v in said.items()]


def _where(choices: Choices, way: Way) -> list[str]:
    """Which sizes are compared, where these are not those of the reference."""
    known = [run.non_embedding_params for run in choices.group.runs]
    sizes = [run.non_embedding_params for run in way.group.runs]
    return [] if sizes == known else [f"({len(sizes)} sizes)", f"({way.run.size})"]


def _column(key: Key) -> str:
    return "CE" if key[1] is None else f"RBP_{key[1]}"


def _of_run(reference: Reference, key: Key) -> str:
    estimated = reference.values[key]
    return f"{number(estimated.value)}\n{span(estimated.lo, estimated.hi, 3)}"


def _shift_of_run(way: Way, key: Key) -> str:
    difference = way.shifts[key].difference
    return _difference(difference.value, difference.lo, difference.hi)


def _of_laws(reference: Reference, key: Key) -> str:
    fit = reference.laws[key]
    return f"{number(fit.alpha)}\n{_interval_or_status(fit, span(fit.alpha_lo, fit.alpha_hi, 3))}"


def _shift_of_laws(way: Way, key: Key) -> str:
    if key not in way.laws:
        return UNKNOWN
    fit = way.laws[key].difference
    if fit.status is Status.no_variation:
        return _difference(fit.alpha, None, None)
    ends = f"{thousandths(fit.alpha_lo)}..{thousandths(fit.alpha_hi)}"
    return f"{thousandths(fit.alpha)}\n{_interval_or_status(fit, ends)}"


def _interval_or_status(fit: PowerLawFit, ends: str) -> str:
    return ends if fit.status is Status.ok else status_name(fit.status)


def _difference(value: float | None, lo: float | None, hi: float | None) -> str:
    """A difference above its interval; none at all where no token differs."""
    if value == 0 and lo is None:
        return "same"
    return f"{thousandths(value)}\n{UNKNOWN if lo is None and hi is None else f'{thousandths(lo)}..{thousandths(hi)}'}"


def thousandths(value: float | None) -> str:
    """A difference in thousandths, with its sign, in six characters if it is below 10; or a dash."""
    if value is None:
        return UNKNOWN
    size = abs(1000 * value)
    digits = 3 if size < 0.1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{1000 * value:+.{digits}f}"


def _doubts(found: Sequence[Choices]) -> set[Status]:
    """What stands in the tables in place of an interval."""
    laws = [fit for choices in found for fit in choices.reference.laws.values()]
    laws += [shifted.difference for choices in found for way in choices.ways for shifted in way.laws.values()]
    return {fit.status for fit in laws} - {Status.no_variation}
