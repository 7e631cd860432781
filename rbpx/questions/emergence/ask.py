"""Answers `emergence`."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import duckdb

from rbpx.display.law_columns import ALPHA, BACKTEST, CONSTANT, POINTS, R2, estimate_in, law_row
from rbpx.display.section import interval_of
from rbpx.display.table import STATUS, Table, interval, table_of
from rbpx.display.vocabulary import decimals, rough, short, spoken, whole
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.names import Axis
from rbpx.questions.emergence import EmergenceKeys
from rbpx.questions.emergence.analysis import JOINT, Emergence, windows_of
from rbpx.questions.emergence.figures import figures, windows
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.select.groups import select
from rbpx.status import Status
from rbpx.store.store import Record

_NAMES: Final = {JOINT: "C·N"}


def _told(row: Record, axis: Axis) -> Record:
    name = _NAMES.get(row["kind"], f"N = {row['n']}")
    named = {"windows": f"k = {row['k']:,}, {name}", "n": row["n"] or name} | by_name(
        **{f"{axis.value}_at_0.5": _half(row)}
    )
    return law_row(row, axis) | named


def _half(row: Record) -> Estimate:
    at = row["params"].get("half")
    return NO_ESTIMATE if at is None or at["is_beyond"] else Estimate(at["S"], at["lo"], at["hi"])


LAWS: Final = table_of(
    "laws",
    ("windows", "windows k n", str,
     "tokens in a row whose ranks are all at most k; C·N: one law of all N, as if tokens were independent"),
    ("smallest", "p_smallest", short, "p, the share of windows that are right, at the smallest {x}"),
    *interval("largest", "p_largest", short),
    ("right", "n_right", whole, "windows at the largest {x}"),
    ("independent", "p_independent", short, "RBP_k^N at the largest {x}"),
    *ALPHA, *CONSTANT, *R2, ("R² of p", "r2_p", ".3f"), BACKTEST, *POINTS,
    *interval("{x} at 0.5", "{x}_at_0.5", rough,
     "where RBP_k^N is one half, by the law of RBP_k, over forms outside the sizes; – beyond 10 times these"),
    STATUS,
    first="windows p_smallest p_largest alpha status, n_right, p_largest_lo r2, p_independent, {x}_at_0.5, C, "
    "backtest_error, n_points {x}_from, r2_lo",
)  # fmt: skip


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: EmergenceKeys) -> Result:
    """The windows at each k with their laws."""
    found = [*windows_of(connection, group, request)]
    says = [_sentence(group, of) for of in sorted(found, key=lambda of: of.spoken_of is None)]
    return Result(
        [group],
        [row for of in found for row in (*chain(*of.windows), *of.laws)],
        [*_tables(group, found)] if found else [],
        says or ["Nothing is known here of several tokens in a row: import shares with columns k and n."],
        partial(figures, group, found),
        [row for of in found for row in of.laws],
    )


def _tables(group: Group, found: Sequence[Emergence]) -> Iterator[Table]:
    about = (group.title, group.axis)
    laws = list[Record]()
    for of in found:
        for row, least, most in zip(of.laws, of.windows[0], of.windows[-1], strict=False):
            n = most["n_windows"]
            shares = {"p_smallest": least["p"], "p_independent": most["p_independent"]}
            shares |= by_name(p_largest=estimate_in(most, "p"))
            shares["n_right"] = None if n is None or most["p"] is None else round(most["p"] * n)
            laws.append(row | shares)
        laws += of.laws[len(of.fits) :]
    if len(found) == 1:
        yield windows(group, found[0], "windows", f"Windows at k = {found[0].k:,}")
    title, first = "Laws of windows of N tokens in a row", _first(found)
    told = [(first.k, n) for n in (first.told["n"], None)]  # what the sentence is about
    is_main = [_has_law(law) or (law["k"], law["n"]) in told for law in laws]
    yield LAWS.of(title, [_told(law, group.axis) for law in laws], *about, brief=is_main)


def _has_law(row: Record) -> bool:
    return (row["n"] or 1) > 1 and row["alpha"] is not None


def _first(found: Sequence[Emergence]) -> Emergence:
    return next((of for of in found if of.spoken_of is not None), found[0])


def _sentence(group: Group, of: Emergence) -> str:
    joint, x, doubt = of.laws[len(of.fits)], group.axis.value, ""
    says = _shares(group.runs[-1].label, of)
    if of.spoken_of is None or len(of.fits) == 1:
        return f"{says}{_if_independent(of, x)}."
    if joint["alpha"] is None:
        return f"{says}."
    alpha, status = interval_of(estimate_in(joint, "alpha")), Status(joint["status"])
    if status is not Status.ok:
        doubt = f", but is doubted: {status.finding}"
    return f"{says}; one law of all N, −ln p = C·N·{x}^−α, has α {alpha} and R² {decimals(2)(joint['r2'])}{doubt}."


def _shares(model: str, of: Emergence) -> str:
    row, tokens = of.told, number_of(of.told["n"], "token")
    p, n, alone, ends = row["p"], row["n_windows"], row["p_independent"], estimate_in(row, "p").ends
    if p is None:
        return f"No document has {tokens} in a row"
    over = "no interval" if ends is None else f"95 %: {ends[0]:.3g} to {ends[1]:.3g}"
    share = f"a share of {p:.3g} of windows ({over})" if p else "no window"
    if n is not None:
        share = f"{round(p * n):,} of {n:,} windows" + (f" ({p:.3g} of them, {over})" if p else "")
    if of.spoken_of is not None:
        share += f", {short(p / alone)} times the {alone:.3g} of independent tokens"
        share += "" if ends is None or of.are_apart else ", which these windows do not tell apart"
    return f"{model} gets {tokens} in a row right at k = {of.k:,} in {share}"


def _if_independent(of: Emergence, x: str) -> str:
    row = of.told
    power, half = f"RBP_{of.k}^{row['n']}", of.laws[of.windows[-1].index(row)]["params"].get("half")
    said = [] if of.spoken_of is not None or math.isnan(row["p_independent"]) else [f"is {row['p_independent']:.3g}"]
    at = None if half is None else half["S"] or (half["law"] and half["law"]["S"])
    if half is not None and at is not None:
        said.append(f"is one half at {x} = {spoken(at)}{', too far out to rely on' if half['is_beyond'] else ''}")
    return f"; {power}, of independent tokens, {' and '.join(said)}" if said else ""


QUESTION = of_each(answer, select=partial(select, sizes=3))
