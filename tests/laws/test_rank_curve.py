"""The curve of a fitted distribution and how it moves, against plain sums over 1..V and fits to other counts."""

import numpy as np
import pytest

from rbpx.laws.ranks.distribution import (
    RankCurve,
    RankSample,
    fit_sample,
    rank_curve,
)
from rbpx.laws.ranks.family import FAMILIES, RankFit
from rbpx.status import Status
from tests.support.rank_models import SAMPLES, TRUE, plain_ln_p
from tests.support.singly import fit_distribution

K = (100, 1, 7, 400, 1000)  # in any order; 400 is V and 1000 beyond it


def fit_of(name: str, sample: str) -> tuple[RankFit, RankSample, RankCurve]:
    rank, n_tokens = SAMPLES[sample]
    seen = n_tokens > 0
    order = np.argsort(rank[seen])
    rank_sample = RankSample(rank[seen][order].astype(float), n_tokens[seen][order].astype(float), 400, K)
    (fit,) = fit_sample([name], rank_sample)
    return fit, rank_sample, rank_curve(fit, rank_sample)


def plain_curve(name: str, fit: RankFit, V: int) -> np.ndarray:
    ln_p_V = plain_ln_p(name, fit.params, V)
    upto_V = np.cumsum(np.exp(ln_p_V))
    return np.append([-np.log(min(upto_V[min(k, V) - 1], 1.0)) for k in K], -np.exp(ln_p_V) @ ln_p_V)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", TRUE)
def test_the_curve_is_that_of_plain_sums_and_moves_as_refits_do(name: str, sample: str) -> None:
    fit, of, curve = fit_of(name, sample)
    assert curve.curve == pytest.approx(plain_curve(name, fit, 400), rel=1e-9, abs=1e-12)
    assert curve.ln_share == pytest.approx(plain_ln_p(name, fit.params, 400)[of.rank_R.astype(int) - 1], rel=1e-9)
    assert of.n_R @ curve.influence == pytest.approx(0, abs=1e-6), "the fit is where its slopes vanish"
    if fit.status is not Status.ok:
        return
    # A thousandth more of some ranks and less of others: central, so that what is left is of third order.
    moved_R = of.n_R * 1e-3 * np.where(np.arange(len(of.n_R)) % 3 == 0, 1.0, -0.5)
    up, down = (fit_distribution(name, of.rank_R, of.n_R + sign * moved_R, 400) for sign in (1, -1))
    moves = (plain_curve(name, up, 400) - plain_curve(name, down, 400)) / 2
    found = moved_R @ curve.influence @ curve.slopes
    assert found == pytest.approx(moves, rel=1e-4, abs=1e-9)


def test_a_parameter_at_its_edge_does_not_move() -> None:
    fit, _, curve = fit_of("lognormal_full", "heavy")
    assert fit.status is Status.at_bound, "this sample was meant to have no lognormal"
    assert not curve.influence[:, 1].any()
    power, _, alone = fit_of("power_law", "heavy")
    assert curve.curve == pytest.approx(alone.curve, rel=1e-9)
    assert curve.influence[:, 0] == pytest.approx(alone.influence[:, 0], rel=1e-6)
    assert power.loglik == pytest.approx(fit.loglik, rel=1e-12)


def test_a_family_too_steep_for_nodes_is_summed_at_every_rank() -> None:
    """A narrow peak far from rank 1."""
    rank_R = np.arange(200.0, 260)
    sample = RankSample(rank_R, np.rint(1000 * np.exp(-(((rank_R - 230) / 8) ** 2) / 2)) + 1, 3000, (220, 240))
    (fit,) = fit_sample(["lognormal_full"], sample)
    family = FAMILIES[fit.distribution]
    assert not sample.holds_at_nodes(family, np.array(fit.theta)), "a family that nodes miss was meant"
    plain = plain_ln_p("lognormal_full", fit.params, 3000)
    p = np.exp(plain)
    found = rank_curve(fit, sample)
    assert found.curve == pytest.approx([-np.log(p[:220].sum()), -np.log(p[:240].sum()), -p @ plain], rel=1e-9)
    assert found.ln_share == pytest.approx(plain[199:259], rel=1e-9)
