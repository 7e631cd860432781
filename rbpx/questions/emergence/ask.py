"""Answers how often N tokens in a row are right: the laws of their windows, where these reach a level, every window.

p_{N,k} = Pr(N consecutive tokens all have rank <= k). Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.law_columns import backtest, constant, determination, exponent, points_of
from rbpx.display.view import Cell, Column, Table, View, decimal, magnitude, place, state, text, with_ends
from rbpx.display.vocabulary import AXES, rough
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.prediction.verdict import FAR
from rbpx.questions.emergence.analysis import JOINT, POOLED, Emergence, windows_of
from rbpx.questions.emergence.crossing import Crossing
from rbpx.questions.emergence.figures import figures
from rbpx.questions.emergence.words import sentences
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.ways import in_size
from rbpx.status import Status
from rbpx.store.store import Record

_NAMES: Final = {POOLED: "pooled", JOINT: "C·N"}
_OF_LEVELS: Final = "by the law within the sizes, over forms outside them, as in predict; – for an unbounded end"


def _windows(row: Record) -> Cell:
    name = _NAMES.get(row["kind"], f"N = {row['n']}")
    return Cell((f"k = {row['k']:,}, {name}",), (row["k"], row["n"] or name), is_number=False)


def _reached(level: float, spare: int) -> Sequence[Column[Record]]:
    """Where a law reaches a level, with a star where that is far outside the sizes."""

    def marked(row: Record) -> Cell:
        cell, at = value.cell(row), row["reached"].get(level)
        is_far = at is not None and at.is_beyond and at.has_numbers
        return replace(cell, texts=(f"{cell.text}*",), doubts=(Status.beyond,)) if is_far else cell

    def size(row: Record) -> Estimate | None:
        return row["reached"][level].size if level in row["reached"] else None

    value, ends = with_ends(f"{{x}} at p = {level}", f"{{x}}_at_{level}", size, rough, spare=spare)
    return replace(value, cell=marked), ends


WINDOWS: Final = Column[Record]("windows", ("k", "n"), _windows)
NUMBERS: Final[tuple[Column[Record] | Sequence[Column[Record]], ...]] = (
    WINDOWS,
    magnitude("smallest", "p_smallest", means="p at the smallest {x}, then at the largest"),
    magnitude("largest", "p_largest"),
    magnitude("independent", "p_independent", means="RBP_k^N at the largest", spare=3),
    exponent(),
    constant(spare=5),
    determination(spare=2, ends_spare=8),
    decimal("R² of p", "r2_p", digits=3, spare=9),
    backtest(spare=6),
    points_of(spare=7),
)
LAWS: Final = View[Record]("laws", NUMBERS, _reached(0.5, 1), _reached(0.1, 4), _reached(0.9, 4), state())
LAWS_OF_ONE: Final = View[Record]("laws", NUMBERS, state())
LEVELS_OF_ONE: Final = View[Record](
    "levels",
    WINDOWS,
    decimal("p", "share", digits=1),
    with_ends("{x}", "{x}_at_share", lambda row: row["size"], rough),
    state(),
)


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Count or read the windows at each k, and fit their laws."""
    found = [*windows_of(connection, group, request)]
    laws = [[law.row(group, of.k) for law in of.all_laws] for of in found]
    return Result(
        [group],
        [row for of, rows in zip(found, laws, strict=True) for row in (*chain(*of.by_run), *rows)],
        [*_tables(group, found, laws)],
        [*sentences(found, group)],
        partial(figures, group, found),
        [*chain(*laws)],
    )


def _tables(group: Group, found: Sequence[Emergence], laws: Sequence[Sequence[Record]]) -> Iterator[Table]:
    """The laws of a group and where they reach a level; for a single k in two tables, and every window."""
    x, c = group.axis.value, AXES[group.axis].constant
    title, about = "Laws of windows of N tokens in a row", (group.title, group.axis)
    note = (
        f"p: share of windows of N consecutive tokens whose ranks are all at most k; ties {group.ties.value}. "
        f"−ln p = {c}·{x}^−α for each N; pooled: one α and a constant for each N, from the counts of windows, "
        f"p = 0 included; C·N: −ln p = {c}·N·{x}^−α, as if tokens were independent."
    )
    rows = [row for of, each in zip(found, laws, strict=True) for row in _shown(of, each)]
    if len(found) == 1:
        yield _every_window(group, found[0])
        yield LAWS_OF_ONE.table(title, rows, *about, note)
        levels = [_level(row, at) for row in rows for at in row["reached"].values() if at.has_numbers]
        yield LEVELS_OF_ONE.table("Where p reaches a level", levels, *about, f"Levels: {_OF_LEVELS}.")
    elif rows:
        far = f"* more than {FAR:g} times outside. A single k, as in k=10, is shown with every window and level."
        yield LAWS.table(title, rows, *about, f"{note} {x} at p: {_OF_LEVELS}; {far}")


def _shown(of: Emergence, laws: Sequence[Record]) -> list[Record]:
    """The rows of laws with shares at the ends of the sizes, and where those of one length reach each level."""
    rows = []
    for law, row, least, most in zip(of.laws, laws, of.by_run[0], of.by_run[-1], strict=False):
        shares = {"p_smallest": least["p"], "p_largest": most["p"], "p_independent": most["p_independent"]}
        reached = {at.share: at for each in law.crossings.values() for at in each}
        rows.append({**row, **shares, "reached": reached})
    return [*rows, *({**row, "reached": {}} for row in laws[len(rows) :])]


def _level(row: Record, at: Crossing) -> Record:
    """Where a law reaches one level."""
    reasons = [at.status, *([Status.beyond] if at.is_beyond else [])]
    named = {name: row[name] for name in ("kind", "k", "n")}
    return {**named, "share": at.share, "size": at.size, "reasons": reasons}


def _every_window(group: Group, of: Emergence) -> Table:
    """The share of windows of each length at each size, and what would be expected of the largest."""
    last, largest = of.by_run[-1], group.runs[-1]
    shares = [(run, run.size, windows, "p") for run, windows in zip(group.runs, of.by_run, strict=True)]
    names = {"p_independent": "independent", "p_corrected": "corrected", "n_effective": "N effective"}
    known = {name for row in last for name in row}
    shares += [(largest, f"{largest.size} {what}", last, name) for name, what in names.items() if name in known]
    rows = [
        {"size": size, "non_embedding_params": run.non_embedding_params, "x": run.x}
        | {f"p_{row['n']}": row[name] for row in windows}
        for run, size, windows, name in shares
    ]
    lengths: list[Column[Record]] = [magnitude(f"p_{row['n']}", f"p_{row['n']}") for row in last]
    view = View[Record]("windows", text("size", "size"), place(spare=1), lengths)
    note = "Corrected: beta-binomial with the measured mean and autocorrelation of hits."
    return view.table(f"Windows at k = {of.k:,}", rows, group.title, group.axis, note)


QUESTION = of_each(answer, select=partial(in_size, sizes=3))
