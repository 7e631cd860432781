"""Sums over ranks at their nodes, against the sums over every rank."""

import numpy as np
import pytest

from rbpx.laws.ranks.family import FAMILIES
from rbpx.laws.ranks.lognormal import derived_curve
from rbpx.laws.ranks.quadrature import nodes_of

THETAS = {  # as fits to real ranks have them, and far from that
    "lognormal_full": [(0.7, 0.05), (1.6, 0.0), (-20.0, 3.0)],
    "power_law": [(1.2,), (-3.0,), (40.0,)],
    "power_law_cutoff": [(0.9, 3.0), (0.1, 200.0)],
    "weibull": [(-1.0, -1.2), (-4.0, -0.3), (0.5, -3.0)],
    "lognormal_inflated": [(1.0, 0.7, 0.05)],
}


@pytest.mark.parametrize("V", [1, 20, 33, 700, 50_304])
@pytest.mark.parametrize("name", THETAS)
def test_a_family_and_its_slopes_sum_as_over_every_rank(name: str, V: int) -> None:
    family, nodes, x_V = FAMILIES[name], nodes_of(V), np.arange(1, V + 1, dtype=np.float64)
    for theta in map(np.array, THETAS[name]):
        ln_weight_V, ln_weight_Q = family.ln_weight(theta, x_V, V), family.ln_weight(theta, nodes.x_Q, V)
        w_V, w_Q = np.exp(ln_weight_V - ln_weight_V.max()), np.exp(ln_weight_Q - ln_weight_V.max()) * nodes.weight_Q
        assert w_Q.sum() == pytest.approx(w_V.sum(), rel=1e-12)
        plain_P, found_P = family.slopes(theta, x_V, V) @ w_V, family.slopes(theta, nodes.x_Q, V) @ w_Q
        assert found_P == pytest.approx(plain_P, rel=1e-11)


@pytest.mark.parametrize("V", [40, 50_304])
@pytest.mark.parametrize("name", THETAS)
def test_counts_moved_to_the_nodes_give_the_same_likelihood(name: str, V: int) -> None:
    rng = np.random.default_rng(0)
    rank_R = np.unique(rng.integers(1, V + 1, 3_000)).astype(np.float64)
    n_R = rng.integers(1, 1_000, len(rank_R)).astype(np.float64)
    nodes, family = nodes_of(V), FAMILIES[name]
    n_Q = nodes.moved(rank_R, n_R)
    assert n_Q.sum() == pytest.approx(n_R.sum(), rel=1e-12)
    for theta in map(np.array, THETAS[name]):
        plain = n_R @ family.ln_weight(theta, rank_R, V)
        assert n_Q @ family.ln_weight(theta, nodes.x_Q, V) == pytest.approx(plain, rel=1e-11)


def test_a_block_ends_at_each_break() -> None:
    breaks = (1, 1_000, 40, 1_001, 50_304, 60_000)
    nodes = nodes_of(50_304, breaks)
    found = [nodes.weight_Q[:n].sum() for n in nodes.upto_K]
    assert found == pytest.approx(np.minimum(breaks, 50_304), rel=1e-13)
    assert len(nodes.x_Q) < 500


@pytest.mark.parametrize("V", [1, 300, 20_000])
def test_derived_curves_are_those_of_every_rank_however_steep(V: int) -> None:
    """Beyond `STEEPEST` the nodes are wrong (4e-4 of the last one at V = 700), so every rank is summed."""
    pairs = [(0.7, 0.05), (1.0, 0.0), (-15.0, 2.0), (3.0, 0.4), (0.0, -2.0), (0.0, -50.0), (-90.0, 0.0)]
    ks, t_V = [50, 1, 7, 10_000, V, 10**9], np.log(np.arange(1, V + 1))
    for (beta, gamma), curve in zip(pairs, derived_curve(*np.transpose(pairs), V, ks), strict=True):
        ln_p_V = -beta * t_V - gamma * t_V**2
        ln_p_V -= np.logaddexp.reduce(ln_p_V)
        assert np.exp(-curve[:-1]) == pytest.approx([np.exp(ln_p_V[:k]).sum() for k in ks], rel=1e-11)
        assert curve[1] == pytest.approx(-ln_p_V[0], rel=1e-12, abs=1e-12)
        assert curve[-1] == pytest.approx(-np.exp(ln_p_V) @ ln_p_V, rel=1e-10, abs=1e-9)
