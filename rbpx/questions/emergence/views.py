"""Tables of emergence: the laws of windows of N tokens, where they reach a level, and for a single k every window."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from rbpx.display.law_columns import backtest, constant, determination, exponent, points_of
from rbpx.display.view import Cell, Column, Table, View, decimal, magnitude, place, state, text, with_ends
from rbpx.display.vocabulary import AXES, rough
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import LawFit
from rbpx.laws.predict.verdict import FAR
from rbpx.questions.emergence.analysis import (
    JOINT,
    POOLED,
    AnyFit,
    Emergence,
    Emergences,
    ShownLaw,
    analyse,
    keep,
)
from rbpx.questions.emergence.crossing import Crossing
from rbpx.questions.emergence.figures import figures
from rbpx.questions.emergence.words import sentences
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.runs.group import Group, Run
from rbpx.runs.select.ways import in_size
from rbpx.status import Status

_Row = tuple[Emergence, ShownLaw[AnyFit]]
_Window = tuple[str, Run, Floats]
_NAMES: Final = {POOLED: "pooled", JOINT: "C·N"}


def _fit(row: _Row) -> LawFit:
    return row[1].fit


def _windows(row: _Row) -> Cell:
    name = _NAMES.get(row[1].kind, f"N = {row[1].n}")
    return Cell((f"k = {row[0].k:,}, {name}",), (row[0].k, row[1].n or name), is_number=False)


def _share(of: Callable[[Emergence], Floats], at: int) -> Callable[[_Row], float | None]:
    """The share of windows of this length at one of the sizes."""
    return lambda row: None if row[1].n is None else float(of(row[0])[at, row[0].lengths.index(row[1].n)])


def _crossings(row: _Row) -> tuple[Crossing, ...]:
    """Where the law of a window length reaches each of `LEVELS`; none of a law of all lengths."""
    return () if row[1].n is None else row[1].crossings[row[1].n]


def _reached(level: float, spare: int) -> Sequence[Column[_Row]]:
    """Where a law reaches a level, with a star where that is far outside the sizes."""

    def crossing(row: _Row) -> Crossing | None:
        return next((each for each in _crossings(row) if each.share == level), None)

    def estimate(row: _Row) -> Estimate | None:
        return None if (at := crossing(row)) is None else at.size

    def marked(row: _Row) -> Cell:
        cell, at = value.cell(row), crossing(row)
        is_far = at is not None and at.is_beyond and at.has_numbers
        return replace(cell, texts=(f"{cell.text}*",), doubts=(Status.beyond,)) if is_far else cell

    value, ends = with_ends(f"{{x}} at p = {level}", f"{{x}}_at_{level}", estimate, rough, spare=spare)
    return replace(value, cell=marked), ends


STATUS: Final[Column[_Row]] = state(lambda row: _fit(row).status)
NUMBERS: Final[tuple[Column[_Row] | Sequence[Column[_Row]], ...]] = (
    Column("windows", ("k", "n"), _windows),
    magnitude(
        "smallest", "p_smallest", _share(lambda of: of.measured_MN, 0), "p at the smallest {x}, then at the largest"
    ),
    magnitude("largest", "p_largest", _share(lambda of: of.measured_MN, -1)),
    magnitude("independent", "p_independent", _share(lambda of: of.independent_MN, -1), "RBP_k^N at the largest", 3),
    exponent(_fit),
    constant(_fit, spare=5),
    determination(_fit, spare=2, ends_spare=8),
    decimal("R² of p", "r2_p", lambda row: row[0].joint.fit.r2_p if row[1].kind == JOINT else None, 3, spare=9),
    backtest(_fit, spare=6),
    points_of(_fit, spare=7),
)
LAWS: Final = View[_Row]("laws", (*NUMBERS, _reached(0.5, 1), _reached(0.1, 4), _reached(0.9, 4), STATUS))
LAWS_OF_ONE: Final = View[_Row]("laws", (*NUMBERS, STATUS))
LEVELS_OF_ONE: Final = View[tuple[_Row, Crossing]](
    "levels",
    Column("windows", ("k", "n"), lambda row: _windows(row[0])),
    decimal("p", "share", lambda row: row[1].share, 1),
    with_ends("{x}", "{x}_at_share", lambda row: row[1].size, rough),
    state(lambda row: [row[1].status, *([Status.beyond] if row[1].is_beyond else [])]),
)


def _every_window(group: Group, of: Emergence) -> Table:
    """The share of windows of each length at each size, and what would be expected of the largest."""
    last, largest = group.runs[-1], group.runs[-1].size
    rows = [(run.size, run, p_N) for run, p_N in zip(group.runs, of.measured_MN, strict=True)]
    rows.append((f"{largest} independent", last, of.independent_MN[-1]))
    for depends in of.dependence[-1:]:
        rows.append((f"{largest} corrected", last, depends.corrected_N))
        rows.append((f"{largest} N effective", last, depends.effective_N))

    def of_length(at: int, n: int) -> Column[_Window]:
        return magnitude(f"p_{n}", f"p_{n}", lambda row: float(row[2][at]))

    lengths = [of_length(at, n) for at, n in enumerate(of.lengths)]
    named: Column[_Window] = text("size", "size", lambda row: row[0])
    view = View[_Window]("windows", (named, place(lambda row: row[1], spare=1), *lengths))
    note = "Corrected: beta-binomial with the measured mean and autocorrelation of hits."
    return view.table(f"Windows at k = {of.k:,}", rows, group.title, group.axis, note)


@one_by_one
def tables(result: Emergences) -> Iterator[Table]:
    """The laws of a group and where they reach a level; for a single k in two tables, and every window."""
    group, x, c = result.group, result.group.axis.value, AXES[result.group.axis].constant
    title, about = "Laws of windows of N tokens in a row", (group.title, group.axis)
    note = (
        f"p: share of windows of N consecutive tokens whose ranks are all at most k; ties {group.ties.value}. "
        f"−ln p = {c}·{x}^−α for each N; pooled: one α and a constant for each N, from the counts of windows, "
        f"p = 0 included; C·N: −ln p = {c}·N·{x}^−α, as if tokens were independent."
    )
    of_levels = "by the law within the sizes, over forms outside them, as in predict; – for an unbounded end"
    rows = [(of, law) for of in result.by_k for law in of.all_laws]
    if len(result.by_k) == 1:
        reached = [(row, crossing) for row in rows for crossing in _crossings(row) if crossing.has_numbers]
        yield _every_window(group, result.by_k[0])
        yield LAWS_OF_ONE.table(title, rows, *about, note)
        yield LEVELS_OF_ONE.table("Where p reaches a level", reached, *about, f"Levels: {of_levels}.")
    elif rows:
        far = f"* more than {FAR:g} times outside. A single k, as in k=10, is shown with every window and level."
        yield LAWS.table(title, rows, *about, f"{note} {x} at p: {of_levels}; {far}")


QUESTION = of_parts(each(analyse), keep, tables, sentences, figures, select=partial(in_size, sizes=3))
