"""The effect of choices: each way of measuring a text in, tables of what differs and a line of what does not out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.choices.analysis import COLUMNS, Choices, Key, Reference, Way
from rbpx.display.names import remedies, status_name
from rbpx.display.numbers import UNKNOWN, number, span
from rbpx.display.tables import console, grid, put
from rbpx.laws.power import PowerLawFit
from rbpx.status import Status
from rbpx.ties import Ties

_SAME = "same"
_SPEAK_FOR_THEMSELVES = ("protocol", "dtype", "ties")  # their values need no name beside them


def show(results: Sequence[Choices]) -> None:
    """Print for each text the ways that differ from a reference, with how far, and in a line those that do not."""
    screen = console()
    same: dict[str, list[str]] = {}
    tabled = False
    for choices in results:
        first = choices.group.first
        title = f"{first.family} on {first.dataset}{f', revision {first.revision}' if first.revision else ''}"
        alike = [way for way in choices.ways if _is_same(choices, way)]
        if alike:
            same.setdefault("; ".join(_labels(choices, alike)), []).append(title)
        if len(alike) == len(choices.ways):
            continue
        tabled = True
        names = {name: getattr(first, name) for name in COLUMNS} | {"ties": choices.group.ties.value}
        differing = replace(choices, ways=tuple(way for way in choices.ways if way not in alike))
        _print(screen, f"{title}: {choices.reference.run.size}", differing, _of_run, _shift_of_run)
        if choices.reference.laws:
            _print(screen, f"{title}: alpha of {len(choices.group.runs)} sizes", differing, _of_laws, _shift_of_laws)
        screen.print(f"{title}: the reference is {', '.join(_say(names))}.", markup=False, soft_wrap=True)
    for labels, titles in same.items():
        quantities = "RBP_k, cross-entropy and alpha"
        line = f"The same for all: {'; '.join(titles)}: no document differs in {quantities} under {labels}."
        screen.print(line, markup=False, soft_wrap=True)
    if tabled:
        screen.print(
            "First row: the values of the reference; below it: differences from the reference, in thousandths (nats / "
            '1000 for CE), or "same" where no document differs. 95 % intervals over documents, resampled jointly for '
            "both, and for alpha over models too. Protocols may score different tokens.",
            soft_wrap=True,
        )
    if all(set(way.differs) == {"ties"} for choices in results for way in choices.ways):
        screen.print(
            "Only one way was measured; measure another: python -m rbpx measure dtype=bfloat16", soft_wrap=True
        )
    for line in remedies(_doubts(results) if tabled else ()):
        screen.print(line, soft_wrap=True)


def _is_same(choices: Choices, way: Way) -> bool:
    """Whether no quantity of the largest size, and no exponent, differs from the reference."""
    cells = [_shift_of_run(way, key) for key in choices.reference.values]
    cells += [_shift_of_laws(way, key) for key in way.laws]
    return all(cell == _SAME for cell in cells)


def _labels(choices: Choices, ways: Sequence[Way]) -> list[str]:
    """The names of ways: their tie rules together, with what else each differs in."""
    labels = []
    for _, one in groupby(ways, key=lambda way: way.group.run_ids):
        rules = list(one)
        differs = {name: value for name, value in rules[0].differs.items() if name != "ties"}
        ties = ["any ties"] if len(rules) == len(Ties) else [f"ties {' or '.join(way.group.ties for way in rules)}"]
        labels.append(", ".join([*_say(differs), *ties]))
    return labels


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
    """The ways in rows: the tie rules of one way share a row where they give the same cells."""
    rows = []
    for _, one in groupby(choices.ways, key=lambda way: way.group.run_ids):
        rules = list(one)
        same = all(cells(way) == cells(rules[0]) for way in rules)
        rows += [rules] if same else [[way] for way in rules]
    return rows


def _say(names: dict[str, Any]) -> list[str]:
    given = {name: value for name, value in names.items() if value is not None}
    return [str(v) if name in _SPEAK_FOR_THEMSELVES else f"{name} {v}" for name, v in given.items()]


def _where(choices: Choices, way: Way) -> list[str]:
    """Which sizes are compared, where they differ from those of the reference."""
    all_sizes = [run.non_embedding_params for run in choices.group.runs]
    sizes = [run.non_embedding_params for run in way.group.runs]
    return [] if sizes == all_sizes else [f"({len(sizes)} sizes)", f"({way.run.size})"]


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
    """A difference above its interval, or "same" where no token differs."""
    if value == 0 and lo is None:
        return _SAME
    return f"{thousandths(value)}\n{UNKNOWN if lo is None and hi is None else f'{thousandths(lo)}..{thousandths(hi)}'}"


def thousandths(value: float | None) -> str:
    """A difference in thousandths with its sign, in at most six characters if it is below 10."""
    if value is None:
        return UNKNOWN
    size = abs(1000 * value)
    digits = 3 if size < 0.1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{1000 * value:+.{digits}f}"


def _doubts(results: Sequence[Choices]) -> set[Status]:
    """The statuses that the tables show in place of an interval."""
    laws = [fit for choices in results for fit in choices.reference.laws.values()]
    laws += [shifted.difference for choices in results for way in choices.ways for shifted in way.laws.values()]
    return {fit.status for fit in laws} - {Status.no_variation}
