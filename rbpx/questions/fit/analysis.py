"""Fits every law of size to a group of runs (verb fit), each with its interval and its choice of form.

Source: RBP paper (arXiv 2510.20387), section 3, figures 3 to 5, table 2; arXiv 2510.04067 for the terms.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.names import OnText
from rbpx.laws.power.law import finite_or_none
from rbpx.laws.sweeps import Cell
from rbpx.questions.fit.routed import RoutedLaws, analyse_routed, routed_rows
from rbpx.runs.fits import Law, doubted, fit_all, fit_record, keep_fits, with_cells, write_rank_fit
from rbpx.runs.group import Group
from rbpx.runs.points.frontier import frontier
from rbpx.runs.points.sizes import Evidence, size_points, weigh_group
from rbpx.store.store import Record, Store

if TYPE_CHECKING:
    from rbpx.questions.fit.losses import LossLaws

Found: TypeAlias = "Laws | LossLaws | RoutedLaws"
"""Laws in size or along a training, of loss to loss, or in active beside all parameters."""

_DERIVED: Final = ("neg_ln_rbp_1", "cross_entropy_nats")  # by the published fit of the ranks


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of one family on one dataset, and the evidence of each run; runs in order of S."""

    group: Group
    evidence: tuple[Evidence, ...]
    laws: tuple[Law, ...]
    k_grid: tuple[int, ...]
    resamples: int
    cells: tuple[Cell, ...] = ()  # how each point of a frontier was found
    unshown: tuple[Law, ...] = ()  # fitted too, and left to other verbs

    @property
    def headline(self) -> tuple[Law | None, Law | None]:
        """The law of RBP at the smallest k and that of cross-entropy, each None where it has no numbers."""
        fitted = [law for law in self.laws if law.fit.alpha is not None and law.method is self.laws[0].method]
        first = {law.law: law for law in reversed(fitted)}
        return first.get("rbp"), first.get("cross_entropy")


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Found:
    """Fit every requested law to one group of runs, by every requested method."""
    if isinstance(request.size_by, tuple):
        return analyse_routed(connection, group, request)
    if isinstance(request.axis, OnText):
        from rbpx.questions.fit.losses import analyse_losses  # which laws in size do without, as below

        return analyse_losses(connection, group, request)
    chosen, k_grid = set(request.laws.names), sorted({k for run in group.runs for k, n in run.observed if n == 1})
    if group.is_measured:
        k_grid = request.k.grid(group.vocab_size)
    evidence = weigh_group(connection, group, request, k_grid, chosen)
    points = size_points(group, evidence, request, k_grid, chosen)
    points, cells = frontier(points) if request.frontier else (points, ())
    laws = [
        doubted(group, law)
        for method in request.method
        for law in fit_all(points, method, pins=request.pins, over=request.over)
    ]
    return Laws(group, tuple(evidence), tuple(laws), tuple(k_grid), request.resamples, cells)


def keep(store: Store, laws: Found) -> list[Record]:
    """Write the fits and the rank distributions of a group, and return the fits; a refit replaces its own rows."""
    if isinstance(laws, RoutedLaws):
        return routed_rows(laws)
    if not isinstance(laws, Laws):
        from rbpx.questions.fit.losses import keep_losses

        return keep_losses(store, laws)
    of_law = {
        (cell.law, cell.k): [each.row() for each in laws.cells if (each.law, each.k) == (cell.law, cell.k)]
        for cell in laws.cells
    }
    owns = [{"frontier": of_law[law.law, law.k]} if (law.law, law.k) in of_law else {} for law in laws.laws]
    fits = keep_fits(
        store, [fit_record(laws.group, law, laws.resamples, own) for law, own in zip(laws.laws, owns, strict=True)]
    )
    for run, of in zip(laws.group.runs, laws.evidence, strict=False):
        if of.paper is not None and of.full is not None:
            exact = finite_or_none(np.array([of.measured["lognormal_rbp1"], of.measured["lognormal_cross_entropy"]]))
            curves = dict(zip(_DERIVED, exact, strict=True))
            approximated = of.approximated or (None, None)
            curves |= {f"{name}_approximated": value for name, value in zip(_DERIVED, approximated, strict=True)}
            write_rank_fit(store, run, laws.group.ties, of.paper, curves)
            write_rank_fit(store, run, laws.group.ties, of.full, {})
    return with_cells(laws.group, fits, laws.cells)
