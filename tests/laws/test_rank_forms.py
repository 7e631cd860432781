"""Forms of the rank distribution: plain sums over every rank, recovery of drawn ladders, and held-out intervals."""

import numpy as np
import pytest

from rbpx.laws.intervals.estimate import half_width
from rbpx.laws.ranks.closure import fit_form, scatter_half_width
from rbpx.laws.ranks.quadrature import RankNodes, every_rank, nodes_of
from rbpx.laws.ranks.shapes import RANK_FORMS, derive, ln_mixture
from tests.support.draws import fewest
from tests.support.singly import fit_distribution

V, K = 3000, (1, 7, 100, 1000)
S = np.geomspace(1e3, 1e6, 7)
AT = {  # a line in ln S for each parameter: at the smallest size, at the largest
    "power_law_cutoff": ((0.9, 2.5), (1.1, 3.3)),
    "geometric_and_power": ((-2.0, -1.0, 0.9, 1.0), (-0.8, 0.5, 1.1, 1.2)),
}


def every() -> RankNodes:
    """Each rank a place: the plain way."""
    return every_rank(V, K)


def ladder(name: str) -> np.ndarray:
    lo, hi = map(np.array, AT[name])
    return lo + np.linspace(0, 1, len(S))[:, None] * (hi - lo)


def counts(rng: np.random.Generator, name: str, theta_NP: np.ndarray, n: int = 20_000) -> np.ndarray:
    p_NV = np.exp(ln_mixture(RANK_FORMS[name].shares(theta_NP, every())))
    return np.stack([rng.multinomial(n, p / p.sum()) for p in p_NV]).astype(float)


def at_nodes(nodes: RankNodes, seen_NV: np.ndarray) -> np.ndarray:
    x_V = np.arange(1, V + 1, dtype=float)
    return np.stack([nodes.moved(x_V[n > 0], n[n > 0]) for n in seen_NV])


def held_out_sizes(n_draws: int) -> tuple[int, int]:
    """How often the interval of the largest size holds it, by the form that was drawn and by a lognormal.

    Models scatter about the laws of their parameters.
    """
    nodes, rng = nodes_of(V, K), np.random.default_rng(3)
    held = dict.fromkeys(("geometric_and_power", "lognormal_full"), 0)
    for _ in range(n_draws):
        theta_NP = ladder("geometric_and_power")
        theta_NP[:, 0] += rng.normal(0, 0.02, len(S))
        seen_NV = counts(rng, "geometric_and_power", theta_NP)
        y_NY = -np.log(np.cumsum(seen_NV / 20_000, axis=1)[:, np.array(K) - 1])
        for name in held:
            fit = fit_form(RANK_FORMS[name], nodes, S[:-1], at_nodes(nodes, seen_NV[:-1]))
            off_N = np.log(y_NY[:-1, 0] / fit.derived(S[:-1])[:, 0])  # at k = 1
            scatter, dof, unit = scatter_half_width(off_N, S[:-1], S[-1])
            half = half_width(scatter=scatter, dof=dof, unit=unit)
            held[name] += bool(abs(np.log(y_NY[-1, 0] / fit.derived(S[-1:])[0, 0])) <= half)
    return held["geometric_and_power"], held["lognormal_full"]


@pytest.mark.parametrize("name", sorted(RANK_FORMS))
def test_shares_sum_to_one_and_what_follows_is_that_of_plain_sums(name: str) -> None:
    form = RANK_FORMS[name]
    theta = np.array(form.starts)
    weights, parts = (np.exp(each) for each in form.shares(theta, every()))
    assert weights.sum(axis=-1) == pytest.approx(1)
    assert parts.sum(axis=-1) == pytest.approx(np.ones(parts.shape[:-1]))
    p_V = (weights[..., None] * parts).sum(axis=-2)
    upto = [-np.log(p_V[:, :k].sum(axis=1)) for k in K]
    entropy = -(p_V * np.log(p_V)).sum(axis=1)
    logs = np.log(np.where(parts > 0, parts, 1.0))
    own = -(weights * (parts * logs).sum(axis=-1)).sum(axis=-1)
    nodes = nodes_of(V, K)
    found = derive(form.shares(theta, nodes), nodes)
    np.testing.assert_allclose(found, np.column_stack([*upto, entropy, own]), rtol=1e-9, atol=1e-12)
    assert np.all(found[:, -1] <= found[:, -2] + 1e-12)  # knowing the kind of a token never costs
    assert (parts.shape[-2] == 1) == bool(np.allclose(found[:, -1], found[:, -2], rtol=1e-12))


@pytest.mark.parametrize("name", sorted(AT))
def test_a_drawn_ladder_gives_its_parameters_back(name: str) -> None:
    theta_NP, nodes, form = ladder(name), nodes_of(V, K), RANK_FORMS[name]
    seen_NQ = at_nodes(nodes, counts(np.random.default_rng(1), name, theta_NP, 2_000_000))
    fit = fit_form(form, nodes, S, seen_NQ)
    assert fit.converged
    np.testing.assert_allclose(fit.theta(S), theta_NP, atol=0.05)
    truth = float((seen_NQ * ln_mixture(form.shares(theta_NP, nodes))).sum())
    assert truth <= fit.loglik < truth + 40  # of 2 P parameters the gain is about P nats


def test_a_family_alone_is_fitted_as_the_verb_ranks_does() -> None:

    seen_V = counts(np.random.default_rng(2), "power_law_cutoff", ladder("power_law_cutoff")[-1:])[0]
    nodes = nodes_of(V, K)
    for name in ("lognormal_full", "power_law_cutoff"):
        own = fit_distribution(name, np.arange(1.0, V + 1), seen_V, V)
        fit = fit_form(RANK_FORMS[name], nodes, S[-1:], at_nodes(nodes, seen_V[None]))
        assert own.loglik is not None
        assert fit.loglik == pytest.approx(own.loglik, rel=1e-8)
        np.testing.assert_allclose(fit.theta(S[-1:])[0], own.theta, rtol=1e-3, atol=1e-4)


def test_the_interval_of_a_held_out_size_holds_it_where_the_form_is_right_alone() -> None:
    """One of 95 % does as often in 999 of 1,000 sets of 30 draws, by the binomial; a lognormal is another form."""
    right, wrong = held_out_sizes(30)
    assert right >= fewest(30)
    assert wrong < right / 2
