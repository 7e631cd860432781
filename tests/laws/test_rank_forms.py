"""Forms of the rank distribution: plain sums over every rank, recovery of drawn ladders, and held-out intervals."""

import numpy as np
import pytest

from rbpx.laws.ranks.closure import fit_form
from rbpx.laws.ranks.quadrature import nodes_of
from rbpx.laws.ranks.shapes import RANK_FORMS, derive, ln_mixture
from tests.support.draws import fewest
from tests.support.rank_ladders import AT, K, S, V, at_nodes, counts, every, held_out_sizes, ladder
from tests.support.singly import fit_distribution


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
