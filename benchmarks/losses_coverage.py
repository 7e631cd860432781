"""Measures how often intervals of one loss from another hold.

Both losses fall as powers of S and err together. Each cell is the covariance of the errors and a number of models over
three decades of S; predictions are of a new model within the sizes and of one ten times larger. The last cell has many
models and errors of x a tenth of their range.

Then accuracy of four choices, a sigmoid in the loss whose errors are of so many items, and -ln RBP_k, a share of so
many tokens; predictions are as `predict` gives them, widened by backtests, with the share of draws in which backtests
speak against them.

    python benchmarks/losses_coverage.py [DRAWS, default 300]
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.losses.backtests import widened, widenings_at
from rbpx.laws.losses.calibration import calibrate, hold_out_best
from rbpx.laws.losses.guessing import as_misses, odds, scatter_of
from rbpx.laws.prediction.calibration import widen
from rbpx.laws.prediction.verdict import too_few_hold
from tests.support.loss_pairs import covariance, drawn, losses, success

ERRORS = ((0.003, 0.003, 0.0), (0.01, 0.01, 0.5), (0.02, 0.005, 0.0), (0.005, 0.02, 0.5))


def cell(errors: tuple[float, float, float], S: np.ndarray, draws: int) -> str:
    """The shares of draws in which intervals hold, and the median width of the prediction beyond, in ln y."""
    C_22, n, rng = covariance(*errors), len(S), np.random.default_rng(1)
    inside, widths = np.zeros(2), []
    for _ in range(draws):
        new = [10 ** rng.uniform(np.log10(S[0]), np.log10(S[-1])), 10 * S[-1]]
        x, y = drawn(np.append(S, new), C_22, rng)
        calibration = calibrate(x[:n], y[:n], float(x.min()))
        assert calibration is not None
        told = calibration.at(x[n:].tolist())
        inside += [(each.lo or 0) <= at <= (each.hi or 0) for each, at in zip(told, y[n:], strict=True)]
        widths.append(np.log((told[1].hi or 1) / (told[1].lo or 1)))
    within, beyond = inside / draws
    return f"within {within:.3f}  beyond {beyond:.3f} (width {np.median(widths):.3f})"


def of_shares(kind: str, n_items: int, n: int, draws: int) -> str:
    """The same of accuracy, or of -ln of a share, within the sizes, a little beyond and ten times beyond."""
    rng, inside, against, widths = np.random.default_rng(2), np.zeros(3), 0, []
    for _ in range(draws):
        S = np.append(np.geomspace(1e6, 1e9, n), [10 ** rng.uniform(6, 9), 2e9, 1e10])
        x = losses(S)[0] * np.exp(rng.normal(0, 0.005, len(S)))
        share = (
            success(losses(S)[0] * np.exp(rng.normal(0, 0.002, len(S))))
            if kind == "accuracy"
            else np.exp(-0.1 - 8 * S**-0.15)
        )
        share = rng.binomial(n_items, share) / n_items
        y = 1 - share if kind == "accuracy" else -np.log(share)
        kept = np.flatnonzero((y > 0) & (y < 0.75 if kind == "accuracy" else True) & (np.arange(len(S)) < n))
        fitted = odds(y[kept], 0.25) if kind == "accuracy" else y[kept]
        calibration = calibrate(x[kept], fitted, float(x.min()))
        assert calibration is not None
        tests = hold_out_best(x[kept], fitted)
        against += too_few_hold(test.is_inside for test in widened(tests, len(kept)))
        own = scatter_of(calibration, x[:n], y[:n], 0.25) if kind == "accuracy" else 0.0
        for at, told in enumerate(calibration.at(x[n:].tolist())):
            beyond = max(float(x[kept].min() / x[n + at]), 1.0)
            told = widen(told, *widenings_at(tests, len(kept), [beyond]))
            told = as_misses(told, 0.25, own) if kind == "accuracy" else told
            inside[at] += (told.lo or 0) <= y[n + at] <= (told.hi or 0)
        widths.append((told.hi or 0) - (told.lo or 0))
    within, near, far = inside / draws
    said = f"within {within:.3f}  at twice S {near:.3f}  at ten times {far:.3f} (width {np.median(widths):.3f})"
    return f"{said}  backtests against {against / draws:.3f}"


if __name__ == "__main__":
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for errors in ERRORS:
        for n in (5, 7, 12):
            print(f"errors {errors}, {n} models: {cell(errors, np.geomspace(1e6, 1e9, n), draws)}", flush=True)
    many = cell((0.06, 0.004, 0.0), np.geomspace(3e6, 3e8, 300), max(1, draws // 3))
    print(f"errors (.06, .004, 0), 300 models: {many}")
    for kind in ("accuracy", "-ln RBP_k"):
        for n_items in (1000, 10_000):
            for n in (7, 12):
                print(f"{kind}, {n_items} items, {n} models: {of_shares(kind, n_items, n, draws)}", flush=True)
