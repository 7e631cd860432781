"""Predicts pass@k at more attempts, and backtests such predictions on hidden samples. Shapes: I items."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import expit, logit

from rbpx.laws.intervals.estimate import Estimate, document_t, from_half_width
from rbpx.laws.numeric import line, neg_ln
from rbpx.questions.attempts.passing import CountedItems, grid_to
from rbpx.questions.attempts.tails import Tail, fit_tail
from rbpx.store.store import Record

LINE: Final = "least_squares"
BETA: Final = "beta"
FARTHER: Final = 100  # times the samples
WAYS: Final = (LINE, BETA)
_FEWEST_LEFT: Final = 10  # samples per item that hiding must leave
_HIDINGS: Final = 5
_STEP: Final = 1e-4  # of ln a and ln b, for derivatives


def forecast(way: str, items: CountedItems, k: int, tail: Tail | None = None, is_measured: bool = False) -> Estimate:
    """Predicts pass@k of these items, with the uncertainty of their counts and of the fitted constants.

    By the beta distribution an item fails with E (1 - p)^k under its posterior. Least squares extrapolates the line of
    ln(-ln pass@k) on ln k, without an interval. With `is_measured` the interval is for k actual attempts at each item.
    """
    if way == LINE:
        grid = grid_to(items.most)
        passes_K, ln_k_K = items.passes(grid).mean(axis=0), np.log(np.asarray(grid, np.float64))
        if len(grid) < 2 or not 0 < passes_K.min() <= passes_K.max() < 1:
            return Estimate()
        level, alpha = line(ln_k_K, np.log(neg_ln(passes_K)))
        return Estimate(math.exp(-math.exp(level - alpha * (math.log(k) - ln_k_K.mean()))))
    tail = tail or fit_tail(items)
    if tail.theta is None:
        return Estimate()
    theta, fails, n_items = tail.theta, tail.likelihood.fails, len(items.names)
    q_I, square_I = fails(theta, k), fails(theta, 2 * k)
    passes = float(1 - q_I.mean())
    if not 0 < passes < 1:
        return Estimate(passes)
    slope_2 = np.array([(fails(theta + d, k) - fails(theta - d, k)).mean() / (2 * _STEP) for d in np.eye(2) * _STEP])
    own = float(((q_I if is_measured else square_I) - q_I**2).sum()) / n_items**2
    sd = math.sqrt(max(own, 0.0) + float(slope_2 @ tail.covariance_22 @ slope_2))
    half = document_t(n_items) * sd / (passes * (1 - passes))
    return from_half_width(float(logit(passes)), half).through(lambda each: float(expit(each)))


def hide(models: Sequence[CountedItems], seed: int) -> list[Record]:
    """Backtests each way: predicts pass@n of each model from a hundredth of its n samples, drawn five times.

    `n_samples` are the fewest left, `error` is the mean of |predicted / measured - 1| of -ln pass@k over models and
    draws, `bias` that without |.|, `inside` the share of intervals that hold the measured value.
    """
    left = [(items, items.most // FARTHER) for items in models if items.most // FARTHER >= _FEWEST_LEFT]
    rows = list[Record]()
    for way in WAYS:
        ratios, inside = list[float](), list[bool]()
        for items, m in left:
            k = m * FARTHER
            measured = float(items.passes([k]).mean())
            for at in range(_HIDINGS):
                predicted = forecast(way, items.hidden(m, seed + at), k, is_measured=True)
                if predicted.value is None or not 0 < predicted.value < 1 or not 0 < measured < 1:
                    continue
                ratios.append(math.log(predicted.value) / math.log(measured) - 1)
                if (held := predicted.holds(measured)) is not None:
                    inside.append(held)
        if ratios:
            row: Record = {"way": way, "n_models": len(left), "n_samples": min(m for _, m in left)}
            row |= {"error": float(np.abs(ratios).mean()), "bias": float(np.mean(ratios))}
            rows.append(row | {"inside": float(np.mean(inside)) if inside else None})
    return rows
