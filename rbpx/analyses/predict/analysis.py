"""Backtest and prediction (verb predict): laws fitted to small sizes, compared with larger ones and extrapolated.

Every law is fitted to the m smallest sizes and compared with each larger one, on the same tokens, for m from 3 up; this
measures how well it predicts. Then it is fitted to all sizes and extrapolated, with an interval for a new model.
"""

from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.groups.fits import Law, fit_points, fit_record
from rbpx.groups.points import Points, size_points, weigh_group
from rbpx.groups.selection import Group
from rbpx.laws.names import Method
from rbpx.laws.prediction import Prediction, predict
from rbpx.store.store import Record, Store

FAR = 10  # times beyond the sizes that were fitted: a prediction that says so


@dataclass(frozen=True)
class Backtest:
    """One prediction compared with the measurement.

    Attributes:
        n_fitted: how many of the smallest sizes the law was fitted to.
        size: label of the size that was predicted.
        S: its non-embedding parameters.
        predicted: value with its interval.
        measured: the value there, in the unit of y.
        error: (predicted - measured) / measured.
    """

    n_fitted: int
    size: str
    S: int
    predicted: Prediction
    measured: float
    error: float

    @property
    def is_inside(self) -> bool | None:
        """Whether the interval contains the measured value; None without an interval."""
        lo, hi = self.predicted.lo, self.predicted.hi
        return None if lo is None or hi is None else lo <= self.measured <= hi


@dataclass(frozen=True, eq=False)
class Foresight:
    """One law: its predictions and its backtests."""

    law: Law
    predictions: tuple[Prediction, ...]
    backtests: tuple[Backtest, ...]

    @property
    def mean_error(self) -> float | None:
        """Mean of |error| over all backtests; None where there are none."""
        return float(np.mean([abs(b.error) for b in self.backtests])) if self.backtests else None


@dataclass(frozen=True, eq=False)
class Foresights:
    """The laws of one group, the best at predicting first."""

    group: Group
    laws: tuple[Foresight, ...]
    targets: tuple[float, ...]
    resamples: int


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Foresights:
    """Backtest every requested law and extrapolate it to the requested sizes, by default ten times the largest."""
    chosen = request.chosen_laws()
    k_grid: list[int] = []
    if group.is_measured:
        k_grid = request.k_grid(min(run.vocab_size or 0 for run in group.runs))
    evidence = weigh_group(connection, group, request, k_grid, chosen)
    points = size_points(group, evidence, request, k_grid, chosen)
    targets = request.targets() or [10.0 * group.runs[-1].non_embedding_params]
    foresights = [_foresee(series, method, targets) for method in request.methods() for series in points]
    foresights.sort(key=lambda f: (f.mean_error is None, f.mean_error))
    return Foresights(group, tuple(foresights), tuple(targets), request.resamples)


def _foresee(points: Points, method: Method, targets: list[float]) -> Foresight:
    law = fit_points(points, method)
    if law.fit.alpha is None:
        return Foresight(law, (), ())
    predictions = tuple(predict(law.fit, S) for S in targets)
    backtests = [b for m in range(3, len(points.runs)) for b in _backtests(points, method, m)]
    return Foresight(law, predictions, tuple(backtests))


def _backtests(points: Points, method: Method, m: int) -> list[Backtest]:
    y_BN = None if points.y_BN is None else points.y_BN[:, :m]
    fit = fit_points(Points(points.law, points.k, points.runs[:m], points.y_N[:m], y_BN, points.doubt), method).fit
    if fit.alpha is None:
        return []
    backtests = []
    for run, y in zip(points.runs[m:], points.y_N[m:], strict=True):
        predicted, measured = predict(fit, run.non_embedding_params), float(y)
        error = (predicted.y - measured) / measured
        backtests.append(Backtest(m, run.size, run.non_embedding_params, predicted, measured, error))
    return backtests


def keep(store: Store, foresights: Foresights) -> list[Record]:
    """Write the laws to the store, each with its predictions and backtests, and return those, a row each."""
    rows: list[Record] = []
    for foresight in foresights.laws:
        record = fit_record(foresights.group, foresight.law, foresights.resamples)
        record["params"] = record["params"] | {
            "predictions": [vars(p) for p in foresight.predictions],
            "backtests": [vars(b) | {"predicted": vars(b.predicted)} for b in foresight.backtests],
            "mean_backtest_error": foresight.mean_error,
        }
        store.write_record("fits", record["fit_id"], record)
        names = ("fit_id", "law", "source", "family", "dataset", "k", "ties", "method", "status")
        named = {name: record[name] for name in names}
        n = len(foresight.law.runs)
        predictions: list[tuple[str, int, Prediction, float | None, float | None]] = [
            *(("prediction", n, p, None, None) for p in foresight.predictions),
            *(("backtest", b.n_fitted, b.predicted, b.measured, b.error) for b in foresight.backtests),
        ]
        for kind, n_fitted, prediction, measured, error in predictions:
            rows.append(
                {"kind": kind, **named, "n_fitted": n_fitted, **vars(prediction), "measured": measured, "error": error}
            )
        if not predictions:
            rows.append({"kind": "none", **named})
    return rows
