"""Times from hits and their tails: against searches by scipy, counts of loops, and truths that were drawn."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from rbpx.laws.counts.times import History, fit_tails, local_slope, times_of, turnbull
from tests.support.drawn_laws import X_OF_TIMES, cells_of_times


def test_times_are_those_of_a_loop_over_tokens() -> None:
    hit = np.random.default_rng(0).random((6, 3000)) < np.array([0.1, 0.3, 0.5, 0.5, 0.8, 0.9])[:, None]
    hit[:, :50], hit[:, 50:90] = True, False
    times = times_of(hit)
    for token, found in enumerate(zip(*times, strict=True)):
        states = hit[:, token].tolist()
        changes = [t for t in range(1, 6) if states[t] != states[t - 1]]
        if not changes:
            history = History.always if states[0] else History.never
        elif len(changes) == 1:
            history = History.learned if states[-1] else History.forgotten
        else:
            history = History.unstable
        settled = next(t for t in range(6) if all(state == states[t] for state in states[t:]))
        first = next((at for at, state in enumerate(states) if state), 6)
        assert found == (first, settled if states[-1] else 6, settled, history)
    assert set(times.history_M) == set(History)


def test_one_checkpoint_is_always_or_never() -> None:
    times = times_of(np.array([[True, False]]))
    assert times.history_M.tolist() == [History.always, History.never]
    assert times.settled_M.tolist() == [0, 0]


def test_turnbull_is_as_likely_as_a_search_over_all_shares() -> None:
    rng = np.random.default_rng(1)
    counts = np.triu(rng.integers(0, 9, (4, 4))).astype(float)

    def loss(free: np.ndarray) -> float:
        share = np.exp(free - free.max())
        share /= share.sum()
        return -sum(counts[i, j] * math.log(share[i : j + 1].sum() + 1e-300) for i in range(4) for j in range(i, 4))

    best = min(
        minimize(loss, rng.normal(size=4), method="Nelder-Mead", options={"maxiter": 4000}).fun for _ in range(4)
    )
    assert loss(np.log(np.maximum(turnbull(counts), 1e-12))) <= best + 1e-4


@pytest.mark.parametrize("with_never", [False, True])
def test_a_tail_is_as_likely_as_a_search_by_scipy(with_never: bool) -> None:
    counts = cells_of_times(np.random.default_rng(2), 4000, 0.7, 0.2 if with_never else 0.0)

    def loss(theta: np.ndarray) -> float:
        c, never = math.exp(theta[0]), 1 / (1 + math.exp(-theta[1])) if with_never else 0.0
        left = never + (1 - never) * np.exp(-c * X_OF_TIMES)
        return -float(counts[:-1] @ np.log(left[:-1] - left[1:]) + counts[-1] * math.log(left[-1]))

    found = fit_tails(X_OF_TIMES, counts[None], with_never)
    best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000})
    assert -found.ln_likelihood_B[0] == pytest.approx(best.fun, abs=1e-4)
    assert found.c_B[0] == pytest.approx(math.exp(best.x[0]), rel=1e-3)
    at_middle = found.left(X_OF_TIMES[4:5])[0, 0]
    expected = counts[4:].sum() / counts.sum()
    assert at_middle == pytest.approx(expected, abs=0.03)


def test_a_tail_without_a_time_in_it_has_no_exponent() -> None:
    found = fit_tails(X_OF_TIMES, np.array([[0.0] * (len(X_OF_TIMES) - 1) + [5.0]]), True)
    assert np.isnan(found.c_B[0])


@pytest.mark.parametrize("q", [0.7, 0.5])
def test_the_slope_of_the_law_of_rbp_of_a_tail_is_that_of_differences(q: float) -> None:
    c, x, step = 0.3, -math.log(q) / 0.3, 1e-5
    up, down = (math.log(-math.log(1 - math.exp(-c * at))) for at in (x + step, x - step))
    assert local_slope(c, np.array(q)) == pytest.approx(-(up - down) / (2 * step), rel=1e-6)
