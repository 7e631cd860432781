"""Sigmoids and times of many tokens at once, against scipy's searches from many starts, counts of loops, and truths."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from rbpx.laws.learning.curves import fit_powers, fit_sigmoids, simulate_power_laws
from rbpx.laws.learning.kinds import Kind, kinds
from rbpx.laws.learning.reconstruction import cross_validated_losses, neighbour_slopes, r_squared

X = np.linspace(np.log(1e5), np.log(1e7), 8)
REACH = X[-1] - X[0]
# The least and the greatest time and ln width of a sigmoid, and ln c of a power law.
SIGMOIDS = np.array([[X[0] - REACH / 4, np.log(REACH / 28)], [X[-1] + REACH / 4, np.log(REACH / 2)]])
POWERS = np.log(0.05 / REACH), np.log(20 / REACH)


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
        for width in (-1.2, 0.0):
            start = np.clip([y[:2].mean(), y[-2:].mean(), time, width], ends[0] + 1e-9, ends[1] - 1e-9)
            found = least_squares(
                lambda q: q[1] + (q[0] - q[1]) / (1 + np.exp((X - q[2]) / np.exp(q[3]))) - y, start, bounds=ends
            )
            best = min(best, 2 * found.cost)
    return best


def test_sigmoids_are_as_close_as_scipy_comes_from_many_starts() -> None:
    y, _ = drawn(4)
    found = fit_sigmoids(X, y)
    for at in range(len(y)):
        least = least_sigmoid(y[at], *SIGMOIDS)
        curve = found.at(X)[at]
        assert found.squares_M[at] == pytest.approx(((curve - y[at]) ** 2).sum(), rel=1e-9)
        assert found.squares_M[at] <= least * 1.01 + 1e-9  # a search of either kind may end in another valley


def test_without_noise_times_and_widths_come_back() -> None:
    y, truth = drawn(200, noise=0.0)
    within = (truth["time"] > X[1]) & (truth["time"] < X[-2]) & (truth["width"] < 0.8)
    falls = truth["start"] - truth["end"] > 0.5
    found = fit_sigmoids(X, y)
    kept = within & falls & (found.squares_M < 1e-6)
    assert kept.sum() > 0.95 * (within & falls).sum()
    for name, of in (("time", found.time_M), ("start", found.high_M), ("end", found.low_M)):
        assert np.median(np.abs(of - truth[name])[kept]) < 1e-3


def test_power_laws_are_as_close_as_scipy_comes() -> None:
    y, _ = drawn(8, seed=3)
    found = fit_powers(X, y)
    for at in range(len(y)):
        best = np.inf
        for c in np.geomspace(0.05, 4, 6):
            ends = (np.array([0, 0, POWERS[0]]), np.array([np.inf, np.inf, POWERS[1]]))
            start = np.clip([y[at].min(), np.ptp(y[at]), np.log(c)], ends[0] + 1e-9, ends[1] - 1e-9)
            search = least_squares(
                lambda q, y=y[at]: q[0] + q[1] * np.exp(-np.exp(q[2]) * (X - X[0])) - y, start, bounds=ends
            )
            best = min(best, 2 * search.cost)
        assert found.squares_M[at] <= best * (1 + 1e-4) + 1e-9


def test_a_token_alone_has_the_numbers_that_it_has_among_others() -> None:
    y, _ = drawn(300, seed=5)
    together, alone = fit_sigmoids(X, y), fit_sigmoids(X, y[7:8])
    assert alone.squares_M[0] == pytest.approx(together.squares_M[7], rel=1e-9)
    np.testing.assert_allclose(alone.at(X)[0], together.at(X)[7], atol=1e-6)


def test_levels_are_never_negative() -> None:
    y, _ = drawn(2000, seed=6, noise=1.0)
    found = fit_sigmoids(X, y)
    assert min(found.high_M.min(), found.low_M.min()) >= 0
    assert np.all(found.squares_M <= found.about_M * (1 + 1e-9))
    powers = fit_powers(X, y)
    assert min(powers.high_M.min(), powers.low_M.min()) >= 0


def test_kinds_are_what_was_drawn() -> None:
    rise = 1 / (1 + np.exp(-(X - X.mean()) / 0.3))
    tokens = {
        Kind.known: 0.3 + 0.05 * np.sin(9 * X),
        Kind.learned: 6 - 4 * rise,
        Kind.before: 1 + 4 * np.exp(-1.5 * (X - X[0])) + 0.01 * np.sin(9 * X),
        Kind.after: 6 - 4 / (1 + np.exp(-(X - X[-1] - 0.5) / 0.4)),
        Kind.forgotten: 2 + 4 * rise,
        Kind.turns: 6 - 4 * np.exp(-((X - X.mean()) ** 2)),
        Kind.never: 7 + 0.3 * np.sin(40 * X),
    }
    y = np.array(list(tokens.values()))
    assert [Kind(kind) for kind in kinds(fit_sigmoids(X, y), X, y)] == list(tokens)


@pytest.mark.parametrize("T", [8, 20])
def test_at_most_one_flat_token_of_twenty_is_told_from_a_constant(T: int) -> None:
    x = np.linspace(X[0], X[-1], T)
    y = 5 + 0.3 * np.random.default_rng(8).normal(size=(3000, T))
    share = np.mean(kinds(fit_sigmoids(x, y), x, y) != Kind.never)
    assert 0.02 < share < 0.06


def test_a_left_out_point_does_not_move_what_is_said_of_it() -> None:
    y, _ = drawn(50, seed=9)
    found = cross_validated_losses(X, y)
    for at in range(1, 7):
        other = y.copy()
        other[:, at] += 1.0
        again = cross_validated_losses(X, other)
        np.testing.assert_array_equal(again[:, :, at - 1, 1], found[:, :, at - 1, 1])


def test_slopes_beside_a_point_are_differences_to_its_neighbours() -> None:
    level = np.array([[[3.0, 2.0, 0.5]] * 6])
    expected = [slope for at in range(1, 7) for slope in (-1.0 / (X[at] - X[at - 1]), -1.5 / (X[at + 1] - X[at]))]
    np.testing.assert_allclose(neighbour_slopes(X, level)[0], expected)


def test_explained_is_one_for_what_is_measured_and_not_for_its_mean() -> None:
    measured = np.array([[1.0, 2.0, 4.0]])
    assert r_squared(measured, measured)[0] == 1
    assert r_squared(measured, np.full((1, 3), 7 / 3))[0] == pytest.approx(0)
    assert np.isnan(r_squared(np.ones((1, 3)), measured)[0])


def test_a_drawn_world_is_smooth_and_as_noisy_as_measured() -> None:
    rng = np.random.default_rng(10)
    smooth = 2 + 5 * np.exp(-0.8 * (X - X[0])) * rng.uniform(0.5, 1, (5000, 1))
    y = smooth + 0.2 * rng.normal(size=smooth.shape)
    drawn_world = simulate_power_laws(fit_powers(X, y), X, seed=1)
    noise = drawn_world - smooth
    assert np.abs(noise.mean(axis=0)).max() < 0.03
    assert noise.std() == pytest.approx(0.2 * (1 + 3 / 8) ** 0.5, rel=0.15)  # that of the fit itself is added


def test_without_a_step_a_rebuild_is_good_all_the_same() -> None:
    """The control: smooth power laws of single tokens are rebuilt by sigmoids, so a good rebuild shows no step."""
    rng = np.random.default_rng(11)
    c = rng.uniform(0.2, 1.2, (3000, 1))
    y = rng.uniform(0, 3, (3000, 1)) + rng.uniform(2, 6, (3000, 1)) * np.exp(-c * (X - X[0]))
    y = np.abs(y + 0.2 * rng.normal(size=y.shape))
    found = cross_validated_losses(X, y)
    measured = np.stack([y[:, at - 1 : at + 2].mean(axis=0) for at in range(1, 7)])[None]
    rebuilt = found[0].mean(axis=0)[None].astype(float)
    assert r_squared(neighbour_slopes(X, measured), neighbour_slopes(X, rebuilt))[0] > 0.85
