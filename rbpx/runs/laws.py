"""Fits the laws of size to a group of runs: one law for each quantity, k and method, with intervals.

Source: RBP paper (arXiv 2510.20387), section 3, figures 3 to 5, table 2; arXiv 2510.04067 for the terms.
"""

from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np

from rbpx.config.keys.laws import Fitting
from rbpx.laws.numeric import finite_or_none
from rbpx.laws.sweeps import SweepCell
from rbpx.runs.fits import Law, doubted, fit_all, fit_record, rank_fit_record, with_offset
from rbpx.runs.group import Group
from rbpx.runs.points.frontier import frontier
from rbpx.runs.points.sizes import Evidence, Points, law_points
from rbpx.runs.run import grouped
from rbpx.store.store import Record

_DERIVED: Final = ("neg_ln_rbp_1", "cross_entropy_nats")  # from the published fit of the ranks


@dataclass(frozen=True, eq=False)
class GroupLaws:
    """The laws of one group, method by method, their points, and the evidence of each run."""

    group: Group
    evidence: tuple[Evidence, ...]
    points: tuple[Points, ...]
    laws: tuple[Law, ...]
    k_grid: tuple[int, ...]
    resamples: int
    cells: tuple[SweepCell, ...] = ()  # how each point of a frontier was found


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Fitting) -> GroupLaws:
    """Fits every requested law to one group of runs by every requested method."""
    k_grid, evidence, points = law_points(connection, group, request)
    points, cells = frontier(points) if request.frontier else (points, ())
    laws = [doubted(group, law) for method in request.method for law in fit_all(points, method, pins=request.pins)]
    return GroupLaws(group, tuple(evidence), tuple(points), tuple(laws), tuple(k_grid), request.resamples, cells)


def with_offsets(laws: GroupLaws) -> GroupLaws:
    """Adds, behind each law whose points call for an irreducible part E, the law with E."""
    shown = list[Law]()
    for law, points in zip(laws.laws, laws.points, strict=False):  # of the first method
        shown.append(law)
        if law.calls_for_E:
            shown.append(doubted(laws.group, with_offset(law, points)))
    return replace(laws, laws=tuple(shown))


def fit_rows(laws: GroupLaws) -> list[Record]:
    """The rows of `fits`, each with the cells of its frontier."""
    of_law = grouped(laws.cells, lambda cell: (cell.law, cell.k))
    own = {of: {"frontier": [cell.row() for cell in cells]} for of, cells in of_law.items()}
    return [fit_record(laws.group, law, laws.resamples, own.get((law.law, law.k))) for law in laws.laws]


def rank_fit_rows(laws: GroupLaws) -> list[Record]:
    """The published lognormal fit to each run, with the curves derived from it."""
    rows = []
    for run, of in zip(laws.group.runs, laws.evidence, strict=False):
        if of.paper is not None:
            exact = finite_or_none(np.array([of.measured["lognormal_rbp1"], of.measured["lognormal_cross_entropy"]]))
            curves = dict(zip(_DERIVED, exact, strict=True))
            approximated = of.approximated or (None, None)
            curves |= {f"{name}_approximated": value for name, value in zip(_DERIVED, approximated, strict=True)}
            rows += [rank_fit_record(run, laws.group.ties, of.paper, curves)]
    return rows
