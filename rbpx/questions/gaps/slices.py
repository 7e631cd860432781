"""Computes the losses of slices of the tokens of a text, at every size of a group.

Slices share their documents, so one bootstrap serves all. Shapes: N sizes, B replicates, D documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

from rbpx.config.keys.tasks import ITEM_SLICES
from rbpx.errors import RbpxError
from rbpx.laws.intervals.estimate import effective_number
from rbpx.laws.numeric import Floats
from rbpx.questions.gaps import GapsKeys
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points, size_points, weigh
from rbpx.runs.units import Documents
from rbpx.spelling import typed
from rbpx.status import Status
from rbpx.store.columns import numbers
from rbpx.store.sql import SqlLimits, ask, ask_where

DEFAULT_K: Final = (1, 10, 100)
LOSSES: Final = ("rbp", "cross_entropy")
POSITIONS: Final = (1, 16, 64, 256)  # first positions of the built-in buckets


@dataclass(frozen=True, eq=False)
class TextLosses:
    """A text, or a slice of it by an SQL condition on `scored_tokens`.

    Attributes:
        points: by law and k; doubted where a slice has one document, or other tokens at other sizes.
        n_tokens: at the largest size.
    """

    group: Group
    name: str
    points: Sequence[Points]
    where: str = ""
    n_tokens: int = 0


def slices_of(connection: duckdb.DuckDBPyConnection, group: Group, request: GapsKeys) -> list[TextLosses]:
    """The losses of every requested slice at every size of a measured group.

    Raises:
        RbpxError: a condition is invalid, or fewer than two slices have tokens at every size.
    """
    limits, wheres = SqlLimits(request.sql_timeout_s, request.sql_memory_mib), dict[str, str]()
    counts: dict[str, list[pa.Table]] = {}
    for run in group.runs:
        scored = ask(connection, "scored_tokens", run_id=run.run_id, ties=group.ties.value)
        wheres |= _conditions(request, scored)
        for name, where in wheres.items():
            count = ask_where(connection, scored, f"slices.{name}", where, "slice_ranks", limits)
            counts.setdefault(name, []).append(count)
    occupied = {name: tables for name, tables in counts.items() if all(table.num_rows for table in tables)}
    empty = [name for name in request.conditions if name not in occupied]
    if empty or len(occupied) < 2:
        of = f".{empty[0]}={wheres[empty[0]]!r} matches none" if empty else f"={request.slices} does not divide any"
        raise RbpxError(
            f"slices{of} of the scored tokens of {group.title}, and a gap needs two slices that have some at every "
            f"size; give other conditions, as in {typed(slices={'early': 'position < 8'})}"
        )
    weights_BD = group.weights(request)
    return [_slice(group, request, name, wheres[name], tables, weights_BD) for name, tables in occupied.items()]


def _conditions(request: GapsKeys, scored: pa.Table) -> dict[str, str]:
    """The slices in the order of the request; a single condition is joined by its complement."""
    by, given = request.slices, request.conditions
    if by in ITEM_SLICES:
        names = sorted(str(name) for name in scored[by].unique().to_pylist() if name is not None)
        return {name: "{} = '{}'".format(by, name.replace("'", "''")) for name in names}
    if by == "position":
        ends = {f"{a}-{b - 1}": f"position BETWEEN {a} AND {b - 1}" for a, b in pairwise(POSITIONS)}
        return ends | {f"{POSITIONS[-1]}+": f"position >= {POSITIONS[-1]}"}
    if by == "frequency":
        return {f"decile {n}": f"decile = {n}" for n in range(1, 11)}
    # A condition that is NULL is not true, so its token belongs to the complement.
    rest = {f"not {name}": f"({where}\n) IS NOT TRUE" for name, where in given.items()}
    return given | rest if len(given) == 1 else given


def _slice(
    group: Group, request: GapsKeys, name: str, where: str, tables: list[pa.Table], weights_BD: Floats
) -> TextLosses:
    k_grid = request.k.grid(group.vocab_size, DEFAULT_K)
    runs = zip(tables, group.runs, strict=True)
    evidence = [weigh(table, weights_BD, k_grid, run.vocab_size or 0, LOSSES) for table, run in runs]
    doc_N, tokens_N = (numbers(tables[-1][name]) for name in ("doc_id", "n_tokens"))
    tokens_U = (group.documents or Documents.alone(group.n_documents)).tokens_of_units(doc_N, tokens_N)
    # The number of tokens and their combined bits identify a set.
    chosen = [
        (int(numbers(table["n_tokens"]).sum()), int(np.bitwise_xor.reduce(numbers(table["token_bits"]))))
        for table in tables
    ]
    doubt = Status.one_document if np.count_nonzero(tokens_U) == 1 else None
    doubt = Status.mixed if len(set(chosen)) > 1 else doubt
    points = size_points(group, evidence, request, k_grid, LOSSES)
    effective = effective_number(tokens_U)
    points = [replace(each, doubt=each.doubt or doubt, n_effective=effective) for each in points]
    return TextLosses(group, name, points, where, chosen[-1][0])
