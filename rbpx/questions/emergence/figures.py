"""Figures of emergence: p_{N,k} of windows of N tokens against S. Source: RBP paper (arXiv 2510.20387), figure 7."""

import math
from collections.abc import Sequence
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
from rbpx.laws.power.law import PowerLawFit
from rbpx.questions.emergence.analysis import Emergence, Emergences, ShownLaw
from rbpx.runs.group import Group, Run
from rbpx.runs.origin import spelled

_Law = ShownLaw[PowerLawFit]
_Row = tuple[Run, _Law, list[float | None]]


def _series(law: _Law) -> str:
    """The length of windows, and where their law has no line, why."""
    return f"N = {law.n}" if law.fit.alpha is not None else f"N = {law.n}: {law.fit.status.label}"


def _length(row: _Row) -> Cell:
    return Cell((f"N = {row[1].n}",), (_series(row[1]), row[1].n), is_number=False)


WINDOWS: Final[tuple[Column[_Row] | Sequence[Column[_Row]], ...]] = (
    text("size", "size", lambda row: row[0].size),
    place(lambda row: row[0]),
    Column("windows", ("windows", "n"), _length),
    magnitude("measured", "p", lambda row: row[2][0]),
    magnitude("if independent", "p_independent", lambda row: row[2][1]),
    magnitude(
        "corrected", "p_corrected", lambda row: row[2][2],
        "beta-binomial with the measured mean and autocorrelation of hits",
    ),
)  # fmt: skip


def figures(results: Sequence[Emergences], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """A figure for each of up to seven k."""
    found = [_figure(result.group, of) for result in results for of in spread(result.by_k, MOST_SERIES)]
    return found or [Undrawn("k", "Emergence", "The store has no windows of more than one token.")]


def _figure(group: Group, of: Emergence) -> Figure | Undrawn:
    name, title, x = f"k{of.k}", f"N tokens in a row of rank at most {of.k:,}", scale_of(group.axis)
    rows = [(run, law, _shares(of, m, at)) for m, run in enumerate(group.runs) for at, law in enumerate(of.laws)]
    values = View(name, WINDOWS).table(title, rows, axis=group.axis)
    seen = [row for row in values.records() if row["p"]]
    if not seen:
        return Undrawn(name, title, "No size has a window of hits: choose a smaller n or a larger k.")
    least = min(p for _, _, (p, *_) in rows if p) / 10  # less would squeeze the others
    alone = [
        {"windows": _series(law), x.key: run.x, "p": p} for run, law, (_, p, _) in rows if p is not None and p > least
    ]
    laws = [
        {**at, "p": math.exp(-float(at["p"] or 0.0))}
        for law in of.laws
        if law.fit.alpha is not None
        for at in curve(law.fit, x.key, "p", windows=_series(law))
    ]
    marks = (line(alone, look={"strokeDash": [4, 4]}), line(laws, look={"strokeDash": [1, 0]}), points(rows=seen))
    says = "; ".join(
        f"N = {law.n}: {p:.3g} measured, {independent:.3g} if tokens were independent"
        for _, law, (p, independent, _) in rows[-len(of.lengths) :]
        if p is not None and independent is not None
    )
    left_out = " A logarithmic axis cannot show shares of 0." if (of.measured_MN == 0).any() else ""
    return drawn(
        values,
        Chart(x, Scale("p", "share of windows", log=True), marks, "windows"),
        f"Share of windows that are all hits for {group.title}; at {group.runs[-1].size} {says}.",
        "Points: share of windows of N consecutive scored tokens that are all hits. Solid: the law of each N. "
        f"Dashed: RBP_k^N, if tokens were independent.{left_out}",
        _origin(group, of),
    )


def _shares(of: Emergence, m: int, at: int) -> list[float | None]:
    """The share of windows of one size and length: measured, if independent, corrected."""
    shares = [of.measured_MN[m, at], of.independent_MN[m, at]]
    shares.append(of.dependence[m].corrected_N[at] if of.dependence else math.nan)
    return [float(p) if math.isfinite(p) else None for p in shares]


def _origin(group: Group, of: Emergence) -> Origin:
    run_ids = tuple(group.run_ids)
    if group.is_measured:
        asked = spelled("window_shares", run_ids=run_ids, ties=group.ties.value, k=[of.k], n=of.lengths)
        return Origin(asked, run_ids)
    listed = ", ".join(f"'{run_id}'" for run_id in run_ids)
    chosen = f"SELECT size, k, n, rbp, run_id FROM observations WHERE run_id IN ({listed}) AND k = {of.k}"
    return Origin(f"{chosen} ORDER BY size, n", run_ids)
