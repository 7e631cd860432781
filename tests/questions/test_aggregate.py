"""Hits learned from outcomes: held against enumeration, against scipy, and against coefficients that were put in."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import t as student_t

from rbpx.laws.counts.chances import (
    blocks_of,
    derivatives,
    hit_given_outcome,
    score_chances,
)
from rbpx.laws.counts.chances import learn as learn_blocks
from rbpx.status import Status

THETA = np.array([0.8, 1.2, -0.7])


def tokens(rng: Any, Q: int, N: int, theta: Any = THETA) -> tuple[Any, Any]:
    """Features with a constant, and hits drawn from the logistic model."""
    x_QNF = np.concatenate([np.ones((Q, N, 1)), rng.normal(size=(Q, N, 2))], axis=2)
    return x_QNF, rng.random((Q, N)) < expit(x_QNF @ theta)


def learn(x_QNF: Any, passed_Q: Any, start_F: Any = None) -> Any:
    return learn_blocks(blocks_of(x_QNF, passed_Q), start_F)


def ln_likelihood(theta: Any, x_QNF: Any, passed_Q: Any) -> float:
    """Sum over passes of ln prod eta and over failures of ln(1 - prod eta)."""
    ln_pass_Q = -np.logaddexp(0, -(x_QNF @ theta)).sum(axis=1)
    return float(ln_pass_Q[passed_Q].sum() + np.log(-np.expm1(ln_pass_Q[~passed_Q])).sum())


# ------------------------------------------------------------------------------------------------ the weights


@pytest.mark.parametrize("eta", [[0.3], [0.2, 0.9], [0.5, 0.05, 0.97], [0.1, 0.2, 0.3, 0.4]], ids=len)
def test_the_weights_are_bayes_over_all_labels_of_the_sequence(eta: list[float]) -> None:
    joint = {}
    for labels in product((0, 1), repeat=len(eta)):
        joint[labels] = float(np.prod([e if y else 1 - e for e, y in zip(eta, labels, strict=True)]))
    for passed in (False, True):
        these = {labels: p for labels, p in joint.items() if all(labels) == passed}
        for i in range(len(eta)):
            by_hand = sum(p for labels, p in these.items() if labels[i]) / sum(these.values())
            assert hit_given_outcome([eta], [passed])[0, i] == pytest.approx(by_hand, abs=1e-14)


def test_sure_tokens_have_sure_weights() -> None:
    assert hit_given_outcome([[0.0, 0.5]], [False]).tolist() == [[0.0, 0.5]]
    assert hit_given_outcome([[1.0, 0.5]], [False]).tolist() == [[1.0, 0.0]]


# ------------------------------------------------------------------------------------------------- the learner


@pytest.mark.parametrize("N", [1, 3, 8])
def test_the_fixed_point_is_the_maximum_that_scipy_finds(N: int) -> None:
    x, hit = tokens(np.random.default_rng(N), 3000, N)
    passed = hit.all(axis=1)

    def loss(theta: Any) -> float:
        return -ln_likelihood(theta, x, passed)

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-4})
    learned = learn(x, passed)
    np.testing.assert_allclose(learned, best.x, atol=2e-4)
    assert loss(learned) <= best.fun + 1e-7
    assert learn(x, passed, learned + np.array([0.05, -0.1, 0.08])) == pytest.approx(learned, rel=1e-8)


@pytest.mark.parametrize("N", [1, 3])
@pytest.mark.parametrize("far", [0.0, 400.0, -400.0, -800.0])
def test_the_slopes_are_those_of_the_likelihood_however_far_the_chances_are(N: int, far: float) -> None:
    """Differences of the plain likelihood; far below 0 the product overflows."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, N, 2))
    x[:, :, 0] = 1.0
    passed, theta = rng.random(60) < 0.5, np.array([far, 0.3])
    value, score, information = derivatives(blocks_of(x, passed), theta)
    assert np.linalg.eigvalsh(information).min() >= -1e-9 * np.abs(information).max()
    if far > 0:  # then a failure has the chance sum exp(-z), which 1 - prod eta rounds to 0
        assert value == pytest.approx(float(logsumexp(-(x @ theta)[~passed], axis=1).sum()), rel=1e-12)
        return
    assert value == pytest.approx(ln_likelihood(theta, x, passed), rel=1e-12)
    steps = 1e-5 * np.eye(2)
    plain = [(ln_likelihood(theta + h, x, passed) - ln_likelihood(theta - h, x, passed)) / 2e-5 for h in steps]
    assert score == pytest.approx(plain, rel=1e-5, abs=1e-3)


def test_a_learner_of_nothing_says_so() -> None:
    x, hit = tokens(np.random.default_rng(1), 50, 3)
    for passed in (np.zeros(50, bool), np.ones(50, bool)):
        assert learn(x, passed) is Status.not_positive
    twice = learn(np.concatenate([x, x[:, :, 1:2]], axis=2), hit.all(axis=1))
    assert twice is Status.not_converged


# ------------------------------------------------------------------------------------------------ the judgement


def test_the_judgement_and_its_intervals_are_what_counting_pairs_of_tokens_gives() -> None:
    """Intervals by what each of 12 documents does to a score, of which Student's t has 11 degrees of freedom."""
    rng = np.random.default_rng(2)
    z, hit = rng.integers(-3, 4, 120) / 2, rng.random(120) < 0.4
    judged, p = score_chances(z, hit, np.arange(120) // 10), expit(z)
    wins_HM = (z[hit][:, None] > z[~hit]) + (z[hit][:, None] == z[~hit]) / 2
    of_pairs = np.zeros(120)
    of_pairs[hit] = (wins_HM.mean(axis=1) - wins_HM.mean()) / hit.sum()
    of_pairs[~hit] = (wins_HM.mean(axis=0) - wins_HM.mean()) / (~hit).sum()
    losses, excess = -np.log(np.where(hit, p, 1 - p)), p - hit
    expected = {"auc": (wins_HM.mean(), of_pairs)}
    expected |= {name: (v.mean(), (v - v.mean()) / 120) for name, v in (("log_loss_nats", losses), ("excess", excess))}
    for name, (value, influence) in expected.items():
        half = student_t.ppf(0.975, 11) * np.sqrt(12 / 11 * np.sum(influence.reshape(12, 10).sum(axis=1) ** 2))
        found = judged[name]
        assert (found.value, found.lo, found.hi) == pytest.approx((value, value - half, value + half), rel=1e-9)
    assert score_chances(z, np.ones(120, bool), np.arange(120))["auc"].value is None
    alone = score_chances(z, hit, np.zeros(120, int))["excess"]
    assert (alone.lo, alone.hi) == (None, None)
