"""Weights of the document bootstrap, against the moments of the multinomial distribution."""

import math

import numpy as np
import pytest
from scipy.stats import beta, norm
from scipy.stats import t as student_t

from rbpx.laws.intervals.bootstrap import bootstrap
from rbpx.laws.intervals.estimate import (
    Estimate,
    Recipe,
    document_weights,
    effective_number,
    estimate,
    flat,
    from_influence,
    half_width,
    moments,
)


def test_the_weights_have_the_mean_variance_and_covariance_of_a_multinomial() -> None:
    n, B = 10, 200_000
    weights_BD = document_weights(n, B, seed=2)
    covariance = np.cov(weights_BD.T)
    # Multinomial: mean 1, variance 1 - 1/n, covariance -1/n; sampling error of a mean of B is about 1/sqrt(B).
    assert np.abs(weights_BD.mean(axis=0) - 1).max() < 5 / np.sqrt(B)
    assert np.abs(np.diag(covariance) - (1 - 1 / n)).max() < 10 / np.sqrt(B)
    assert np.abs(covariance[~np.eye(n, dtype=bool)] + 1 / n).max() < 10 / np.sqrt(B)


def test_every_resample_draws_as_many_documents_as_there_are_by_its_seed() -> None:
    weights_BD = document_weights(37, 50, seed=1)
    assert weights_BD.shape == (50, 37)
    assert weights_BD.dtype == np.int64
    assert weights_BD.min() == 0
    assert (weights_BD.sum(axis=1) == 37).all()
    assert np.array_equal(document_weights(37, 50, seed=1), weights_BD)
    assert not np.array_equal(document_weights(37, 50, seed=4), weights_BD)
    assert document_weights(1, 4, seed=0).tolist() == [[1]] * 4
    for n_documents, n_replicates in ((0, 5), (5, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            document_weights(n_documents, n_replicates, seed=0)


# ------------------------------------------------------------------------------------------------- recipes by name


def test_documents_count_by_their_shares_of_the_tokens() -> None:
    assert effective_number([7, 7, 7, 7, 7]) == 5  # those without a token count for nothing
    assert effective_number([300, 0, 0]) == 1
    assert effective_number([0, 1, 1, 2]) == pytest.approx(1 / (1 / 16 + 1 / 16 + 1 / 4))
    influence_D, n = np.array([0.1, -0.3, 0.2]), 8 / 3
    found = from_influence(2.0, influence_D, n)
    half = student_t.ppf(0.975, n - 1) * math.sqrt(n / (n - 1) * (0.01 + 0.09 + 0.04))
    assert found.ends == pytest.approx((2 - half, 2 + half))
    assert from_influence(2.0, influence_D[:1], 1).ends is None
    hits, tokens = np.array([12.0, 30, 7, 21]), np.array([40.0, 80, 30, 50])
    as_they_are, as_if_equal = (bootstrap(hits, np.sum, tokens=each) for each in (tokens, None))
    squares = (tokens @ tokens) / tokens.sum() ** 2
    assert as_they_are.stderr == pytest.approx((as_if_equal.stderr or 0) * math.sqrt(3 / 4 / (1 - squares)))


@pytest.mark.parametrize("level", [0.95, 0.8])
@pytest.mark.parametrize("n_documents", [9, 10**7])
def test_the_recipes_equal_their_definitions(n_documents: int, level: float) -> None:
    replicate_B, value = np.random.default_rng(6).gamma(2.0, size=999), 1.7
    mean, sd = replicate_B.mean(), replicate_B.std(ddof=1)
    few = math.sqrt(n_documents / (n_documents - 1))
    t = few * student_t.ppf((1 + level) / 2, n_documents - 1)
    q = np.quantile(replicate_B, [norm.cdf(-t), norm.cdf(t)])
    at = [math.ceil(999 * share) - 1 for share in (norm.cdf(-t), norm.cdf(t))]
    assert (
        at
        == {(9, 0.95): [7, 991], (10**7, 0.95): [24, 974], (9, 0.8): [69, 929], (10**7, 0.8): [99, 899]}[
            n_documents, level
        ]
    )
    expected = {
        Recipe.normal: (2 * value - mean - t * sd, 2 * value - mean + t * sd),
        Recipe.uncentred: (value - t * sd, value + t * sd),
        Recipe.percentile: tuple(np.sort(replicate_B)[at]),
        Recipe.expanded: tuple(q),
    }
    for recipe in Recipe:
        ends = estimate(value, replicate_B, n_documents, recipe, 1 - level).ends
        assert ends == pytest.approx(expected[recipe], rel=1e-6), recipe
        stderr = estimate(value, replicate_B, n_documents, recipe).stderr
        has_one = recipe in (Recipe.normal, Recipe.uncentred)
        assert stderr == (pytest.approx(sd * few) if has_one else None)
    # The number beside an interval is one that it is about: corrected where the interval is.
    assert estimate(value, replicate_B, 9).value == pytest.approx(2 * value - mean)
    for recipe in set(Recipe) - {Recipe.normal}:
        assert estimate(value, replicate_B, 9, recipe).value == value


@pytest.mark.parametrize("recipe", list(Recipe))
def test_one_document_or_few_resamples_have_no_interval_and_unusable_ones_are_left_out(recipe: Recipe) -> None:
    replicate_B = np.random.default_rng(7).normal(size=30)
    holes_B = np.append(replicate_B, [np.nan, np.inf])
    assert estimate(0.1, holes_B, 9, recipe) == estimate(0.1, replicate_B, 9, recipe)
    assert estimate(0.1, replicate_B, 1, recipe).ends is None
    assert estimate(0.1, replicate_B[:19], 9, recipe).ends is None
    assert estimate(np.nan, replicate_B, 9, recipe).value is None


def test_scatter_and_documents_add_up_and_luck_narrows_nothing() -> None:
    t = student_t.ppf(0.975, 5)
    assert half_width(0.04, 0.3, 5, unit=4.0) == pytest.approx(
        math.sqrt((t * 0.3) ** 2 * 4 + 1.959964**2 * 0.04), rel=1e-6
    )
    assert half_width(0.04, 0.0, 5, own=0.2) == pytest.approx(1.959964 * math.sqrt(0.04 + 0.04), rel=1e-6)
    assert half_width(0.04) == pytest.approx(1.959964 * 0.2, rel=1e-6)
    few = math.sqrt((t * 0.3) ** 2 * 4 + student_t.ppf(0.975, 2) ** 2 * 0.04)
    assert half_width(0.04, 0.3, 5, unit=4.0, n_effective=3) == pytest.approx(few)


def test_moments_are_the_bias_and_covariance_of_refits_and_need_20() -> None:
    theta_BP = np.random.default_rng(8).normal(size=(50, 2))
    of = moments(np.array([1.0, 2.0]), theta_BP)
    assert of.bias_P == pytest.approx(theta_BP.mean(axis=0) - [1, 2])
    assert of.covariance_PP == pytest.approx(np.cov(theta_BP.T))
    assert moments(np.array([1.0, 2.0]), theta_BP[:19]) is None


# ----------------------------------------------------------------------------------------------- from sums to an answer


@pytest.mark.parametrize("recipe", list(Recipe))
def test_bootstrap_is_the_estimate_of_documents_drawn_by_hand(recipe: Recipe) -> None:
    rng = np.random.default_rng(9)
    sums_DC = rng.gamma(2.0, size=(12, 3)) + np.array([0.0, 1.0, 2.0])
    weights_BD = document_weights(12, 60, seed=5)
    totals_BC = np.array([sum(n * row for n, row in zip(n_D, sums_DC, strict=True)) for n_D in weights_BD])
    value = sums_DC[:, 0].sum() / sums_DC[:, 2].sum()
    expected = estimate(value, totals_BC[:, 0] / totals_BC[:, 2], 12, recipe, p=0.2)
    found = bootstrap(sums_DC, lambda of_C: of_C[0] / of_C[2], 60, seed=5, recipe=recipe, level=0.8)
    named = {"above": sums_DC[:, 0], "below": sums_DC[:, 2]}
    also = bootstrap(named, lambda of: of["above"] / of["below"], 60, seed=5, recipe=recipe, level=0.8)
    assert (found.value, found.lo, found.hi) == pytest.approx((expected.value, expected.lo, expected.hi), rel=1e-12)
    assert (also.value, also.lo, also.hi) == pytest.approx((expected.value, expected.lo, expected.hi), rel=1e-12)
    assert (found.stderr is None) == (expected.stderr is None)


@pytest.mark.parametrize("documents_fail", [False, True])
def test_the_interval_of_a_share_near_1_lies_in_0_to_1_and_that_of_misses_mirrors_it(documents_fail: bool) -> None:
    """Five documents of unequal length; one in a thousand tokens is no hit, or one in thirty documents has none."""
    rng = np.random.default_rng(12)
    for _ in range(20):
        tokens_D = rng.integers(50, 400, 5)
        hits_D = tokens_D * (rng.random(5) < 29 / 30) if documents_fail else rng.binomial(tokens_D, 0.999)
        named = {"hits": hits_D, "tokens": tokens_D}
        found = bootstrap(named, lambda of: of["hits"] / of["tokens"], 100, tokens=tokens_D)
        misses = bootstrap(named, lambda of: 1 - of["hits"] / of["tokens"], 100, tokens=tokens_D)
        assert found.ends is not None
        assert 0 <= found.ends[0] <= found.ends[1] <= 1
        assert misses.ends == pytest.approx((1 - found.ends[1], 1 - found.ends[0]), abs=1e-9)


def test_few_misses_take_the_exact_binomial_interval_and_a_ratio_of_losses_none() -> None:
    hits_D, tokens_D = np.array([99.0, 50, 80]), np.array([100.0, 50, 80])
    named, n, share = {"hits": hits_D, "tokens": tokens_D}, 230**2 / (100**2 + 50**2 + 80**2), 229 / 230
    for level in (0.95, 0.8):
        found = bootstrap(named, lambda of: of["hits"] / of["tokens"], tokens=tokens_D, level=level)
        assert found.value == pytest.approx(share)
        below, above = (1 - level) / 2, (1 + level) / 2
        assert found.ends == pytest.approx(
            (beta.ppf(below, share * n, n - share * n + 1), beta.ppf(above, share * n + 1, n - share * n))
        )
    losses = {"a": np.array([9.5, 11.2, 10.1, 8.8]), "b": np.array([10.0, 11.5, 10.3, 9.1])}
    ratio = bootstrap(losses, lambda of: of["a"] / of["b"])
    drawn_B = np.array([(w @ losses["a"]) / (w @ losses["b"]) for w in document_weights(4, 1000, 0)])
    assert ratio.ends == pytest.approx(estimate(losses["a"].sum() / losses["b"].sum(), drawn_B, 4).ends, rel=1e-12)


def test_bootstrap_leaves_out_replicates_without_a_number_and_has_no_interval_for_one_document() -> None:
    hits_D, tokens_D = np.array([2.0, 1.0, 0.0]), np.array([5.0, 4.0, 0.0])  # one in 27 draws no token
    found = bootstrap({"hits": hits_D, "tokens": tokens_D}, lambda of: of["hits"] / of["tokens"], seed=2)
    assert found.ends is not None
    assert bootstrap(hits_D[:1], float) == Estimate(2.0)
    with pytest.raises(ValueError, match=r"a row for each document, got \[2, 3\] rows"):
        bootstrap({"hits": hits_D[:2], "tokens": tokens_D}, lambda of: 1.0)
    with pytest.raises(ValueError, match="at least 1 document"):
        bootstrap([], float)


def test_a_number_and_its_ends_go_through_a_function_and_swap_where_it_falls() -> None:
    of = Estimate(1.0, 0.5, None, 0.2)
    assert of.through(lambda x: 1 / x, falls=True) == Estimate(1.0, None, 2.0)
    assert of.times(-2) == Estimate(-2.0, None, -1.0, 0.4)
    assert of.times(3) == Estimate(3.0, 1.5, None, pytest.approx(0.6))
    assert Estimate(0.0, -800.0, 800.0).exp() == Estimate(1.0)
    assert of.record() == {"value": 1.0, "lo": 0.5, "hi": None}
    assert flat({"k": 1, "share": of}) == {"k": 1, "share": 1.0, "share_lo": 0.5, "share_hi": None}
