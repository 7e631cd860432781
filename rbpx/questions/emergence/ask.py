"""Answers how often N tokens in a row are right: the laws of their windows, where these reach a level, every window.

p_{N,k} = Pr(N consecutive tokens all have rank <= k). Source: RBP paper (arXiv 2510.20387), eqs. 6 to 8, figure 7.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.law_columns import backtest, constant, determination, estimate_in, exponent, points_of
from rbpx.display.section import interval_of
from rbpx.display.view import Cell, Column, Table, View, decimal, magnitude, state, with_ends
from rbpx.display.vocabulary import AXES, rough
from rbpx.laws.intervals.estimate import Estimate
from rbpx.questions.emergence.analysis import JOINT, POOLED, SHARES, Emergence, windows_of
from rbpx.questions.emergence.figures import figures, windows
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.ways import in_size
from rbpx.status import Status
from rbpx.store.store import Record

_NAMES: Final = {POOLED: "pooled", JOINT: "C·N"}


def _windows(row: Record) -> Cell:
    name = _NAMES.get(row["kind"], f"N = {row['n']}")
    return Cell((f"k = {row['k']:,}, {name}",), (row["k"], row["n"] or name), is_number=False)


def _size(at: Record) -> Estimate:
    """Where a law reaches a level."""
    return Estimate(at.get("S"), at.get("lo"), at.get("hi"))


WINDOWS: Final = Column[Record]("windows", ("k", "n"), _windows)
LAWS: Final = View[Record](
    "laws",
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
    with_ends("{x} at p = 0.5", "{x}_at_0.5", lambda row: _size(row.get("half") or {}), rough, spare=4),
    state(),
)
LEVELS: Final = View[Record](
    "levels",
    WINDOWS,
    decimal("p", "share", digits=1),
    with_ends("{x}", "{x}_at_share", lambda row: _size(row), rough),
    state(),
)


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Count or read the windows at each k, and fit their laws."""
    found = [*windows_of(connection, group, request)]
    says = [_sentence(group.runs[-1].size, of) for of in found]
    return Result(
        [group],
        [row for of in found for row in (*chain(*of.windows), *of.laws)],
        [*_tables(group, found)] if found else [],
        [*filter(None, says)] if found else ["The store has no windows of more than one token."],
        partial(figures, group, found),
        [row for of in found for row in of.laws],
    )


def _tables(group: Group, found: Sequence[Emergence]) -> Iterator[Table]:
    """The laws of a group and where they reach a level; for a single k every window and every level."""
    x, c, about = group.axis.value, AXES[group.axis].constant, (group.title, group.axis)
    laws, levels = list[Record](), list[Record]()
    for of in found:
        for row, least, most in zip(of.laws, of.windows[0], of.windows[-1], strict=False):
            shares = {"p_smallest": least["p"], "p_largest": most["p"], "p_independent": most["p_independent"]}
            reached = row["params"]["crossings"]
            laws.append({**row, **shares, "half": reached[SHARES.index(0.5)]})
            levels += [
                {"kind": "law", "k": of.k, "n": row["n"], **at, "reasons": [at["status"], *far]}
                for at in reached
                for far in [[Status.beyond] if at["is_beyond"] else []]
                if {at["S"], at["lo"], at["hi"]} != {None}
            ]
        laws += of.laws[len(of.fits) :]
    if len(found) == 1:
        yield windows(group, found[0], "windows", f"Windows at k = {found[0].k:,}")
    note = (
        f"p: share of windows of N consecutive tokens whose ranks are all at most k; ties {group.ties.value}. "
        f"−ln p = {c}·{x}^−α for each N; pooled: one α and a constant for each N, from the counts of windows, "
        f"p = 0 included; C·N: −ln p = {c}·N·{x}^−α, as if tokens were independent. "
        f"{x} at p: by the law within the sizes, over forms outside them."
    )
    yield LAWS.table("Laws of windows of N tokens in a row", laws, *about, note)
    if len(found) > 1:
        return
    note = "Levels: as in predict outside the sizes; – for an unbounded end."
    yield LEVELS.table("Where p reaches a level", levels, *about, note)


def _sentence(size: str, of: Emergence) -> str:
    """How far the largest model is from independent tokens, at the second length above 1 or the only one; alpha."""
    says = []
    known = [row for row in of.windows[-1] if row["n"] > 1 and row["p"] and row["p_independent"] > 0]  # not NaN
    for row in known[:2][-1:]:
        p, n, alone, ends = row["p"], row["n_windows"], row["p_independent"], estimate_in(row, "p").ends
        counted = "" if n is None else f"{round(p * n):,} of {n:,}, "
        over = "no interval" if ends is None else f"95 %: {ends[0]:.3g} to {ends[1]:.3g}"
        apart = ", which these windows do not tell apart" if ends is not None and ends[0] <= alone <= ends[1] else ""
        says.append(
            f"{size} gets a share of {p:.3g} of the windows of {row['n']} tokens right ({counted}{over}), "
            f"{rough(p / alone)} times as many as the {alone:.3g} of independent tokens{apart}."
        )
    pooled = of.laws[len(of.fits)]
    if pooled["alpha"] is not None:
        alpha, status = interval_of(estimate_in(pooled, "alpha")), Status(pooled["status"]).label
        says.append(f"With a constant for each N, one α for all is {alpha}, {status}.")
    return f"k = {of.k:,}: {' '.join(says)}" if says else ""


QUESTION = of_each(answer, select=partial(in_size, sizes=3))
