"""One exponent of several families, imported and drawn: tables, rows and fits against the plain mathematics."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from rbpx.laws.families.pooled import fit_pooled
from rbpx.store.sql import connected_once
from rbpx.store.store import Store
from tests.support.asking import Asked, ask, imported
from tests.support.synthetic import Truth, write_store

S = [10**7, 4 * 10**7, 2 * 10**8, 10**9, 6 * 10**9]
WAVE = np.array([0.02, -0.02, -0.03, 0.01, 0.02])


def values(C: float, seed: int, wave: np.ndarray = WAVE, scatter: float = 0.0005) -> list[float]:
    """Cross-entropies of one training: a law that is off by the same wave at every training of a size."""
    return (C * np.array(S) ** -0.1 * np.exp(wave + scatter * np.random.default_rng(seed).normal(size=5))).tolist()


FAMILIES = {"one": values(15.0, 1), "again": values(15.1, 2)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two trainings of five sizes on one text, one of them on another text too."""
    rows = [("wikipedia", family, *pair) for family, y in FAMILIES.items() for pair in zip(S, y, strict=True)]
    rows += [("c4", "one", *pair) for pair in zip(S, values(9.0, 3), strict=True)]
    lines = [f"{text},{family},{size},{nats!r},1,{float(np.exp(-nats / 3))!r}" for text, family, size, nats in rows]
    table = "\n".join(["dataset,family,S,cross_entropy_nats,k,rbp", *lines])
    store = imported(tmp_path_factory.mktemp("pooled") / "store", table, family=None, ties="optimistic")
    with connected_once():
        yield store


@pytest.fixture(scope="module")
def asked(store: Path) -> Asked:
    return ask(store, "exponents", ties="optimistic")


def test_families_on_one_text_are_pooled_and_those_on_another_left_out(store: Path, asked: Asked) -> None:
    found = asked.of_kind("pooled")
    what = [(row["law"], row["params"]["loss"], row["k"], row["method"]) for row in found]
    losses = (("rbp", 1), ("cross_entropy", None))
    assert what == [("pooled", *loss, method) for loss in losses for method in ("ols", "offset")]
    assert {(row["family"], row["dataset"]) for row in found} == {("again + one", "wikipedia")}
    assert {record["fit_id"] for record in Store(store).records("fits")} == {row["fit_id"] for row in found}


def test_the_pooled_exponent_and_the_misfit_are_those_of_the_points(asked: Asked) -> None:
    (found,) = [row for row in asked.of_kind("pooled") if (row["k"], row["method"]) == (None, "ols")]
    ln_y, x = np.log(list(FAMILIES.values())), np.log(S)
    line = linregress(x, ln_y.mean(axis=0))
    assert (found["alpha"], found["alpha_stderr"]) == pytest.approx((-line.slope, line.stderr), rel=1e-6)
    assert found["status"] == "bends"
    assert found["params"]["reasons"] == ["misfit"]
    left = ln_y[0] - ln_y[1]
    pure = linregress(x, left)
    difference = left - pure.intercept - pure.slope * x
    assert found["params"]["replicates"]["sd_rest"] == pytest.approx(np.sqrt(difference @ difference / 2 / 3), rel=1e-6)
    assert found["params"]["effective_families"] < 1.01


def test_the_table_says_misfit_and_fits_80_columns(asked: Asked) -> None:
    shown = asked.table()
    assert "again + one (them): one exponent" in shown
    assert "2 families whose residuals correlate by 1.00 count as 1.00" in shown
    assert "y = C · S^-alpha: misfit, not scatter: trainings of one size differ by 0.000" in shown
    assert max(len(line) for line in shown.splitlines() if line.startswith(" ")) <= 80


def test_one_family_a_text_has_nothing_to_pool(store: Path) -> None:
    assert {row["kind"] for row in ask(store, "exponents", ties="optimistic", dataset="c4").rows} == {"pair", "mean"}


def test_measured_families_share_their_documents(tmp_path: Path) -> None:
    """Drawn families on one sample of documents: as many intervals as laws, with what documents add."""
    for family, seed in (("drawn", 1), ("other", 2)):
        write_store(tmp_path / "store", Truth(scatter=0.0), seed=seed, family=family)
    (found, *_) = ask(tmp_path / "store", "exponents", k=10, resamples=60).of_kind("pooled")
    assert found["k"] == 10
    assert found["family"] == "drawn + other"
    params = found["params"]
    models = fit_pooled(params["S"], params["y"])
    assert models["alpha_lo"] is not None
    assert models["alpha_hi"] is not None
    assert found["alpha"] == pytest.approx(models["alpha"], rel=1e-9)
    assert found["alpha_hi"] - found["alpha_lo"] >= (models["alpha_hi"] - models["alpha_lo"]) * (1 - 1e-9)
