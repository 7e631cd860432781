"""Finds outliers: runs that laws in size and tokens leave out by default, and name.

The largest runs that lie off together are named too but count; results are also given without them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import duckdb
import numpy as np

from rbpx.config.keys.predictions import Surfaces
from rbpx.config.options import Outliers
from rbpx.display.vocabulary import rough, spoken, the_largest
from rbpx.errors import number_of
from rbpx.laws.surface.outliers import common_shift, outliers
from rbpx.runs.group import Group
from rbpx.runs.points.frontier import said_of_points
from rbpx.runs.points.surfaces import Trained, trained_quantities
from rbpx.store.store import Record

_MOST: Final = 5  # named in sentences
_COUNTS: Final = {True: "What follows counts it, by outliers=keep.", False: "outliers=keep counts what is left out."}


def tested_quantities(connection: duckdb.DuckDBPyConnection, group: Group, request: Surfaces) -> list[Trained]:
    """Every requested quantity, after `tested`."""
    return [tested(each, request) for each in trained_quantities(connection, group, request)]


def tested(trained: Trained, request: Surfaces) -> Trained:
    """Remove the outliers of a quantity, unless the request keeps them, and test its largest runs."""
    keeps = request.outliers is Outliers.keep
    runs, rows, sign = trained.runs, list[Record](), trained.sign
    found = outliers(runs)
    for each in found:
        at = max(np.flatnonzero(runs.group_N == each.run).tolist(), key=lambda at: runs.D_N[at])  # its last checkpoint
        row: Record = {**trained.members[at].names(), "S": float(runs.S_N[at]), "D": float(runs.D_N[at])}
        row |= {"n_runs": runs.n_groups, "y": sign * float(runs.y_N[at]), "off": sign * each.share}
        rows.append(row | {"in_sd": sign * each.in_sd, "p": each.p, "counts": keeps})
    in_N = ~np.isin(runs.group_N, [] if keeps else [each.run for each in found])
    rest = replace(trained, outside=tuple(rows)).only(in_N)
    return replace(rest, largest_off=common_shift(rest.runs))


def said_of_runs(group: Group, quantities: Sequence[Trained]) -> Iterator[str]:
    """What a point is, which runs are outliers, how far they lie off, and whether they count."""
    yield from group.of_trainings
    yield from said_of_points([cell for each in quantities for cell in each.cells], group.runs)
    for trained in quantities:
        if not trained.outside:
            continue
        named = [
            f"{spoken(row['S'])} parameters on {spoken(row['D'])} tokens, {abs(row['off']):.1%} "
            f"{'above' if row['off'] > 0 else 'below'} what they say ({rough(abs(row['in_sd']))} standard deviations)"
            for row in trained.outside[:_MOST]
        ]
        n, row = len(trained.outside), trained.outside[0]
        yield (
            f"{trained.title}: {n} of {number_of(row['n_runs'], 'run')} {'lies' if n == 1 else 'lie'} outside what the "
            f"others allow: {'; '.join(named)}{'; ...' if n > _MOST else ''}. Look whether it is underway, diverged "
            f"or was not tuned. {_COUNTS[row['counts']]}"
        )


def said_of_largest(trained: Trained) -> str | None:
    """Which of the largest runs lie off together, and how far."""
    off = trained.largest_off
    if off is None:
        return None
    side = "above" if trained.sign * off.share > 0 else "below"
    named = the_largest([trained.labels[run] for run in off.runs])
    return f"{named} lie {abs(off.share):.1%} {side} what the others predict"


def outlier_rows(group: Group, quantities: Sequence[Trained]) -> list[Record]:
    """A row of kind outlier for each outlier."""
    return [
        {"kind": "outlier", **group.names(), "law": trained.law, "k": trained.k, **row}
        for trained in quantities
        for row in trained.outside
    ]
