"""Sigmoids and times of many tokens at once, against scipy's searches from many starts, counts of loops, and truths."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from rbpx.laws.learning.curves import fit_powers, fit_sigmoids

X = np.linspace(np.log(1e5), np.log(1e7), 8)


def drawn(n: int, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Tokens that follow sigmoids, with noise."""
    rng = np.random.default_rng(seed)
    truth = {"time": rng.uniform(X[0] - 0.5, X[-1] + 0.5, n), "width": np.exp(rng.uniform(-1, 0.3, n))}
    truth["start"] = rng.uniform(2, 9, n)
    truth["end"] = truth["start"] * rng.uniform(0, 1, n)
    fall = (truth["start"] - truth["end"])[:, None]
    y = truth["end"][:, None] + fall / (1 + np.exp((X - truth["time"][:, None]) / truth["width"][:, None]))
    return np.abs(y + noise * rng.normal(size=y.shape)), truth


def least_sigmoid(y: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> float:
    """The least sum of squares that scipy finds from many starts, over both levels, time and ln width."""
    best = np.inf
    ends = (np.array([0, 0, *lo]), np.array([np.inf, np.inf, *hi]))
    for time in np.linspace(lo[0], hi[0], 7):
        for width in np.linspace(lo[1], hi[1], 4):
            for levels in ((y[:2].mean(), y[-2:].mean()), (y.max(), y.min())):
                start = np.clip([*levels, time, width], ends[0] + 1e-9, ends[1] - 1e-9)
                found = least_squares(
                    lambda q: q[1] + (q[0] - q[1]) / (1 + np.exp((X - q[2]) / np.exp(q[3]))) - y, start, bounds=ends
                )
                best = min(best, 2 * found.cost)
    return best


def test_sigmoids_are_as_close_as_scipy_comes_from_many_starts() -> None:
    y, _ = drawn(12)
    found = fit_sigmoids(X, y)
    for at in range(len(y)):
        least = least_sigmoid(y[at], found.shape.lo_P, found.shape.hi_P)
        curve = found.at(X)[at]
        assert found.found.squares_M[at] == pytest.approx(((curve - y[at]) ** 2).sum(), rel=1e-9)
        assert found.found.squares_M[at] <= least * 1.01 + 1e-9  # a search of either kind may end in another valley


def test_without_noise_times_and_widths_come_back() -> None:
    y, truth = drawn(200, noise=0.0)
    within = (truth["time"] > X[1]) & (truth["time"] < X[-2]) & (truth["width"] < 0.8)
    falls = truth["start"] - truth["end"] > 0.5
    found = fit_sigmoids(X, y)
    kept = within & falls & (found.found.squares_M < 1e-6)
    assert kept.sum() > 0.95 * (within & falls).sum()
    for name, of in (("time", found.time_M), ("start", found.start_M), ("end", found.end_M)):
        assert np.median(np.abs(of - truth[name])[kept]) < 1e-3


def test_power_laws_are_as_close_as_scipy_comes() -> None:
    y, _ = drawn(8, seed=3)
    found = fit_powers(X, y)
    for at in range(len(y)):
        best = np.inf
        for c in np.geomspace(0.05, 4, 6):
            ends = (np.array([0, 0, found.shape.lo_P[0]]), np.array([np.inf, np.inf, found.shape.hi_P[0]]))
            start = np.clip([y[at].min(), np.ptp(y[at]), np.log(c)], ends[0] + 1e-9, ends[1] - 1e-9)
            search = least_squares(
                lambda q, y=y[at]: q[0] + q[1] * np.exp(-np.exp(q[2]) * (X - X[0])) - y, start, bounds=ends
            )
            best = min(best, 2 * search.cost)
        assert found.found.squares_M[at] <= best * (1 + 1e-4) + 1e-9
