"""One law for all k on drawn ranks, where it holds and where it does not: what its tests reject, and how often."""

import numpy as np
import pytest
from scipy.stats import norm

from rbpx.laws.in_k import JointLaw, KForm, fit_joint_law
from rbpx.laws.intervals.estimate import document_weights
from tests.support.draws import few_or_all, plausible

K = (1, 3, 10, 30, 100)
S = np.geomspace(1e3, 1e6, 6)
ALPHA, KAPPA, LEVEL = 0.1, 0.35, 3.0


def draw(rng: np.random.Generator, drift: float = 0.0, bend: float = 0.0) -> JointLaw:
    """-ln RBP_k of 40 documents of 60 tokens, read by 6 models that scatter about their law alike at all k."""
    z_S, x_K = np.log(S) - np.log(S).mean(), np.log(K) - np.log(K).mean()
    luck_DT = 0.5 * rng.normal(size=(40, 1)) + 0.75**0.5 * rng.normal(size=(40, 60))
    weights_BD = document_weights(40, 60, int(rng.integers(2**31)))
    y, y_B = [], []
    for z in z_S:
        u_DT = norm.cdf(0.9 * luck_DT + (1 - 0.81) ** 0.5 * rng.normal(size=luck_DT.shape))
        scatter = rng.normal(0, 0.02)
        ln_y_K = np.log(LEVEL) - ALPHA * 10 - KAPPA * x_K - (ALPHA + drift * x_K) * z + bend * x_K**2 + scatter
        hits_DK = (u_DT[:, :, None] <= np.exp(-np.exp(ln_y_K))).sum(axis=1)
        y.append(-np.log(hits_DK.sum(axis=0) / 2400))
        y_B.append(-np.log(weights_BD @ hits_DK / 2400))
    joint = fit_joint_law(S.tolist(), K, np.array(y), np.array(y_B))
    assert joint is not None
    return joint


def holds(estimate: object, truth: float) -> bool:
    return bool(estimate.lo <= truth <= estimate.hi)  # type: ignore[attr-defined]


@few_or_all(24, 400)
@pytest.mark.parametrize("drift", [0.0, 0.02])
def test_intervals_hold_the_drift_the_bend_and_both_exponents(n_draws: int, drift: float) -> None:
    rng, covered = np.random.default_rng(5), dict.fromkeys(("drift", "bend", "kappa", "alpha"), 0)
    whole = 0
    for _ in range(n_draws):
        joint = draw(rng, drift)
        if joint.of_range == K:  # the numbers of a narrower range are of other truths
            covered["drift"] += holds(joint.drift, drift)
            covered["bend"] += joint.bend is not None and holds(joint.bend, 0.0)
            covered["kappa"] += holds(joint.kappa, KAPPA)
            covered["alpha"] += (joint.alpha.alpha_lo or 9) <= ALPHA <= (joint.alpha.alpha_hi or 0)
            whole += 1
    assert whole >= 0.75 * n_draws
    assert all(plausible(n, whole) for n in covered.values()), (covered, whole)


@few_or_all(24, 400)
def test_one_law_is_seldom_rejected_where_it_holds(n_draws: int) -> None:
    rng = np.random.default_rng(6)
    joints = [draw(rng) for _ in range(n_draws)]
    assert plausible(sum(joint.holds for joint in joints), n_draws)


@few_or_all(30, 400)
def test_residuals_that_neighbouring_k_share_prefer_no_richer_form(n_draws: int) -> None:
    """On one text, so that only models scatter: with k as independent points a law for each k would win."""
    rng, chosen = np.random.default_rng(10), []
    x_K = np.log(K)
    root_KK = np.linalg.cholesky(np.exp(-np.abs(x_K[:, None] - x_K) / 3.0))
    for _ in range(n_draws):
        law_NK = 1.0 - 0.1 * np.log(S)[:, None] - 0.35 * x_K
        joint = fit_joint_law(
            S.tolist(), K, np.exp(law_NK + 0.03 * rng.normal(size=(len(S), len(K))) @ root_KK.T), None
        )
        assert joint is not None
        chosen.append(min(joint.forms, key=lambda form: form.bic).form)
    assert sum(form in (KForm.joint, KForm.drifting) for form in chosen) > 0.8 * n_draws


def test_a_bend_and_a_drift_are_found_and_prefer_another_form() -> None:
    rng = np.random.default_rng(7)
    for drift, bend, form in ((0.03, 0.0, KForm.drifting), (0.0, -0.05, KForm.levels)):
        joint = draw(rng, drift, bend)
        assert not joint.holds
        assert min(joint.forms, key=lambda each: each.bic).form is form


def test_the_numbers_are_those_of_plain_regressions() -> None:
    joint = draw(np.random.default_rng(8))
    assert joint.of_range == K
    y_NK = np.exp(-0.1 * np.log(S)[:, None] - 0.3 * np.log(K)) * 5
    noisy_NK = y_NK * np.exp(np.random.default_rng(9).normal(0, 0.05, y_NK.shape))
    fit = fit_joint_law(S.tolist(), K, noisy_NK, None)
    assert fit is not None
    x_NK, z_NK = np.broadcast_arrays(np.log(K) - np.log(K).mean(), np.log(S)[:, None] - np.log(S).mean())
    design = np.column_stack([np.ones(x_NK.size), x_NK.ravel(), z_NK.ravel(), (x_NK * z_NK).ravel()])
    plain = -np.linalg.lstsq(design, np.log(noisy_NK).ravel(), rcond=None)[0][1:]
    assert [fit.kappa.value, fit.alpha.alpha, fit.drift.value] == pytest.approx(plain.tolist(), rel=1e-9)
    close = fit_joint_law(S.tolist(), K, y_NK * np.exp(np.random.default_rng(9).normal(0, 1e-6, y_NK.shape)), None)
    assert close is not None
    assert (close.alpha.alpha, close.kappa.value) == (pytest.approx(0.1, abs=1e-5), pytest.approx(0.3, abs=1e-5))
    assert close.C == pytest.approx(5, rel=1e-4)


def test_too_few_sizes_or_k_and_shares_of_one_have_no_law() -> None:
    y_NK = np.exp(-0.1 * np.log(S)[:, None] - 0.3 * np.log(K))
    assert fit_joint_law(S[:2].tolist(), K, y_NK[:2], None) is None
    assert fit_joint_law(S.tolist(), K[:2], y_NK[:, :2], None) is None
    y_NK[0, -1] = 0.0
    assert fit_joint_law(S.tolist(), K, y_NK, None) is None
