"""Figures of emergence: p_{N,k} of windows of N tokens against S. Source: RBP paper (arXiv 2510.20387), figure 7."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

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
from rbpx.display.view import Cell, Column, View, magnitude, place, text
from rbpx.questions.emergence.analysis import Emergence
from rbpx.runs.group import Group
from rbpx.runs.origin import spelled
from rbpx.store.store import Record

WINDOWS: Final[tuple[Column[Record] | Sequence[Column[Record]], ...]] = (
    text("size", "size"),
    place(),
    Column(
        "windows", ("windows", "n"), lambda row: Cell((f"N = {row['n']}",), (row["windows"], row["n"]), is_number=False)
    ),
    magnitude("measured", "p"),
    magnitude("if independent", "p_independent"),
    magnitude("corrected", "p_corrected", means="beta-binomial with the measured mean and autocorrelation of hits"),
)


def figures(group: Group, found: Sequence[Emergence]) -> Iterator[Figure | Undrawn]:
    """A figure for each of up to seven k."""
    for of in spread(found, MOST_SERIES):
        yield _figure(group, of)
    if not found:
        yield Undrawn("k", "Emergence", "The store has no windows of more than one token.")


def _figure(group: Group, of: Emergence) -> Figure | Undrawn:
    name, title, x = f"k{of.k}", f"N tokens in a row of rank at most {of.k:,}", scale_of(group.axis)
    series = [
        f"N = {law.n}" + (f": {law.fit.status.label}" if law.fit.status and law.fit.alpha.value is None else "")
        for law in of.laws
    ]
    rows = [
        {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
        | {"windows": windows, "x": run.x}
        for run, of_run in zip(group.runs, of.by_run, strict=True)
        for windows, row in zip(series, of_run, strict=True)
    ]
    values = View[Record](name, WINDOWS).table(title, rows, axis=group.axis)
    seen = [row for row in values.records() if row["p"]]
    if not seen:
        return Undrawn(name, title, "No size has a window of hits: choose a smaller n or a larger k.")
    least = min(row["p"] for row in rows if row["p"]) / 10  # less would squeeze the others
    alone = [
        {"windows": row["windows"], x.key: row["x"], "p": row["p_independent"]}
        for row in rows
        if row["p_independent"] is not None and row["p_independent"] > least
    ]
    laws = [
        {**at, "p": math.exp(-float(at["p"] or 0.0))}
        for windows, law in zip(series, of.laws, strict=True)
        if law.fit.alpha.value is not None
        for at in curve(law.fit, x.key, "p", windows=windows)
    ]
    marks = (line(alone, look={"strokeDash": [4, 4]}), line(laws, look={"strokeDash": [1, 0]}), points(rows=seen))
    says = "; ".join(
        f"N = {row['n']}: {row['p']:.3g} measured, {row['p_independent']:.3g} if tokens were independent"
        for row in rows[-len(series) :]
        if row["p"] is not None and row["p_independent"] is not None
    )
    left_out = " A logarithmic axis cannot show shares of 0." if any(row["p"] == 0 for row in rows) else ""
    return drawn(
        values,
        Chart(x, Scale("p", "share of windows", log=True), marks, "windows"),
        f"Share of windows that are all hits for {group.title}; at {group.runs[-1].size} {says}.",
        "Points: share of windows of N consecutive scored tokens that are all hits. Solid: the law of each N. "
        f"Dashed: RBP_k^N, if tokens were independent.{left_out}",
        _origin(group, of),
    )


def _origin(group: Group, of: Emergence) -> Origin:
    run_ids = tuple(group.run_ids)
    if group.is_measured:
        asked = spelled(
            "window_shares", run_ids=run_ids, ties=group.ties.value, k=[of.k], n=[row["n"] for row in of.by_run[0]]
        )
        return Origin(asked, run_ids)
    listed = ", ".join(f"'{run_id}'" for run_id in run_ids)
    chosen = f"SELECT size, k, n, rbp, run_id FROM observations WHERE run_id IN ({listed}) AND k = {of.k}"
    return Origin(f"{chosen} ORDER BY size, n", run_ids)
