"""Answers `exponents`: compares the exponents of laws in S for each family and text, and averages them.

The means have intervals over families, texts and models. Source: RBP paper (arXiv 2510.20387), table 2 and section 5,
which finds equal exponents of cross-entropy and -ln RBP_1.
Shapes: N sizes, B bootstrap replicates, K ranks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.view import View, decimal, share, text, with_ends
from rbpx.errors import RbpxError, number_of
from rbpx.files.rows import read_table
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.numeric import Floats, line
from rbpx.laws.power.intervals import ALPHA
from rbpx.laws.power.law import fit_power_law
from rbpx.questions.exponents import pooled
from rbpx.questions.exponents.classes import of_classes
from rbpx.questions.exponents.mean import mean_over
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points, known_points
from rbpx.runs.select.selections import in_size
from rbpx.status import Status
from rbpx.store.store import Record

_K: Final = (1, 10, 100)
_UP_TO: Final = 100  # largest k: beyond it published laws bend towards the vocabulary
_COLUMNS: Final = ("dataset", "family", "k", "slope")  # columns of a file of published slopes


@dataclass(frozen=True, eq=False)
class Pair:
    """One family on one text.

    Attributes:
        title: the text, with what distinguishes its runs from others of the family on that text.
        ks: k with a known exponent.
        rows: exponents of all tokens, with `difference`, that of -ln RBP_1 minus that of cross-entropy, and `drift`,
            the change of alpha per unit of ln k up to k = 100; then of the tokens that improve and of the others.
        points: the quantities whose exponents are the difference and the drift, by these names; empty for a file.
        groups: its runs; empty for a file.
    """

    title: str
    ks: Sequence[int]
    rows: Sequence[Record]
    points: Mapping[str, Points | None] = field(default_factory=dict)
    groups: Sequence[Group] = ()


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Result]:
    """Compares the exponents of each group, averages over the groups with both, and pools families on one text."""
    known = [(group, _points(connection, group, request)) for group in groups]
    pairs = [pair for each in known if (pair := _pair(connection, *each, request)) is not None]
    laws = pooled.pool(known)
    of_all = [group for each in pairs or laws for group in each.groups]
    return [_result(pairs, laws, pooled.families(of_all))] if of_all else []


def _points(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> list[Points]:
    points = known_points(connection, group, request, ("rbp", "cross_entropy"), _K)
    points = [each for each in points if each.doubt in (None, Status.one_document) and len(set(each.S_N)) >= 3]
    return [each for each in points if np.all(np.isfinite(each.y_N) & (each.y_N > 0))]


def _pair(
    connection: duckdb.DuckDBPyConnection, group: Group, points: Sequence[Points], request: Request
) -> Pair | None:
    of_k = {p.k: p for p in points if p.law == "rbp" and p.k is not None}
    loss, one = next((p for p in points if p.law == "cross_entropy"), None), of_k.get(1)
    if loss is None or one is None or one.runs != loss.runs:
        return None
    in_k = _in_k({k: of_k[k] for k in sorted(of_k) if k <= _UP_TO and of_k[k].runs == one.runs})
    behind, names = {"difference": one.over(loss), "drift": in_k}, group.names()
    estimates = {
        name: NO_ESTIMATE if p is None else fit_power_law(p.S_N, p.y_N, p.replicates, backtests=False).alpha
        for name, p in behind.items()
    }
    rows = [_row(names, _slope(loss), {k: _slope(p) for k, p in of_k.items()}, estimates)]
    if group.is_measured and group.n_resampled > 1:
        rows += [{"kind": "tokens", **names, **row} for row in of_classes(connection, group, request)]
    return Pair(group.title_of_text, list(of_k), rows, behind, [group])


def _row(names: Record, of_loss: float, alphas: Mapping[int, float], estimates: Mapping[str, Estimate]) -> Record:
    of_k = {f"alpha_{k}": alpha for k, alpha in alphas.items()}
    return {"kind": "pair", **names, "alpha_cross_entropy": of_loss, **of_k, **by_name(**estimates)}


def _slope(points: Points) -> float:
    return float(line(np.log(points.S_N), np.log(points.y_N))[1])


def _in_k(points: Mapping[int, Points]) -> Points | None:
    """Exp of the slope of ln y in ln k, whose exponent in S is the change of alpha per unit of ln k."""
    if len(points) < 2:
        return None
    of_K, (first, *_) = _slope_in_k(list(points)), points.values()
    drawn = [p.y_BN for p in points.values() if p.y_BN is not None]
    with np.errstate(divide="ignore", invalid="ignore"):  # a replicate with a share of 0 or 1 is left out
        y_BN = np.exp(np.log(np.stack(drawn, axis=-1)) @ of_K) if len(drawn) == len(points) else None
    return replace(first, y_N=np.exp(np.log(np.column_stack([p.y_N for p in points.values()])) @ of_K), y_BN=y_BN)


def _slope_in_k(ks: Sequence[int]) -> Floats:
    """Weights of the K ranks in a least-squares slope in ln k."""
    return np.asarray(np.linalg.pinv(np.column_stack([np.ones(len(ks)), np.log(ks)]))[1])


def of_file(path: Path, request: Request) -> Result:
    """Compares published slopes: rows of dataset, family, k (a number, or CE) and slope, which is -alpha.

    Raises:
        RbpxError: a column is missing, a row is invalid, or no pair has both k = 1 and CE.
    """
    table = read_table(path)
    missing = [name for name in _COLUMNS if name not in table.columns]
    alphas: dict[tuple[str, str], dict[int | None, float]] = {}  # None is cross-entropy
    for row in () if missing else table.rows:
        dataset, family, k, slope = (str(row.values.get(name)) for name in _COLUMNS)
        try:
            of_k, alpha = (None if k.upper() == "CE" else int(k)), -float(slope)
        except ValueError:
            raise RbpxError(f"{row.place}: k={k}, slope={slope}; k is a number or CE, slope a number") from None
        alphas.setdefault((dataset, family), {})[of_k] = alpha
    pairs = [_published(*names, of_k) for names, of_k in alphas.items() if {None, 1} <= of_k.keys()]
    if not pairs:
        what = f"column {missing[0]}" if missing else "family and text with both k=1 and CE"
        raise RbpxError(f"{path} has no {what}; give it rows with the columns {', '.join(_COLUMNS)}")
    return _result(pairs)


def _published(dataset: str, family: str, of_k: Mapping[int | None, float]) -> Pair:
    alphas = {k: alpha for k, alpha in of_k.items() if k is not None}
    ks = [k for k in sorted(alphas) if k <= _UP_TO]
    drift = float(_slope_in_k(ks) @ [alphas[k] for k in ks]) if len(ks) > 1 else None
    estimates = {"difference": Estimate(alphas[1] - of_k[None]), "drift": Estimate(drift)}
    row = _row({"family": family, "dataset": dataset}, of_k[None], alphas, estimates)
    return Pair(dataset, list(alphas), [row])


def _result(pairs: Sequence[Pair], laws: Sequence[pooled.PooledLaw] = (), of_all: Group | None = None) -> Result:
    """Result of the pairs with their classes of tokens, of the means, and of families on one text."""
    rows, tables, said = [row for pair in pairs for row in pair.rows], [], []
    if pairs:
        view = _view(sorted({k for pair in pairs for k in pair.ks}))
        shown = [row | {"dataset": pair.title} for pair in pairs for row in pair.rows]
        tables.append(view.table("Exponents of the laws in S", shown, brief=lambda row: row["kind"] == "pair"))
        mean = {name: _mean(pairs, name) for name in ("difference", "drift")}
        status = Status.ok if mean["difference"].leaves_out_0 else Status.no_trend
        run_ids = [run_id for pair in pairs for group in pair.groups for run_id in group.run_ids]
        about: Record = {"n_pairs": len(pairs), "status": status.value, "run_ids": run_ids}
        rows.append({"kind": "mean", "family": None, "dataset": None, **by_name(**mean), **about})
        apart, why = "" if status is Status.ok else " cannot be told apart; they", ""
        if mean["difference"].ends is None:
            apart, why = "", "" if of_all else ", since slopes of one family do not say how its models scatter"
        p = [law.fits[0]["exponents"]["p"] for law in laws if law.fits[0].get("exponents")]
        agree = f"; families on one text agree in {sum(each >= ALPHA for each in p)} of {len(p)} laws" if p else ""
        said.append(
            f"α of −ln RBP_1 and of cross-entropy{apart} differ by {interval_of(mean['difference'], 4)}{why}, the mean "
            f"over {number_of(len(pairs), 'pair')} of family and text; for each unit of ln k α changes by "
            f"{interval_of(mean['drift'], 4)}{agree}."
        )
    fits = [row for law in laws for row in pooled.fit_records(law)]
    return Result(
        [] if of_all is None else [of_all],
        [*rows, *({"kind": "pooled", **row} for row in fits)],
        [*tables, *([pooled.table(laws, brief=not pairs)] if laws else [])],
        [*said, *map(pooled.sentence, laws)],
        partial(pooled.figures, laws, [row["fit_id"] for row in fits]),
        fits,
    )


def _mean(pairs: Sequence[Pair], name: str) -> Estimate:
    """Mean of an estimate over families and texts; a single pair keeps its own interval."""
    of = [(pair.rows[0], pair.points.get(name)) for pair in pairs]
    if len(of) == 1:
        return estimate_in(of[0][0], name)
    known = [(row[name], row["family"], row["dataset"], points) for row, points in of if row[name] is not None]
    return mean_over(*zip(*known, strict=True)) if known else NO_ESTIMATE


def _view(ks: Sequence[int]) -> View[Record]:
    return View(
        "pairs",
        text("text", "dataset"),
        text("family", "family"),
        text(
            "tokens", "tokens", None, "improving: those whose ids get better with size by `learning`, chosen on the "
            "same text, so that their exponents are a little too large", 1,
        ),
        share("share", "share", digits=0, spare=2),
        decimal("CE", "alpha_cross_entropy", digits=3),
        [decimal(f"k = {k:,}", f"alpha_{k}", digits=3, spare={1: 0, _UP_TO: 3}.get(k, 5)) for k in ks],
        with_ends(
            "k = 1 − CE", "difference",
            means="α of −ln RBP_1 minus that of cross-entropy, from the law of their ratio",
        ),
        with_ends(
            "for each ln k", "drift", means=f"change of α per unit of ln k, up to k = {_UP_TO}", spare=4, ends_spare=6
        ),
    )  # fmt: skip


QUESTION = Question(answer, select=partial(in_size, sizes=3, along=False), of_file=of_file)
