"""Gaps between datasets (verb gaps): groups of runs in, for each pair of texts how their ratio of losses changes out.

Source: Relative Scaling Laws for LLMs, arXiv 2510.24626.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import duckdb

from rbpx.analyses.points import Points, size_points, weigh_group
from rbpx.analyses.selection import ALIKE, Group
from rbpx.analyses.size_laws import record_of
from rbpx.config import Request
from rbpx.laws import Method
from rbpx.laws.gap import EQUATION, Gap, fit_gap
from rbpx.status import Status
from rbpx.store import Record, Store

DEFAULT_K: Final = (1, 10, 100)
_LAWS: Final = ("rbp", "cross_entropy")
_SHARED: Final = tuple(name for name in ALIKE if name not in ("dataset", "text_hash"))


@dataclass(frozen=True, eq=False)
class LossGap:
    """The gap of one loss: of `law` ("rbp" or "cross_entropy"), at k where it has one."""

    law: str
    k: int | None
    gap: Gap


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps between two texts, the sizes that both were measured at.

    Attributes:
        group: of the first text, only the sizes that both have.
        other: of the second.
        gaps: one a loss; each says which text is A.
    """

    group: Group
    other: Group
    gaps: tuple[LossGap, ...]


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Gaps]:
    """The gaps of every two groups that differ in their text alone and share 3 sizes or more."""
    found = []
    for one, other in combinations(groups, 2):
        if any(getattr(one.first, name) != getattr(other.first, name) for name in _SHARED):
            continue
        sizes = {run.non_embedding_params for run in one.runs} & {run.non_embedding_params for run in other.runs}
        if len(sizes) < 3:
            continue
        pair = [Group(tuple(r for r in g.runs if r.non_embedding_params in sizes), g.ties) for g in (one, other)]
        found.append(_gaps(connection, pair[0], pair[1], request))
    return found


def _gaps(connection: duckdb.DuckDBPyConnection, one: Group, other: Group, request: Request) -> Gaps:
    # The documents of two texts are drawn independently of each other.
    points = [
        _points(connection, group, replace(request, seed=request.seed + n)) for n, group in enumerate((one, other))
    ]
    gaps = []
    for key, a in points[0].items():
        b = points[1].get(key)
        if b is None or len(a.runs) != len(b.runs):
            continue
        sure = a.doubt is not Status.one_document and b.doubt is not Status.one_document
        resampled = (a.y_BN, b.y_BN) if sure else (None, None)
        gaps.append(LossGap(a.law, a.k, fit_gap(a.S_N, a.y_N, b.y_N, *resampled)))
    return Gaps(one, other, tuple(gaps))


def _points(
    connection: duckdb.DuckDBPyConnection, group: Group, request: Request
) -> dict[tuple[str, int | None], Points]:
    k_grid: list[int] = []
    if group.is_measured:
        k_grid = request.k_grid(min(run.vocab_size or 0 for run in group.runs), DEFAULT_K)
    evidence = weigh_group(connection, group, request, k_grid, _LAWS)
    points = size_points(group, evidence, request, k_grid, _LAWS)
    return {(each.law, each.k): each for each in points if each.doubt in (None, Status.one_document)}


def keep(store: Store, found: Gaps) -> list[Record]:
    """Write the gaps to the store, `dataset` the text with the higher loss, and return them."""
    records = []
    for each in found.gaps:
        a, b = (found.other, found.group) if each.gap.swapped else (found.group, found.other)
        about: dict[str, Any] = {name: value for name, value in vars(each.gap).items() if name != "fit"}
        params = each.gap.fit.params | about | {"loss": each.law, "verdict": each.gap.verdict, "equation": EQUATION}
        params["text_hash_b"] = b.first.text_hash
        more: Record = {"k": each.k, "n": each.law, "dataset_b": b.first.dataset, "params": params}
        run_ids = [*a.run_ids, *b.run_ids]
        record = record_of(a, "gap", each.gap.fit, run_ids, Method.ols, **more)
        store.write_record("fits", record["fit_id"], record)
        records.append(record)
    return records
