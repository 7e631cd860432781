"""Computes pass@k, its exponents and forecasts for each run with items, and the laws over the runs of a group.

Shapes: I items of all runs, B replicates over items, K numbers of attempts, N sizes.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, by_name, document_weights, estimate
from rbpx.laws.names import Axis, Method
from rbpx.laws.numeric import Floats, finite_or_none, neg_ln
from rbpx.questions.attempts import AttemptsKeys
from rbpx.questions.attempts.forecasts import BETA, FARTHER, LINE, WAYS, forecast
from rbpx.questions.attempts.passing import CountedItems, Items, KnownChances, grid_to, slope_in_k, slopes_at
from rbpx.questions.attempts.tails import Tail, fit_tail
from rbpx.runs.fits import Law, doubted, fit_points
from rbpx.runs.group import Group
from rbpx.runs.points.items import answers_of
from rbpx.runs.points.sizes import Points
from rbpx.runs.run import Run, labels_of
from rbpx.status import Status, status_keys
from rbpx.store.store import Record

DEFAULT_K: Final = (1, 10, 100, 1000, 10_000)
_HEAVY: Final = 1.0  # the mean of 1/p, the attempts that an item takes, is infinite for a up to this


@dataclass(frozen=True, eq=False)
class RunItems:
    """A run with its items, and how often each replicate draws each, [B, I]."""

    run: Run
    label: str
    items: Items
    weights_BI: npt.NDArray[np.int64]

    def drawn(self, passes_IK: Floats) -> Floats:
        """Mean over items of each replicate, [B, K]."""
        with np.errstate(invalid="ignore", divide="ignore"):  # a replicate may draw no item of this run
            return np.asarray(self.weights_BI @ passes_IK / self.weights_BI.sum(axis=1, keepdims=True))


def items_of_runs(connection: duckdb.DuckDBPyConnection, group: Group, request: AttemptsKeys) -> list[RunItems]:
    """The items of each run; a replicate draws an item equally often in every run."""
    labels, known = labels_of(group.runs), list[tuple[Run, str, Items]]()
    if group.is_measured:
        for run, label, answers in zip(group.runs, labels, answers_of(connection, group), strict=False):
            ln_p_I = np.minimum(-answers.nats_I, 0.0)  # single-precision sums may round to above 0
            known.append((run, label, KnownChances(tuple(map(str, answers.item_I.tolist())), ln_p_I)))
    else:
        for run, label in zip(group.runs, labels, strict=True):
            if run.attempts:
                names = tuple(sorted(run.attempts))
                right, tried = np.array([run.attempts[name] for name in names]).T
                known.append((run, label, CountedItems(names, right, tried)))
    every = {name: at for at, name in enumerate(sorted({name for _, _, items in known for name in items.names}))}
    weights_BI = document_weights(max(len(every), 1), request.resamples, request.seed)
    return [RunItems(*of, weights_BI[:, [every[name] for name in of[2].names]]) for of in known]


def rows_of_run(group: Group, read: RunItems, request: AttemptsKeys) -> Iterator[Record]:
    """The results of one run, told apart by `kind`.

    `pass`: pass@k over items, its standard error over samples (None where p is known), both local slopes at k.
    `exponent` and `forecast`: pass@k beyond the samples, by each way.
    """
    items, n_items = read.items, len(read.items.names)
    counted = items if isinstance(items, CountedItems) else None
    about = {**group.names(), **read.run.names(), "n_items": n_items}
    about |= {"n_samples": counted and counted.most}
    asked = request.k.listed((*DEFAULT_K, *([counted.most] if counted else [])))
    asked = grid_to(items.most) if request.k.is_log else asked
    measured = [k for k in asked if counted is None or k <= counted.most]
    passes_IK = items.passes(measured)
    drawn_BK = read.drawn(passes_IK)
    of_samples = np.full(len(measured), np.nan) if counted is None else counted.stderr_of_samples(measured)
    for at, (k, stderr) in enumerate(zip(measured, finite_or_none(of_samples), strict=True)):
        passes = estimate(float(passes_IK[:, at].mean()), drawn_BK[:, at], n_items, Recipe.percentile)
        row = {"kind": "pass", **about, "k": k, **by_name(passes=passes), "passes_stderr_of_samples": stderr}
        yield row | slopes_at(items, k)
    tail = fit_tail(items)
    yield from ({"kind": "exponent", **about, **row} for row in _exponents(read, tail))
    if counted is not None:
        beyond = {k for k in asked if k > counted.most} | (set() if request.k.by_number else {counted.most * FARTHER})
        for k, way in product(sorted(beyond), WAYS):
            passes = forecast(way, counted, k, tail)
            yield {"kind": "forecast", **about, "way": way, "k": k, **by_name(passes=passes)}


def _exponents(read: RunItems, tail: Tail) -> Iterator[Record]:
    """The exponent of -ln pass@k by least squares, and of the left tail of p.

    Each has the range of k where it applies, the second constant `b` of the distribution, and all statuses that hold.
    """
    items, n_items = read.items, len(read.items.names)
    grid = grid_to(items.most)
    passes_IK = items.passes(grid)
    only = [Status.not_positive] if not 0 < passes_IK.mean() < 1 else []
    only += [Status.bends] if tail.all_alike or (tail.a.lo or 0.0) > _HEAVY else []

    def row(how: str, alpha: Estimate, doubts: Sequence[Status], k_from: float | None, k_to: float | None = None,
            b: Estimate = NO_ESTIMATE) -> Record:  # fmt: skip
        named: Record = {"how": how, "k_from": k_from, "k_to": k_to, **by_name(alpha=alpha, b=b)}
        return named | status_keys([*only, *doubts])

    alpha = estimate(float(slope_in_k(grid, passes_IK.mean(axis=0))), slope_in_k(grid, read.drawn(passes_IK)), n_items,
                     Recipe.uncentred)  # fmt: skip
    yield row(LINE, alpha, [Status.not_positive] if alpha.value is None else [], 1, items.most)
    yield row(BETA, tail.a, [Status.not_converged] if tail.theta is None and not only else [], tail.b.value, b=tail.b)


def has_law(group: Group, runs: Collection[Run]) -> bool:
    """Whether the runs lie at two places or more, and size alone tells them apart where laws are in size."""
    return len({run.x for run in runs}) > 1 and not (group.axis is Axis.S and group.has_trainings)


def laws(group: Group, read: Sequence[RunItems], of_runs: Sequence[Sequence[Record]]) -> Iterator[Law]:
    """The laws of -ln pass@k at each k that all runs share, and of the tails."""
    runs = tuple(each.run for each in read)
    if not has_law(group, runs):
        return
    of_k = [[row["k"] for row in rows if row["kind"] == "pass"] for rows in of_runs]
    ks = [k for k in of_k[0] if all(k in of for of in of_k)]
    y_KN, y_KBN = _neg_ln(read, [each.items.passes(ks) for each in read])
    for k, y_N, y_BN in zip(ks, y_KN, y_KBN, strict=True):
        points = Points("pass_at", k, runs, y_N, y_BN, None, _n_items(read))
        yield doubted(group, fit_points(points, Method.ols))
    for how in WAYS:
        a_N = np.array([row["alpha"] for rows in of_runs for row in rows if row.get("how") == how], np.float64)
        doubt = None if np.isfinite(a_N).all() else Status.not_known
        yield doubted(group, fit_points(Points(f"tail_{how}", None, runs, a_N, None, doubt), Method.ols))


def _n_items(read: Sequence[RunItems]) -> int:
    return len({name for each in read for name in each.items.names})


def _neg_ln(read: Sequence[RunItems], hits: Sequence[Floats]) -> tuple[Floats, Floats]:
    """-ln of the mean over items of each run, [K, N], and of each replicate, [K, B, N]."""
    y_NK = np.stack([neg_ln(of.mean(axis=0)) for of in hits])
    y_NBK = np.stack([neg_ln(each.drawn(of)) for each, of in zip(read, hits, strict=True)])
    return y_NK.T, np.moveaxis(y_NBK, 0, -1).swapaxes(0, 1)
