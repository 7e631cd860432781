"""The ways in which a question selects runs: by size, along an axis, whole trainings, or in size and tokens.

Each takes a connection, a request and the cells of a grid (None for all runs that match the request).
"""

from collections.abc import Sequence
from typing import Final

import duckdb
import numpy as np

from rbpx.config.keys.runs import Narrowing
from rbpx.errors import RbpxError
from rbpx.laws.names import Axis, OnText
from rbpx.laws.surface.design import judge_design
from rbpx.runs.group import Group
from rbpx.runs.select.axis import select_along
from rbpx.runs.select.schedules import said_of_underway, underway
from rbpx.runs.select.sizes import select, select_runs, tokens_of, with_enough_sizes
from rbpx.runs.select.trainings import select_trainings
from rbpx.spelling import typed

__all__ = ["in_size", "in_size_and_tokens", "varies_in_both", "whole_trainings"]

Cells = Sequence[str] | None
_LAW: Final = 3  # minimum number of sizes of a law in S
_IN_BOTH: Final = (Axis.S, Axis.D, Axis.C)


def in_size(
    connection: duckdb.DuckDBPyConnection,
    request: Narrowing,
    cells: Cells = None,
    *,
    sizes: int = 1,
    along: bool = True,
    best_of_budget: bool = True,
    needs_law: bool = True,
) -> Sequence[Group]:
    """One run for each size, or the points along D, C or steps.

    `sizes` are those that a law needs; checkpoints with fewer are dropped where a family has enough. `along` allows
    laws in D, C or steps.

    Raises:
        RbpxError: the request has another axis, or its runs cannot be combined.
    """
    axis = request.axis
    if axis is Axis.S:
        groups = select(connection, request, cells, needs_law)
        return with_enough_sizes(groups, sizes) if sizes >= _LAW else groups
    if isinstance(axis, OnText):
        raise RbpxError(
            f"axis={axis.value} is asked of predict alone: {typed('predict', axis=axis.value)} tells what models show "
            f"from what they show on {axis.dataset}"
        )
    if not along:
        raise RbpxError(f"axis={axis.value} is not for this verb; drop it, or ask fit, whose laws are in any")
    return select_along(connection, request, cells, best_of_budget and not request.frontier, needs_law)


def whole_trainings(
    connection: duckdb.DuckDBPyConnection,
    request: Narrowing,
    cells: Cells = None,
    *,
    needs_tokens: bool = True,
) -> Sequence[Group]:
    """All trainings of a family.

    With `needs_tokens`, trainings with unknown tokens are left out and `last=` is applied.

    Raises:
        RbpxError: the request is about another axis than S, or no run has finished or has known tokens.
    """
    if request.axis is not Axis.S:
        return in_size(connection, request, cells, along=False)
    groups = select_trainings(connection, request, cells, needs_tokens)
    if not groups and (runs := select_runs(connection, request, cells, plans=True)):
        if n := len(underway(runs)):
            raise RbpxError(f"no run that matches has finished; {said_of_underway(n, runs[0].source)}")
        raise RbpxError(
            f"this needs the training tokens D of each run, and no run in store={request.store} that matches has them, "
            "or FLOPs to compute them from; measure with model.tokens=N, or import a table with a column D "
            "(python -m rbpx import)"
        )
    return groups


def in_size_and_tokens(
    connection: duckdb.DuckDBPyConnection, request: Narrowing, cells: Cells = None
) -> Sequence[Group]:
    """The families that vary in size and tokens, with the runs along one axis.

    Raises:
        RbpxError: as of `in_size`, unless two families vary in both and can be compared.
    """
    if request.axis not in _IN_BOTH or request.E is not None:
        return in_size(connection, request, cells, best_of_budget=False)
    surfaces = [group for group in select_trainings(connection, request, cells) if varies_in_both(group)]
    try:
        return [*surfaces, *in_size(connection, request, cells, best_of_budget=False)]
    except RbpxError:
        if len(surfaces) < 2:
            raise
    return surfaces


def varies_in_both(group: Group) -> bool:
    """Whether size and tokens vary independently, as a surface needs."""
    S = np.array([run.non_embedding_params for run in group.runs], np.float64)
    D = np.array([tokens_of(run) for run in group.runs], np.float64)
    return bool(np.all(S > 0) and np.all(D > 0)) and not judge_design(S, D).is_collinear
