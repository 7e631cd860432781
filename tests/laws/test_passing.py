"""The search for the likeliest law of passing sequences, many sets of counts at once."""

import numpy as np
import pytest
from scipy.optimize import minimize

from rbpx.laws.counts.passing import PassCounts, maximise_likelihood, model_scatter, slopes

N = 5


def plain(theta: np.ndarray, x_C: np.ndarray, passed_C: np.ndarray, trials_C: np.ndarray, r_C: np.ndarray) -> float:
    """The likelihood, a token of a sequence at a time; -infinity where a chance is impossible."""
    value = 0.0
    for x, passed, trials, r in zip(x_C, passed_C, trials_C, r_C, strict=True):
        q = np.exp(-np.exp(theta[0] - theta[1] * x))
        p = q
        for i in range(1, N):
            p *= (q + (i - q) * r) / (1 + (i - 1) * r)
            if p <= 0:
                return -np.inf
        value += passed * np.log(p) + (trials - passed) * np.log1p(-p)
    return value


@pytest.mark.parametrize("least_r", [0.0, -0.09, -0.2])
def test_sets_that_are_searched_together_end_where_a_plain_search_does(least_r: float) -> None:
    """Hits that avoid each other leave little room for steps, so that some are halved often, and some in vain."""
    rng = np.random.default_rng(3)
    x_C, trials_C = np.linspace(-2, 2, 7), np.full(7, 400.0)
    p_C = np.exp(-N * np.exp(-1.2 - 0.4 * x_C))
    passed_BC = rng.binomial(400, p_C, (40, 7)).astype(float)
    r_BC = least_r * rng.random((40, 1)) + np.zeros(7)
    tally = PassCounts(x_C, np.full(7, float(N)), passed_BC, np.broadcast_to(trials_C, (40, 7)), r_BC)
    start_BP = np.tile([0.5, 0.0], (40, 1))
    together = maximise_likelihood(tally, start_BP)
    known_B = np.isfinite(together[0]).all(axis=1)
    assert known_B.sum() >= 10, "a maximum was meant to be found of some sets"
    for at in np.flatnonzero(known_B)[:10]:
        best = minimize(
            lambda theta, at=at: -plain(theta, x_C, passed_BC[at], trials_C, r_BC[at]),
            together[0][at] + 0.01,
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-10},
        )
        assert together[1][at] == pytest.approx(-best.fun, abs=1e-7)
        assert together[0][at] == pytest.approx(best.x, abs=1e-5)


def test_few_resampled_documents_scatter_more_than_their_resamples_say() -> None:
    """By n / (n - 1): of two documents twice as much, so that what models add is half as many times as much."""
    rng, x_C = np.random.default_rng(5), np.linspace(-2, 2, 6)
    p_C = np.exp(-N * np.exp(-1.2 - 0.4 * x_C))

    def drawn(n: int) -> PassCounts:
        passed_BC = rng.binomial(400, p_C, (n, 6)).astype(float)
        return PassCounts(x_C, np.full(6, float(N)), passed_BC, np.full((n, 6), 400.0), np.zeros((n, 6)))

    one = drawn(1)
    theta_BP = maximise_likelihood(one, np.array([[0.5, 0.0]]))[0]
    at, again = slopes(theta_BP, one), slopes(np.repeat(theta_BP, 30, axis=0), drawn(30))
    fisher_PP = np.linalg.inv(at.information_BPP[0])
    many, two = (model_scatter(x_C, at, fisher_PP, (again, fisher_PP), n) for n in (None, 2))
    assert two.ratio == pytest.approx(many.ratio / 2)
    assert two.sequences_PP == pytest.approx(2 * many.sequences_PP)
