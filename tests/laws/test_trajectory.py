"""Laws after a warm-up."""

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import f

from rbpx.laws.trajectory import fit_after_warm_up

D = np.geomspace(2e6, 3e11, 36)


def trajectory(scatter: float = 0.003, lifted: int = 7) -> np.ndarray:
    """A power law with an offset, above which the first checkpoints lie."""
    y = 1.7 + 900 * D**-0.33
    y[:lifted] = np.linspace(10.8, 1.15 * y[lifted], lifted) if lifted else []
    return y * np.exp(scatter * np.random.default_rng(0).standard_normal(len(D)))


@pytest.mark.parametrize("lifted", [0, 4, 7, 12])
def test_the_end_of_a_warm_up_is_found(lifted: int) -> None:
    y = trajectory(lifted=lifted)
    found = fit_after_warm_up(D, y)
    assert found is not None
    assert (found.first, found.law.S[0], len(found.p)) == (lifted, D[lifted], 19)
    assert found.law.alpha.value == pytest.approx(0.33, abs=0.03)
    assert found.law.E.value == pytest.approx(1.7, abs=0.1)
    assert found.law.n_points == 36 - lifted


def test_each_p_is_that_of_plain_fits() -> None:
    y = trajectory()
    found = fit_after_warm_up(D, y)
    assert found is not None
    squares = {k: plain_squares(y, k) for k in (0, 3, 6, 7, 9, 18)}
    assert len(found.p) == 19
    for k in (0, 3, 6, 7, 9):
        F = (squares[k] - squares[18]) / (18 - k) / (squares[18] / (36 - 18 - 3))
        assert found.p[k] == pytest.approx(f.sf(F, 18 - k, 15), rel=1e-3)
    assert found.p[18] == 1


def plain_squares(y: np.ndarray, k: int) -> float:
    """The least sum of squares of ln y about a law of the checkpoints from k on."""
    x, ln_y = np.log(D[k:] / 1e9), np.log(y[k:])

    def residuals(q: np.ndarray) -> np.ndarray:
        return np.log(np.exp(q[0] - q[1] * x) + q[2]) - ln_y

    starts = [(start, beta, 1.0) for start in (-1.0, 1.0) for beta in (0.2, 0.5)]
    bounds = ([-20, 0, 0], [20, 4, 20])
    return min(
        2 * least_squares(residuals, start, bounds=bounds, xtol=1e-15, ftol=1e-15, gtol=1e-15).cost for start in starts
    )


def test_a_warm_up_may_be_given() -> None:
    found = fit_after_warm_up(D, trajectory(), warm_up=1e9)
    assert found is not None
    assert (found.law.S[0], found.p) == (D[D >= 1e9][0], ())
    assert fit_after_warm_up(D, trajectory(), warm_up=2e11) is None
