"""Exponents of cross-entropy and RBP beside each other, against plain regressions."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.asking import ask
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, write_store


def test_a_drawn_family_has_the_exponents_of_its_tokens(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=4, token_DT=np.tile(np.arange(60) % 3, (40, 1)))
    (pair,) = ask(store, "exponents", resamples=40).of_kind("pair")
    S, loss, hits = [], [], []
    for run in sorted((store.root / "runs").glob("[!_]*")):
        tokens = columns_of(run, "tokens")
        S.append(float(run.name.removeprefix("synthetic")))
        loss.append(-float(tokens["logprob"].mean()))
        hits.append([np.mean(tokens["greater"] < k) for k in (1, 10, 100)])
    alphas = -np.polyfit(np.log(S), np.log(np.column_stack([loss, -np.log(hits)])), 1)[0]
    drift = np.polyfit(np.log([1, 10, 100]), alphas[1:], 1)[0]
    assert pair["alpha_cross_entropy"] == pytest.approx(alphas[0], rel=1e-6)
    assert pair["difference"] == pytest.approx(alphas[1] - alphas[0], rel=1e-6, abs=1e-9)
    assert pair["drift"] == pytest.approx(drift, rel=1e-6, abs=1e-9)
    assert pair["difference_lo"] < pair["difference"] < pair["difference_hi"]
    assert pair["drift_lo"] <= 0 <= pair["drift_hi"]  # one exponent at every k is what was drawn


def test_the_drift_is_that_of_all_k_and_not_of_those_that_agree(tmp_path: Path) -> None:
    store, ks = tmp_path / "store", [1, 2, 5, 20, 50, 100]
    write_store(store, Truth(), seed=5, n_tokens=100, late=Truth(alpha=0.3, beta=0.15), cut=50)
    (pair,) = ask(store, "exponents", k=ks, resamples=40).of_kind("pair")
    assert pair["drift"] == pytest.approx(np.polyfit(np.log(ks), [pair[f"alpha_{k}"] for k in ks], 1)[0])
    assert pair["drift_lo"] < pair["drift"] < pair["drift_hi"]
