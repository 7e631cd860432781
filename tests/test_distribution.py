"""Rank distributions over 1..V, against explicit probabilities, closed forms and a second search for the maximum.

Shapes: V ranks of the vocabulary, M parameters.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2, nbinom, weibull_min

from rbpx.laws.distribution import DISTRIBUTIONS, fit_distribution, ln_shares
from rbpx.laws.lognormal import RankFit
from rbpx.status import Status

# Free parameters of each, and values to draw from; where mu and sigma are given they follow from beta and gamma.
TRUE: dict[str, dict[str, float]] = {
    "lognormal_full": {"beta": 1.3, "gamma": 0.04},
    "power_law": {"beta": 1.4},
    "power_law_cutoff": {"beta": 1.1, "rate": 0.01},
    "zipf_mandelbrot": {"beta": 1.6, "q": 2.5},
    "weibull": {"shape": 0.4, "scale": 8.0},
    "negative_binomial": {"r": 0.3, "q": 0.97},
    "lognormal_inflated": {"share_1": 0.45, "beta": 0.9, "gamma": 0.06},
}
BOUNDS = {
    "beta": (-5.0, 20.0),
    "gamma": (0.0, 20.0),
    "rate": (0.0, 5.0),
    "shape": (0.02, 20.0),
    "scale": (1e-9, 1e7),
    "r": (1e-6, 1e3),
    "share_1": (1e-6, 1 - 1e-6),
}
BOUNDS_OF_Q = {"zipf_mandelbrot": (-1 + 1e-9, 1e4), "negative_binomial": (1e-6, 1.0)}
# Each distribution and one that it holds as a special case.
NESTED = [
    ("lognormal_full", "power_law"),
    ("power_law_cutoff", "power_law"),
    ("zipf_mandelbrot", "power_law"),
    ("lognormal_inflated", "lognormal_full"),
]


def plain_ln_p(name: str, params: dict[str, Any], V: int) -> np.ndarray:
    """Ln p_x for x = 1..V, from the tail functions and masses of scipy where it has them."""
    x = np.arange(1, V + 1, dtype=np.float64)
    if name == "weibull":
        above = weibull_min.logsf(np.arange(V + 1), params["shape"], scale=params["scale"])
        ln_w = above[:-1] + np.log(-np.expm1(np.diff(above)))
    elif name == "negative_binomial":
        r, q = params["r"], params["q"]
        ln_w = nbinom.logpmf(x - 1, r, 1 - q) if q < 1 else gammaln(x - 1 + r) - gammaln(x)
    elif name == "zipf_mandelbrot":
        ln_w = -params["beta"] * np.log(x + params["q"])
    else:
        ln_w = -params["beta"] * np.log(x) - params.get("rate", 0.0) * x
        if name.startswith("lognormal"):
            ln_w -= params["gamma"] * np.log(x) ** 2
    if name == "lognormal_inflated":
        rest = ln_w[1:] + math.log1p(-params["share_1"]) - logsumexp(ln_w[1:])
        return np.r_[math.log(params["share_1"]), rest]
    return np.asarray(ln_w - logsumexp(ln_w))


def other_maximum(name: str, rank: np.ndarray, n_tokens: np.ndarray, V: int) -> float:
    """The highest log-likelihood, in nats, that simplex searches from three places reach within the bounds."""
    names = list(TRUE[name])
    bounds = [BOUNDS_OF_Q[name] if key == "q" else BOUNDS[key] for key in names]

    def loss(z: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            value = -float(n_tokens @ plain_ln_p(name, dict(zip(names, z, strict=True)), V)[rank - 1])
        return value if math.isfinite(value) else 1e300

    found = []
    for stretch in (1.0, 0.5, 0.1):
        start = [value * stretch for value in TRUE[name].values()]
        options = {"xatol": 1e-9, "fatol": 1e-9, "maxfev": 1500}
        found.append(minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options).fun)
    return -float(min(found))


def drawn(name: str, V: int, n: int, seed: int, **params: float) -> tuple[np.ndarray, np.ndarray]:
    p = np.exp(plain_ln_p(name, TRUE[name] | params, V))
    counts = np.random.default_rng(seed).multinomial(n, p / p.sum())
    return np.flatnonzero(counts) + 1, counts[counts > 0]


def heavy_tailed(V: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks as those of a model: Pr(R <= k) = exp(-0.8 k^(-0.6)), cut at V, where what lies beyond piles up."""
    u = np.random.default_rng(seed).uniform(size=n)
    return np.unique(np.ceil((0.8 / -np.log(u)) ** (1 / 0.6)).clip(1, V).astype(np.int64), return_counts=True)


SAMPLES = {
    "heavy": heavy_tailed(400, 4000, seed=0),
    "lognormal": drawn("lognormal_inflated", 400, 4000, seed=1, gamma=0.2),
    "negative binomial": drawn("negative_binomial", 400, 4000, seed=2),
}


def number(value: float | int | None) -> float:
    assert value is not None
    return float(value)


def numbers(fit: RankFit) -> list[float | None]:
    return [fit.loglik, fit.aic, fit.bic, fit.distance]


def test_the_seven_distributions_have_their_names() -> None:
    assert set(DISTRIBUTIONS) == set(TRUE)
    assert len(DISTRIBUTIONS) == 7
    assert isinstance(DISTRIBUTIONS, tuple)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", TRUE)
def test_another_search_finds_the_same_maximum_and_plain_sums_the_same_numbers(name: str, sample: str) -> None:
    rank, n_tokens = SAMPLES[sample]
    n, m, V = n_tokens.sum(), len(TRUE[name]), 400
    fit = fit_distribution(name, rank, n_tokens, V)
    assert fit.distribution == name
    plain = plain_ln_p(name, fit.params, V)
    loglik = sum(count * plain[x - 1] for x, count in zip(rank.tolist(), n_tokens.tolist(), strict=True))
    assert number(fit.loglik) == pytest.approx(loglik, rel=1e-9)
    assert number(fit.loglik) == pytest.approx(other_maximum(name, rank, n_tokens, V), abs=1e-5)
    assert number(fit.aic) == pytest.approx(2 * m - 2 * loglik, rel=1e-9)
    assert number(fit.bic) == pytest.approx(m * math.log(n) - 2 * loglik, rel=1e-9)
    seen, model, gap = 0.0, 0.0, 0.0
    for x in range(1, V + 1):
        seen += n_tokens[rank == x].sum() / n
        model += math.exp(plain[x - 1])
        gap = max(gap, abs(seen - model))
    assert number(fit.distance) == pytest.approx(gap, abs=1e-9)


@pytest.mark.parametrize("V", [300, 50_304])
@pytest.mark.parametrize("name", TRUE)
def test_parameters_are_recovered_within_the_fisher_information(name: str, V: int) -> None:
    n, names, true = 200_000, list(TRUE[name]), TRUE[name]
    fit = fit_distribution(name, *drawn(name, V, n, seed=3), V)
    assert fit.status is Status.ok
    slopes_MV = []
    for key in names:
        step = 1e-5 * true[key]
        up, down = (plain_ln_p(name, true | {key: true[key] + sign * step}, V) for sign in (1, -1))
        slopes_MV.append((up - down) / (2 * step))
    p_V = np.exp(plain_ln_p(name, true, V))
    information_MM = n * (p_V * np.array(slopes_MV)) @ np.array(slopes_MV).T
    off_M = np.array([number(fit.params[key]) - true[key] for key in names])
    # The probability that a correct fit is further off than this is 1 in 10,000.
    assert off_M @ information_MM @ off_M < chi2.ppf(0.9999, len(names))


@pytest.mark.parametrize("V", [40, 50_304])
@pytest.mark.parametrize("name", TRUE)
def test_the_shares_are_those_of_the_formula_and_add_up_to_one(name: str, V: int) -> None:
    fit = fit_distribution(name, *drawn(name, 40, 5000, seed=4), V)
    found = ln_shares(fit, V)
    assert found.shape == (V,)
    assert math.fsum(np.exp(found)) == pytest.approx(1, abs=1e-12)
    plain = plain_ln_p(name, fit.params, V)
    likely = plain > -300  # beyond it a difference of two tails is all rounding
    assert found[likely] == pytest.approx(plain[likely], rel=1e-9)


def test_three_ranks_leave_two_parameters_nothing_to_miss() -> None:
    # p_2 / p_1 = 0.5 and p_3 / p_2 = 0.6 solve for both parameters of every family by hand.
    rank, n_tokens = np.array([1, 2, 3]), np.array([1000, 500, 300])
    best = sum(count * math.log(count / 1800) for count in n_tokens.tolist())
    two = [name for name in TRUE if len(TRUE[name]) == 2]
    fits = {name: fit_distribution(name, rank, n_tokens, 3) for name in two}
    for fit in fits.values():
        assert fit.status is Status.ok
        assert number(fit.loglik) == pytest.approx(best, abs=1e-7)
        assert number(fit.distance) == pytest.approx(0, abs=1e-5)
    ln2, ln3 = math.log(2), math.log(3)
    lognormal = np.linalg.solve([[ln2, ln2**2], [ln3, ln3**2]], [math.log(2), math.log(1000 / 300)])
    cutoff = np.linalg.solve([[ln2, 1], [ln3, 2]], [math.log(2), math.log(1000 / 300)])
    solved = [
        ("lognormal_full", {"beta": lognormal[0], "gamma": lognormal[1]}),
        ("power_law_cutoff", {"beta": cutoff[0], "rate": cutoff[1]}),
        ("negative_binomial", {"r": 0.5 / 0.7, "q": 0.7}),  # r q = 0.5, (r + 1) q / 2 = 0.6
    ]
    for name, params in solved:
        assert {key: number(fits[name].params[key]) for key in params} == pytest.approx(params, rel=1e-4)


def test_rank_one_is_free_when_it_is_inflated() -> None:
    # Ranks 2 to 4 solve for beta and gamma; rank 1 keeps the share it has, far off their line.
    counts = [9000, 400, 300, 200]
    fit = fit_distribution("lognormal_inflated", [1, 2, 3, 4], counts, 4)
    assert number(fit.params["share_1"]) == pytest.approx(9000 / 9900, rel=1e-12)
    t = np.log([2, 3, 4])
    beta, gamma = np.linalg.solve(np.column_stack([t[1:] - t[0], t[1:] ** 2 - t[0] ** 2]), np.log([400 / 300, 2]))
    assert (number(fit.params["beta"]), number(fit.params["gamma"])) == pytest.approx((beta, gamma), rel=1e-6)
    assert number(fit.loglik) == pytest.approx(sum(c * math.log(c / 9900) for c in counts), rel=1e-12)


def test_mu_and_sigma_are_beta_and_gamma_in_other_words() -> None:
    for name in ("lognormal_full", "lognormal_inflated"):
        params = fit_distribution(name, *SAMPLES["lognormal"], 400).params
        mu, sigma = number(params["mu"]), number(params["sigma"])
        assert 1 - mu / sigma**2 == pytest.approx(number(params["beta"]), rel=1e-10)
        assert 1 / (2 * sigma**2) == pytest.approx(number(params["gamma"]), rel=1e-10)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_distribution_is_at_least_as_likely_as_its_special_case(sample: str) -> None:
    fits = {name: fit_distribution(name, *SAMPLES[sample], 400) for name in DISTRIBUTIONS}
    for general, special in NESTED:
        assert number(fits[general].loglik) >= number(fits[special].loglik) - 1e-6
    # A third parameter, and a cutoff that the data want, are more than ties.
    assert number(fits["lognormal_inflated"].loglik) > number(fits["power_law"].loglik) + 1


@pytest.mark.parametrize("name", TRUE)
def test_the_order_of_ranks_and_split_counts_do_not_matter(name: str) -> None:
    rank, n_tokens = drawn(name, 400, 3000, seed=5)
    plain = fit_distribution(name, rank, n_tokens, 400)
    half = n_tokens // 3
    split = fit_distribution(name, np.r_[rank[::-1], 400, rank], np.r_[(n_tokens - half)[::-1], 0, half], 400)
    assert split.status is plain.status
    assert numbers(split) == pytest.approx(numbers(plain), rel=1e-9)
    for key in TRUE[name]:
        assert number(split.params[key]) == pytest.approx(number(plain.params[key]), rel=1e-6)


@pytest.mark.parametrize("name", TRUE)
def test_ten_times_as_many_tokens_of_the_same_shares_leave_the_parameters(name: str) -> None:
    rank, n_tokens = drawn(name, 400, 3000, seed=6)
    once, tenfold = (fit_distribution(name, rank, factor * n_tokens, 400) for factor in (1, 10))
    for key in TRUE[name]:
        assert number(tenfold.params[key]) == pytest.approx(number(once.params[key]), rel=1e-5)
    assert number(tenfold.loglik) == pytest.approx(10 * number(once.loglik), rel=1e-9)
    assert number(tenfold.distance) == pytest.approx(number(once.distance), abs=1e-6)


@pytest.mark.parametrize("name", ["lognormal_full", "lognormal_inflated"])
def test_weights_that_bend_upwards_are_a_power_law(name: str) -> None:
    x = np.arange(1, 801, dtype=np.float64)
    weight = x**-1.9 * np.exp(0.07 * np.log(x) ** 2)
    first = 0 if name == "lognormal_full" else 1
    if first:
        weight[0] = 0.5 * weight.sum()
    fit = fit_distribution(name, x, 1e5 * weight, 800)
    assert fit.status is Status.power_law_limit
    assert (fit.params["mu"], fit.params["sigma"], fit.params["gamma"]) == (None, None, 0.0)
    assert number(fit.params["gamma_unconstrained"]) == pytest.approx(-0.07, abs=1e-7)
    # The beta of a power law gives the mean of ln x that was seen: bisection on a plain sum.
    t, w = np.log(x[first:]), weight[first:]
    lo, hi = 0.0, 4.0
    for _ in range(60):
        middle = (lo + hi) / 2
        power = np.exp(-middle * t)
        lo, hi = (middle, hi) if float(power @ t / power.sum()) > float(w @ t / w.sum()) else (lo, middle)
    assert number(fit.params["beta"]) == pytest.approx(lo, abs=1e-7)


def test_a_tail_heavier_than_a_power_law_wants_no_cutoff() -> None:
    cut, plain = (fit_distribution(name, *SAMPLES["heavy"], 400) for name in ("power_law_cutoff", "power_law"))
    assert (cut.status, cut.params["rate"]) == (Status.at_limit, 0.0)
    assert number(cut.params["beta"]) == pytest.approx(number(plain.params["beta"]), abs=1e-5)
    assert number(cut.loglik) == pytest.approx(number(plain.loglik), abs=1e-6)
    assert number(cut.aic) == pytest.approx(number(plain.aic) + 2, abs=1e-5)


def test_a_tail_that_does_not_fall_takes_the_negative_binomial_to_its_limit() -> None:
    x = np.arange(1, 51)
    n_tokens = np.round(200 / np.sqrt(x) + np.where(x > 40, 3 * x, 0))
    fit = fit_distribution("negative_binomial", x, n_tokens, 50)
    assert fit.status is Status.at_limit
    best = max(
        float(n_tokens @ plain_ln_p("negative_binomial", {"r": r, "q": 1.0}, 50)) for r in np.linspace(0.05, 3, 2951)
    )
    assert number(fit.loglik) == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("zipf_mandelbrot", [100] * 20),  # falls less than a geometric, then stops: q runs away
        ("negative_binomial", [6, 40, 121, 215, 251, 201, 111, 42, 11, 2]),  # narrower than a Poisson: r runs away
        ("lognormal_inflated", [50, 30, 20]),  # two ranks next to each other after the first: gamma runs away
    ],
)
def test_parameters_that_run_away_are_not_called_ok(name: str, counts: list[int]) -> None:
    fit = fit_distribution(name, np.arange(1, len(counts) + 1), counts, 200)
    assert fit.status in (Status.not_converged, Status.at_limit, Status.too_few_tokens)
    assert fit.status.remedy


@pytest.mark.parametrize("name", TRUE)
def test_half_ranks_and_too_few_ranks_are_a_status(name: str) -> None:
    cases = [([1.0, 2.5, 4.0, 9.0], Status.mid_ranks), ([1.0, 3.0, 3.0], Status.too_few_tokens)]
    for rank, status in cases:
        fit = fit_distribution(name, rank, np.ones(len(rank)), 100)
        assert fit.status is status
        assert numbers(fit) == [None] * 4
        assert [fit.params.get(key) for key in TRUE[name]] == [None] * len(TRUE[name])
    assert fit_distribution(name, [], [], 100).status is Status.too_few_tokens
    assert fit_distribution(name, [1, 2, 3, 4], [5, 5, 0, 0], 100).status is Status.too_few_tokens


@pytest.mark.parametrize("name", TRUE)
def test_impossible_counts_are_a_mistake_of_the_caller(name: str) -> None:
    wrong = [([1, 2, 101], [1, 1, 1]), ([1, 2, 3], [1, -1, 1]), ([1, 2, 3], [1, 1]), ([0, 1, 2], [1, 1, 1])]
    for rank, n_tokens in wrong:
        with pytest.raises(ValueError, match=r"rank|count"):
            fit_distribution(name, rank, n_tokens, 100)


def test_an_unknown_distribution_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="gumbel"):
        fit_distribution("gumbel", [1, 2, 3], [5, 3, 2], 100)


def test_odd_small_samples_end_in_finite_numbers_or_none() -> None:
    rng = np.random.default_rng(7)
    for _ in range(12):
        rank = np.r_[1, rng.choice(np.arange(2, 60), size=rng.integers(2, 9), replace=False)]
        n_tokens = rng.choice([1, 2, 5, 100], size=len(rank))
        most = sum(count * math.log(count / n_tokens.sum()) for count in n_tokens.tolist())
        for name in DISTRIBUTIONS:
            fit = fit_distribution(name, rank, n_tokens, 60)
            if fit.loglik is None:
                assert numbers(fit) == [None] * 4
                assert fit.status in (Status.not_converged, Status.too_few_tokens)
                continue
            known = [*fit.params.values(), *numbers(fit)]
            assert all(value is None or math.isfinite(value) for value in known)
            # No distribution is more likely than the observed shares themselves.
            assert fit.loglik <= most + 1e-9
            assert 0 <= number(fit.distance) <= 1
            assert float(n_tokens @ ln_shares(fit, 60)[rank - 1]) == pytest.approx(fit.loglik, rel=1e-9)
