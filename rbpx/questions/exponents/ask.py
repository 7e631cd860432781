"""Answers `exponents`.

Source: RBP paper (arXiv 2510.20387), table 2 and section 5. Shapes: N sizes, B replicates, K ranks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.table import Table, interval, table_of
from rbpx.display.vocabulary import enumerated, number
from rbpx.laws.intervals.estimate import NO_ESTIMATE, by_name
from rbpx.laws.numeric import Floats, line
from rbpx.laws.power.law import fit_power_law
from rbpx.questions.exponents import ExponentsKeys
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import By, Group
from rbpx.runs.points.sizes import Points, known_points
from rbpx.runs.select.groups import select
from rbpx.status import Status
from rbpx.store.store import Record

_K: Final = (1, 10, 100)
_UP_TO: Final = 100  # largest k: beyond it published laws bend towards the vocabulary


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: ExponentsKeys) -> list[Result]:
    """Compares the exponents of each group that has both."""
    pairs = [(group, row) for group in groups if (row := _pair(group, _points(connection, group, request))) is not None]
    if not pairs:
        return []
    of_all, rows = [group for group, _ in pairs], alike([row for _, row in pairs])
    k = sorted({int(name.removeprefix("alpha_")) for name in rows[0] if name.removeprefix("alpha_").isdigit()})
    together = Group(tuple(run for group in of_all for run in group.runs), of_all[0].ties)
    shown = [row | {"dataset": group.title_of_text} for group, row in zip(of_all, rows, strict=True)]
    return [Result([together], rows, [_pairs(k).of("Exponents of the laws in S", shown)], [*_sentences(shown)])]


def _points(connection: duckdb.DuckDBPyConnection, group: Group, request: ExponentsKeys) -> list[Points]:
    points = known_points(connection, group, request, ("rbp", "cross_entropy"), _K)
    points = [each for each in points if each.doubt in (None, Status.one_document) and len(set(each.S_N)) >= 3]
    return [each for each in points if np.all(np.isfinite(each.y_N) & (each.y_N > 0))]


def _pair(group: Group, points: Sequence[Points]) -> Record | None:
    """The exponents of a family on a text; None unless both are known at the same sizes.

    difference: alpha of -ln RBP_1 minus that of cross-entropy. drift: change of alpha per unit of ln k up to k = 100.
    """
    of_k = {p.k: p for p in points if p.law == "rbp" and p.k is not None}
    loss, one = next((p for p in points if p.law == "cross_entropy"), None), of_k.get(1)
    if loss is None or one is None or one.runs != loss.runs:
        return None
    in_k = _in_k({k: of_k[k] for k in sorted(of_k) if k <= _UP_TO and of_k[k].runs == one.runs})
    estimates = {
        name: NO_ESTIMATE if p is None else fit_power_law(p.S_N, p.y_N, p.replicates, backtests=False).alpha
        for name, p in {"difference": one.over(loss), "drift": in_k}.items()
    }
    row = {"kind": "pair", **group.names(), "alpha_cross_entropy": _slope(loss)}
    alphas = {f"alpha_{k}": _slope(p) for k, p in of_k.items()}
    return row | alphas | by_name(**estimates) | {"run_ids": group.run_ids}


def _slope(points: Points) -> float:
    return float(line(np.log(points.S_N), np.log(points.y_N))[1])


def _in_k(points: Mapping[int, Points]) -> Points | None:
    """Exp of the slope of ln y in ln k, whose exponent in S is the drift."""
    if len(points) < 2:
        return None
    of_K, (first, *_) = _slope_in_k(list(points)), points.values()
    drawn = [p.y_BN for p in points.values() if p.y_BN is not None]
    with np.errstate(divide="ignore", invalid="ignore"):  # a replicate with a share of 0 or 1 is left out
        y_BN = np.exp(np.log(np.stack(drawn, axis=-1)) @ of_K) if len(drawn) == len(points) else None
    return replace(first, y_N=np.exp(np.log(np.column_stack([p.y_N for p in points.values()])) @ of_K), y_BN=y_BN)


def _slope_in_k(ks: Sequence[int]) -> Floats:
    return np.asarray(np.linalg.pinv(np.column_stack([np.ones(len(ks)), np.log(ks)]))[1])


def _sentences(rows: Sequence[Record]) -> Iterator[str]:
    apart = sum(estimate_in(row, "difference").leaves_out_0 for row in rows)
    where = "" if len(rows) == 1 else f" in {apart or 'none'} of {len(rows)} cases"
    differ = "have different exponents" if apart or where else "have exponents that cannot be told apart"
    yield (
        f"−ln RBP_1 and cross-entropy {differ}{where}: α of −ln RBP_1 minus that of cross-entropy is "
        f"{_each(rows, 'difference')}."
    )
    if drifts := [row for row in rows if row["drift"] is not None]:
        yield f"With each unit of ln k, α of −ln RBP_k changes by {_each(drifts, 'drift')}."


def _each(rows: Sequence[Record], name: str) -> str:
    return enumerated(
        [f"{interval_of(estimate_in(row, name), 4)} for {row['family']} on {row['dataset']}" for row in rows]
    )


def _pairs(ks: Sequence[int]) -> Table:
    others = " ".join(f"alpha_{k}" for k in ks if k not in (1, _UP_TO))
    return table_of(
        "pairs", ("text", "dataset"), ("family", "family"), ("CE", "alpha_cross_entropy", ".3f"),
        *((f"k = {k:,}", f"alpha_{k}", ".3f") for k in ks),
        *interval("k = 1 − CE", "difference", number,
         "α of −ln RBP_1 minus that of cross-entropy, from the law of their ratio"),
        *interval("for each ln k", "drift", number, f"change of α per unit of ln k, up to k = {_UP_TO}"),
        first=f"dataset family alpha_1 difference, alpha_cross_entropy, alpha_{_UP_TO}, drift, {others}, drift_lo",
    )  # fmt: skip


QUESTION = Question(answer, select=partial(select, by=By.size, sizes=3))
