"""Forms of the rank distribution: plain sums over every rank, recovery of drawn ladders, and held-out intervals."""

import numpy as np
import pytest

from rbpx.laws.intervals.estimate import half_width
from rbpx.laws.ranks.closure import fit_form, scatter_half_width
from rbpx.laws.ranks.family import FAMILIES, every_rank
from rbpx.laws.ranks.shapes import RANK_FORMS, Places, derive, mixed, places_of
from tests.support.draws import few_or_all, plausible

V, K = 3000, (1, 7, 100, 1000)
S = np.geomspace(1e3, 1e6, 7)
AT = {  # a line in ln S for each parameter: at the smallest size, at the largest
    "shifted_cut_off": ((0.9, 0.0, 0.9), (1.1, -0.8, 1.2)),
    "two_power_laws": ((-2.0, 0.5, 0.9, 1.0), (-0.8, 1.0, 1.1, 1.2)),
}


def every() -> Places:
    """Each rank a place: the plain way."""
    nodes = every_rank(V)
    return Places(nodes.x_Q, np.log(nodes.x_Q), np.zeros(V), V, np.array(K), nodes)


def ladder(name: str) -> np.ndarray:
    lo, hi = map(np.array, AT[name])
    return lo + np.linspace(0, 1, len(S))[:, None] * (hi - lo)


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
    places = places_of(V, K)
    found = derive(form.shares(theta, places), places)
    np.testing.assert_allclose(found, np.column_stack([*upto, entropy, own]), rtol=1e-9, atol=1e-12)
    assert np.all(found[:, -1] <= found[:, -2] + 1e-12)  # knowing the kind of a token never costs
    assert (parts.shape[-2] == 1) == bool(np.allclose(found[:, -1], found[:, -2], rtol=1e-12))


def counts(rng: np.random.Generator, name: str, theta_NP: np.ndarray, n: int = 20_000) -> np.ndarray:
    p_NV = np.exp(mixed(RANK_FORMS[name].shares(theta_NP, every())))
    return np.stack([rng.multinomial(n, p / p.sum()) for p in p_NV]).astype(float)


def at_places(places: Places, seen_NV: np.ndarray) -> np.ndarray:
    x_V = np.arange(1, V + 1, dtype=float)
    return np.stack([places.nodes.moved(x_V[n > 0], n[n > 0]) for n in seen_NV])


@pytest.mark.parametrize("name", sorted(AT))
def test_a_drawn_ladder_gives_its_parameters_back(name: str) -> None:
    theta_NP, places, form = ladder(name), places_of(V, K), RANK_FORMS[name]
    seen_NQ = at_places(places, counts(np.random.default_rng(1), name, theta_NP, 2_000_000))
    fit = fit_form(form, places, S, seen_NQ)
    assert fit.converged
    np.testing.assert_allclose(fit.theta(S), theta_NP, atol=0.05)
    truth = float((seen_NQ * mixed(form.shares(theta_NP, places))).sum())
    assert truth <= fit.loglik < truth + 40  # of 2 P parameters the gain is about P nats


def test_a_family_alone_is_fitted_as_the_verb_ranks_does() -> None:
    from rbpx.laws.ranks.distribution import fit_distribution

    seen_V = counts(np.random.default_rng(2), "shifted_cut_off", ladder("shifted_cut_off")[-1:])[0]
    places = places_of(V, K)
    for name in ("power_law", "power_law_cutoff", "weibull", "zipf_mandelbrot"):
        own = fit_distribution(name, np.arange(1.0, V + 1), seen_V, V)
        fit = fit_form(RANK_FORMS[name], places, S[-1:], at_places(places, seen_V[None]))
        assert own.loglik is not None
        assert fit.loglik == pytest.approx(own.loglik, rel=1e-8)
        np.testing.assert_allclose(fit.theta(S[-1:])[0], FAMILIES[name].theta(own.params, V), rtol=1e-3, atol=1e-4)


@few_or_all(30, 400)
def test_the_interval_of_a_held_out_size_holds_it_where_the_form_is_right_alone(n_draws: int) -> None:
    """Models scatter about the laws of their parameters; a power law is another form."""
    places = places_of(V, K)
    rng, right, wrong = np.random.default_rng(3), 0, 0
    for _ in range(n_draws):
        theta_NP = ladder("shifted_cut_off")
        theta_NP[:, 0] += rng.normal(0, 0.02, len(S))
        seen_NV = counts(rng, "shifted_cut_off", theta_NP)
        y_NY = -np.log(np.cumsum(seen_NV / 20_000, axis=1)[:, np.array(K) - 1])
        for name in ("shifted_cut_off", "power_law"):
            fit = fit_form(RANK_FORMS[name], places, S[:-1], at_places(places, seen_NV[:-1]))
            off_N = np.log(y_NY[:-1, 0] / fit.derived(S[:-1])[:, 0])  # at k = 1
            scatter, dof, unit = scatter_half_width(off_N, S[:-1], S[-1])
            half = half_width(scatter=scatter, dof=dof, unit=unit)
            inside = abs(np.log(y_NY[-1, 0] / fit.derived(S[-1:])[0, 0])) <= half
            right, wrong = right + (inside and name != "power_law"), wrong + (inside and name == "power_law")
    assert plausible(right, n_draws)
    assert wrong < right / 2
