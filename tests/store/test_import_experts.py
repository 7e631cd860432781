"""Models with experts, imported with the parameters that a token uses: what S and C count, and which size predicts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.asking import imported
from tests.support.composed import here, rows_of

SPARSE = 4  # S is so many times the active parameters of the models with experts


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Losses 3 + 400 N^-0.3 + 400 D^-0.3 of models with N active parameters, 4 N in all."""
    rows = [
        {
            "model": f"m{N:g}-{D:g}",
            "S": SPARSE * N,
            "active_params": N,
            "D": D,
            "loss_nats": 3 + 400 * (N**-0.3 + D**-0.3),
        }
        for N in (1e7, 2e7, 4e7, 8e7, 16e7)
        for D in (2e8, 8e8, 32e8)
    ]
    return imported(tmp_path / "store", rows, family="moe", dataset="c4")


def asked(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    return rows_of(*words, "--details", "--store", store, cwd=cwd)


def test_the_optimum_of_a_budget_counts_flops_of_the_active_parameters(store: Path, cwd: Path) -> None:
    # C = 6 N D, and the loss falls alike in N and in D, so that N = D = sqrt(C / 6) is best; S is four times N.
    words = ("surface", "flops=[1e18]", "form=chinchilla", "laws=[cross_entropy]", "resamples=1")
    best = (1e18 / 6) ** 0.5
    for size_by, factor in (("total", SPARSE), ("active", 1)):
        (row,) = asked(store, cwd, *words, f"size_by={size_by}")
        (optimum,) = row["params"]["optima"]
        assert (optimum["S"], optimum["D"]) == pytest.approx((factor * best, best), rel=0.05)


def test_a_law_in_all_parameters_is_exact_where_losses_fall_in_them(tmp_path: Path, cwd: Path) -> None:
    """Losses 400 N^-0.3 with N all parameters: exact in N, and no power law in S."""
    S = np.array([1e4, 1e5, 1e6, 1e7, 1e8])
    N = S + 500 * np.sqrt(S)
    losses = {"model": [f"m{at:g}" for at in S], "S": S, "total_params": N.round(), "loss_nats": 400 * N**-0.3}
    store = imported(tmp_path / "store", losses, family="small", dataset="c4")
    by_S, *_ = asked(store, cwd, "fit", "laws=[cross_entropy]")
    by_N, *_ = asked(store, cwd, "fit", "laws=[cross_entropy]", "size_by=with_embeddings")
    np.testing.assert_allclose(by_N["params"]["S"], np.round(N))
    assert by_N["alpha"] == pytest.approx(0.3, abs=1e-6)
    assert by_S["status"] == "bends"


def test_all_parameters_that_are_not_known_are_named(store: Path, cwd: Path) -> None:
    refused = here("fit", "size_by=with_embeddings", "--store", store, cwd=cwd, check=2).stderr
    assert "size_by=with_embeddings: all parameters of moe " in refused
    assert "14 other runs" in refused
