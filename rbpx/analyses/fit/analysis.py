"""The laws of size side by side (verb fit): every law of a group of runs, with its interval and its choice of form.

Source: RBP paper (arXiv 2510.20387), section 3, figures 3 to 5, table 2; arXiv 2510.04067 for the terms.
"""

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.groups.evidence import Evidence
from rbpx.groups.fits import Law, doubted, fit_all, fit_record, keep_fits, write_rank_fit
from rbpx.groups.group import Group
from rbpx.groups.points import size_points, weigh_group
from rbpx.store.store import Record, Store


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of one family on one dataset, and what each run says; runs in order of S."""

    group: Group
    evidence: tuple[Evidence, ...]
    laws: tuple[Law, ...]
    k_grid: tuple[int, ...]
    resamples: int

    @property
    def headline(self) -> tuple[Law | None, Law | None]:
        """The law of RBP at the smallest k and that of cross-entropy, each None where it has no numbers."""
        fitted = [law for law in self.laws if law.fit.alpha is not None and law.method is self.laws[0].method]
        first = (next((law for law in fitted if law.law == name), None) for name in ("rbp", "cross_entropy"))
        return next(first), next(first)


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Laws:
    """Fit every requested law to one group of runs, by every requested method."""
    k_grid = _k_grid(group, request)
    chosen = set(request.laws.names)
    evidence = weigh_group(connection, group, request, k_grid, chosen)
    points = size_points(group, evidence, request, k_grid, chosen)
    laws = [doubted(group, law) for method in request.method for law in fit_all(points, method)]
    return Laws(group, tuple(evidence), tuple(laws), tuple(k_grid), request.resamples)


def _k_grid(group: Group, request: Request) -> list[int]:
    if not group.is_measured:
        return sorted({k for run in group.runs for k, n in run.observed if n == 1})
    return request.k.grid(min(run.vocab_size or 0 for run in group.runs))


def _derived_curves(evidence: Evidence) -> Record:
    """The curves that the published fit derives, exact and approximate."""
    measured = evidence.measured
    return {
        "neg_ln_rbp_1": _finite_or_none(measured["lognormal_rbp1"]),
        "cross_entropy_nats": _finite_or_none(measured["lognormal_cross_entropy"]),
        "neg_ln_rbp_1_approximated": None if evidence.approximated is None else evidence.approximated[0],
        "cross_entropy_nats_approximated": None if evidence.approximated is None else evidence.approximated[1],
    }


def _finite_or_none(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def keep(store: Store, laws: Laws) -> list[Record]:
    """Write the fits and the rank distributions of a group, and return the fits; a refit replaces its own rows."""
    fits = keep_fits(store, [fit_record(laws.group, law, laws.resamples) for law in laws.laws])
    for run, evidence in zip(laws.group.runs, laws.evidence, strict=False):
        if evidence.paper is not None and evidence.full is not None:
            write_rank_fit(store, run, laws.group.ties, evidence.paper, _derived_curves(evidence))
            write_rank_fit(store, run, laws.group.ties, evidence.full, {})
    return fits
