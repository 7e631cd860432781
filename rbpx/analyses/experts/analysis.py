"""Compares laws in active and in all parameters (verb experts): groups of runs in, the errors on larger models out."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.groups.group import Group
from rbpx.groups.points.sizes import Points, known_points
from rbpx.groups.select.sizes import tokens_of
from rbpx.laws.intervals.estimate import flat
from rbpx.laws.names import IMPORTED
from rbpx.laws.routed import Routed, compare_sizes
from rbpx.store.store import Record, Store

_LAWS = ("rbp", "cross_entropy", *IMPORTED)
_K = (1, 10, 100)


@dataclass(frozen=True, eq=False)
class Experts:
    """The laws of one quantity of a group with routed models."""

    group: Group
    points: Points
    routed: Routed


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Experts]:
    """Compare the laws of every quantity of the groups with routed models, trained on equally many tokens."""
    chosen = set(request.laws.names) if request.laws.by_name else set(_LAWS)
    found = []
    for group in groups:
        if not any(run.is_routed for run in group.runs) or len({tokens_of(run) for run in group.runs}) > 1:
            continue
        for points in known_points(connection, group, request, chosen, _K):
            routed = _compared(points, request)
            if routed is not None:
                found.append(Experts(group, points, routed))
    return found


def _compared(points: Points, request: Request) -> Routed | None:
    is_known_N = np.isfinite(points.y_N) & (points.y_N > 0)
    runs = [run for run, is_known in zip(points.runs, is_known_N, strict=True) if is_known]
    N, S = (np.array([getattr(run, name) for run in runs]) for name in ("used_params", "non_embedding_params"))
    y = points.y_N[is_known_N]
    return compare_sizes(N, S, S / N, y, n_resamples=request.resamples, seed=request.seed)


def keep(store: Store, result: Experts) -> list[Record]:
    """The laws as rows for programs; nothing is kept, because each is fitted to a part of the runs."""
    routed, names = result.routed, result.group.names()
    shared: Record = {"law": result.points.law, "k": result.points.k, "n_fitted": routed.n_fitted}
    shared |= {"n_held_out": routed.n_held_out, "held_out": list(routed.held_out), "better": routed.better}
    shared |= flat({"difference": routed.difference})
    return [
        {**names, **shared, "form": law.form, "params": flat(law.constants), **flat({"error": law.error})}
        for law in routed.laws
    ]
