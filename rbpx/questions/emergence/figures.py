"""Draws the share of windows of N hits against S.

Source: RBP paper (arXiv 2510.20387), figure 7.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Origin,
    Scale,
    Undrawn,
    curve,
    drawn,
    line,
    points,
    scale_of,
    spread,
)
from rbpx.display.table import PLACE, SIZE, Table, interval, table_of
from rbpx.display.vocabulary import short, whole
from rbpx.questions.emergence.analysis import Emergence
from rbpx.runs.group import Group
from rbpx.runs.origin import spelled

WINDOWS: Final = table_of(
    "windows", SIZE, *PLACE, ("windows", "windows windows n"), *interval("measured", "p", short),
    ("of", "n_windows", whole, "windows, overlapping"),
    ("if independent", "p_independent", short, "RBP_k^N"),
    ("corrected", "p_corrected", short, "beta-binomial with the measured mean and autocorrelation of hits"),
    ("N effective", "n_effective", short, "independent tokens that vary as much"),
    first="size {x} windows p p_independent p_corrected, p_lo, non_embedding_params, n_windows",
)  # fmt: skip


def windows(group: Group, of: Emergence, name: str, title: str) -> Table:
    """The table of every share at one k, with the expected ones."""
    doubts = [f": {fit.status.label}" if fit.status and fit.alpha.value is None else "" for fit in of.fits]
    rows = [
        {key: None if value != value else value for key, value in row.items()}  # not NaN
        | {"windows": f"N = {row['n']}{doubt}", group.axis.value: run.x}
        for run, of_run in zip(group.runs, of.windows, strict=True)
        for row, doubt in zip(of_run, doubts, strict=True)
    ]
    return replace(WINDOWS, name=name).of(title, rows, group.title, group.axis, brief=False)


def figures(group: Group, found: Sequence[Emergence]) -> Iterator[Figure | Undrawn]:
    """A figure for each of up to seven k."""
    for of in spread(found, MOST_SERIES):
        yield _figure(group, of)
    if not found:
        yield Undrawn("k", "Emergence", "The store has no windows of more than one token.")


def _figure(group: Group, of: Emergence) -> Figure | Undrawn:
    name, title, x = f"k{of.k}", f"N tokens in a row of rank at most {of.k:,}", scale_of(group.axis)
    values = windows(group, of, name, title)
    rows: list[Any] = values.records()
    seen = [row for row in rows if row["p"]]
    if not seen:
        return Undrawn(name, title, "No size has a window of hits: choose a smaller n or a larger k.")
    least = min(row["p"] for row in seen) / 10  # less would squeeze the others
    alone = [{**row, "p": row["p_independent"]} for row in rows if (row["p_independent"] or 0.0) > least]
    laws = [
        {**at, "p": math.exp(-float(at["p"] or 0.0))}
        for row, fit in zip(rows, of.fits, strict=False)
        if fit.alpha.value is not None
        for at in curve(fit, x.key, "p", windows=row["windows"])
    ]
    marks = (line(alone, look={"strokeDash": [4, 4]}), line(laws, look={"strokeDash": [1, 0]}), points(rows=seen))
    says = "; ".join(f"{row['windows']}: {row['p']:.3g}" for row in rows[-len(of.fits) :] if row["p"] is not None)
    return drawn(
        values,
        Chart(x, Scale("p", "share of windows", log=True), marks, "windows"),
        f"Share of windows that are all hits for {group.title}; at {group.runs[-1].label} {says}.",
        "Points: share of windows of N consecutive scored tokens that are all hits, without those of 0. Solid: the law "
        "of each N. Dashed: RBP_k^N, if tokens were independent.",
        _origin(group, of),
    )


def _origin(group: Group, of: Emergence) -> Origin:
    run_ids = tuple(group.run_ids)
    if group.is_measured:
        n = [row["n"] for row in of.windows[0]]
        return Origin(spelled("window_shares", run_ids=run_ids, ties=group.ties.value, k=[of.k], n=n), run_ids)
    listed = ", ".join(f"'{run_id}'" for run_id in run_ids)
    chosen = f"SELECT size, k, n, rbp, run_id FROM observations WHERE run_id IN ({listed}) AND k = {of.k}"
    return Origin(f"{chosen} ORDER BY size, n", run_ids)
