"""Noise towards the vocabulary: the R2 that a drawn law shows lies where the model of the noise says, and a broken one
below."""

import numpy as np
import pytest

from rbpx.analyses.regimes.noise import AtK, noise_model, predict_noise
from rbpx.laws.intervals.estimate import document_weights
from rbpx.laws.numeric import line
from tests.support.draws import few_or_all, plausible

S = np.geomspace(1e3, 1e6, 7)
D, T, ALPHA = 80, 250, 0.12
LEVEL = {10: 0.4, 1000: 0.02, 3000: 0.002}  # -ln RBP_k at the mean size


def draw(rng: np.random.Generator, alpha_at: dict[int, float]) -> list[AtK]:
    """Misses of documents that differ in how hard they are (beta-binomial), shared by the sizes."""
    z_N, weights_BD = np.log(S) - np.log(S).mean(), document_weights(D, 200, int(rng.integers(2**31)))
    series = []
    for k, level in LEVEL.items():
        hard_D = rng.gamma(4, 1 / 4, D)
        y_N = level * np.exp(-alpha_at[k] * z_N + rng.normal(0, 0.01, len(S)))
        misses_DN = rng.binomial(T, np.minimum(-np.expm1(-y_N) * hard_D[:, None], 1.0))
        share_N, share_BN = misses_DN.sum(axis=0) / (D * T), weights_BD @ misses_DN / (D * T)
        with np.errstate(divide="ignore"):
            ln_y_N, ln_y_BN = np.log(-np.log1p(-share_N)), np.log(-np.log1p(-share_BN))
        ln_y_BN = ln_y_BN[np.isfinite(ln_y_BN).all(axis=1)]
        alpha = r2 = None
        if np.isfinite(ln_y_N).all():
            alpha = float(line(np.log(S), ln_y_N)[1])
            r2 = float(np.corrcoef(np.log(S), ln_y_N)[0, 1] ** 2)
        series.append(AtK(ln_y_N, ln_y_BN, alpha, r2, 0.01, k == 10))
    return series


@few_or_all(60, 400)
def test_the_measured_r2_of_a_law_that_goes_on_is_as_low_as_noise_alone_makes_it(n_draws: int) -> None:
    rng, within, n_known, n_tokens = np.random.default_rng(4), 0, 0, []
    for _ in range(n_draws):
        series = draw(rng, dict.fromkeys(LEVEL, ALPHA))
        model = noise_model(S.tolist(), D * T, series)
        assert model is not None
        for at in series[1:]:
            said = predict_noise(model, at)
            assert said is not None
            if at.r2 is not None and said.r2.lo is not None and said.r2.hi is not None:
                within, n_known = within + (said.r2.lo <= at.r2 <= said.r2.hi), n_known + 1
        n_tokens.append([said.n_tokens for said in (predict_noise(model, at) for at in series) if said is not None])
    assert plausible(within, n_known)
    few, _, many = np.median(np.array(n_tokens, dtype=float), axis=0)
    assert many / few == pytest.approx(LEVEL[10] / LEVEL[3000], rel=0.5)  # as misses grow rarer, tokens grow


def test_a_law_that_stops_is_told_from_noise_and_its_noise_explains_little() -> None:
    rng = np.random.default_rng(5)
    stopped = [draw(rng, {10: ALPHA, 1000: 0.0, 3000: ALPHA}) for _ in range(20)]
    models = [noise_model(S.tolist(), D * T, series) for series in stopped]
    said = [predict_noise(model, series[1]) for model, series in zip(models, stopped, strict=True) if model is not None]
    assert sum(each is not None and each.is_noise is False for each in said) >= 18
    assert np.median([each.explained for each in said if each is not None and each.explained is not None]) < 0.2


def test_nothing_is_said_where_no_law_stands_or_nothing_is_missed() -> None:
    series = draw(np.random.default_rng(6), dict.fromkeys(LEVEL, ALPHA))
    none = [AtK(at.ln_y_N, at.ln_y_BN, at.alpha, at.r2, at.models_sd, False) for at in series]
    assert noise_model(S.tolist(), D * T, none) is None
    model = noise_model(S.tolist(), D * T, series)
    assert model is not None
    empty = AtK(np.full(7, -np.inf), np.zeros((0, 7)), None, None, 0.0, False)
    assert predict_noise(model, empty) is None
