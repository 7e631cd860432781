"""Curves derived from the rank model close on each other, on plain loops and on the published numbers.

Shapes: B published pairs of parameters, K numbers of the grid of k.
"""

import math

import numpy as np
import pytest

from rbpx.laws.ranks.lognormal import derived_approximation
from tests.support.singly import derived, derived_rbp

# RBP paper (arXiv 2510.20387): pythia 14m, 160m, 1.4b, 12b on Wikipedia; non-embedding parameters of the four.
PUBLISHED = [(1.19, 3.69), (-3.49, 4.43), (-9.32, 5.18), (-14.29, 5.76)]
S = [1_189_888, 85_056_000, 1_208_602_624, 11_327_027_200]
V = 50_304


def natural(mu: float, sigma: float) -> tuple[float, float]:
    """(beta, gamma) of p_x proportional to x^(-beta) exp(-gamma ln^2 x)."""
    return 1 - mu / sigma**2, 1 / (2 * sigma**2)


def shares_by_loop(mu: float, sigma: float, V: int) -> list[float]:
    """p_1..p_V from the lognormal density itself, eq. 9 of the paper."""
    psi = [math.exp(-((math.log(x) - mu) ** 2) / (2 * sigma**2)) / x for x in range(1, V + 1)]
    total = math.fsum(psi)
    return [value / total for value in psi]


@pytest.mark.parametrize(
    ("mu", "sigma", "neg_ln_rbp_1"),
    [(*pair, level) for pair, level in zip(PUBLISHED, [1.8917, 1.3463, 1.0842, 0.9779], strict=True)],
)
def test_the_published_pairs_give_every_rbp_k_of_a_plain_loop(mu: float, sigma: float, neg_ln_rbp_1: float) -> None:
    k = [1, 2, 10, 100, 1000, 10_000, V - 1]
    p = shares_by_loop(mu, sigma, V)
    found_K = derived_rbp(*natural(mu, sigma), V, k)
    assert found_K == pytest.approx([math.fsum(p[:value]) for value in k], rel=1e-10)
    assert round(-math.log(found_K[0]), 4) == neg_ln_rbp_1


def test_the_approximation_is_its_formula_by_the_error_function() -> None:
    for mu, sigma in PUBLISHED:
        below = (1 + math.erf(mu / sigma / math.sqrt(2))) / 2
        phi = math.exp(-((mu / sigma) ** 2) / 2) / math.sqrt(2 * math.pi)
        c = below + phi / (2 * sigma)
        first = math.log(c) + math.log(math.sqrt(2 * math.pi) * sigma) + mu**2 / (2 * sigma**2)
        more = below * ((sigma**2 - mu**2) / (2 * sigma**2) + mu) + phi * (sigma - mu / (2 * sigma))
        found = derived_approximation(mu, sigma)
        assert float(found[0]) == pytest.approx(first, rel=1e-11)
        assert float(found[1]) == pytest.approx(first + more / c, rel=1e-11)


def test_the_four_published_pairs_fall_as_steeply_as_the_published_ten() -> None:
    # Over all ten sizes the paper finds -0.080 (-ln RBP_1) and -0.061 (CE); four of them cannot tell to 0.003.
    rbp_1, ce = (
        np.polyfit(np.log(S), np.log(curve), 1)[0] for curve in derived_approximation(*np.transpose(PUBLISHED))
    )
    assert (rbp_1, ce) == pytest.approx((-0.080, -0.061), abs=0.003)
    # The exact sums over 1..V are flatter than that approximation in -ln RBP_1, and alike in CE.
    exact = derived(*np.transpose(PUBLISHED), V)
    exact_rbp, exact_ce = (
        np.polyfit(np.log(S), np.log(curve), 1)[0] for curve in (exact.neg_ln_rbp_1, exact.cross_entropy_nats)
    )
    assert exact_rbp - rbp_1 == pytest.approx(0.0044, abs=1e-4)
    assert exact_ce == pytest.approx(ce, abs=1e-3)


def test_the_curve_ends_at_one() -> None:
    assert derived_rbp(1.2, 0.03, 500, [500, 501, 10**9]) == pytest.approx(np.ones(3), abs=1e-15), "but for rounding"
    assert derived_rbp(1.2, 0.03, 1, [1]).tolist() == [1.0]


def test_any_shape_of_parameters_gives_its_own_shape_and_k_last_in_any_order() -> None:
    beta, gamma = np.array([[0.8], [1.3], [-0.4]]), np.array([0.0, 0.05, -0.02, 0.3])
    together = derived_rbp(beta, gamma, 3000, [7, 1, 2999])
    assert together.shape == (3, 4, 3)
    for i in range(3):
        for j in range(4):
            weight = [x ** -float(beta[i, 0]) * math.exp(-float(gamma[j]) * math.log(x) ** 2) for x in range(1, 3001)]
            share = [math.fsum(weight[:k]) / math.fsum(weight) for k in (7, 1, 2999)]
            assert together[i, j] == pytest.approx(share, rel=1e-10)
