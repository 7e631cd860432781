"""The verb pooled on imported and on drawn families: tables, rows and fits against the plain mathematics."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress

from rbpx.laws.families.pooled import fit_pooled
from tests.support.commands import Answer, here
from tests.support.synthetic import Truth, write_store

S = [10**7, 4 * 10**7, 2 * 10**8, 10**9, 6 * 10**9]
WAVE = np.array([0.02, -0.02, -0.03, 0.01, 0.02])


def values(C: float, seed: int, wave: np.ndarray = WAVE, scatter: float = 0.0005) -> list[float]:
    """Cross-entropies of one training: a law that is off by the same wave at every training of a size."""
    return (C * np.array(S) ** -0.1 * np.exp(wave + scatter * np.random.default_rng(seed).normal(size=5))).tolist()


FAMILIES = {"one": values(15.0, 1), "again": values(15.1, 2)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trainings of five sizes on one text, one of them on another text too."""
    folder = tmp_path_factory.mktemp("pooled")
    rows = [("wikipedia", family, *pair) for family, y in FAMILIES.items() for pair in zip(S, y, strict=True)]
    rows += [("c4", "one", *pair) for pair in zip(S, values(9.0, 3), strict=True)]
    with (folder / "theirs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["dataset", "family", "non_embedding_params", "cross_entropy_nats", "model", "size", "k", "rbp"]
        )
        for dataset, family, size, nats in rows:
            writer.writerow([dataset, family, size, nats, f"{family}-{size}", size, 1, np.exp(-nats / 3)])
    words = ["import", folder / "theirs.csv", "source=them", "ties=optimistic"]
    here(*words, "--store", folder / "store", cwd=tmp_path_factory.mktemp("empty"), check=0)
    return folder / "store"


def ask(store: Path, cwd: Path, *words: str, check: int = 0) -> Answer:
    return here("pooled", *words, "--store", store, cwd=cwd, check=check)


def rows(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(store, cwd, *words, "--format", "json").stdout)
    return found


def test_families_on_one_text_are_pooled_and_those_on_another_left_out(store: Path, cwd: Path) -> None:
    found = rows(store, cwd, "ties=optimistic")
    what = [(row["law"], row["params"]["loss"], row["k"], row["method"]) for row in found]
    losses = (("rbp", 1), ("cross_entropy", None))
    assert what == [("pooled", *loss, method) for loss in losses for method in ("ols", "offset")]
    assert {(row["family"], row["dataset"]) for row in found} == {("again + one", "wikipedia")}
    kept = here("sql", "FROM fits", "--store", store, "--format", "json", cwd=cwd, check=0).stdout
    assert {row["fit_id"] for row in json.loads(kept)} == {row["fit_id"] for row in found}


def test_the_pooled_exponent_and_the_misfit_are_those_of_the_points(store: Path, cwd: Path) -> None:
    (found,) = [row for row in rows(store, cwd, "ties=optimistic") if (row["k"], row["method"]) == (None, "ols")]
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


def test_the_table_says_misfit_and_fits_80_columns(store: Path, cwd: Path) -> None:
    shown = ask(store, cwd, "ties=optimistic", "--plot").stdout
    assert "again + one on wikipedia (them): one exponent" in shown
    assert "2 families whose residuals correlate by 1.00 count as 1.00" in shown
    assert "y = C · S^-alpha: misfit, not scatter: trainings of one size differ by 0.000" in shown
    assert shown.count("ln y - ln law") == 2
    table = shown[: shown.index("exponents may")].splitlines()
    assert max(map(len, table)) <= 80


def test_one_family_a_text_has_nothing_to_pool(store: Path, cwd: Path) -> None:
    answer = ask(store, cwd, "ties=optimistic", "dataset=c4", check=2)
    assert "no two families in store=" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_measured_families_share_their_documents(tmp_path: Path, cwd: Path) -> None:
    """Drawn families on one sample of documents: as many intervals as laws, with what documents add."""
    for family, seed in (("drawn", 1), ("other", 2)):
        write_store(tmp_path / "store", Truth(scatter=0.0), seed=seed, family=family)
    (found, *_) = rows(tmp_path / "store", cwd, "k=10", "resamples=60")
    assert found["k"] == 10
    assert found["family"] == "drawn + other"
    params = found["params"]
    models = fit_pooled(params["S"], params["y"])
    assert models.alpha_lo is not None
    assert models.alpha_hi is not None
    assert found["alpha"] == pytest.approx(models.alpha, rel=1e-9)
    assert found["alpha_hi"] - found["alpha_lo"] >= (models.alpha_hi - models.alpha_lo) * (1 - 1e-9)


def test_the_report_has_the_residuals_of_every_family(store: Path, cwd: Path, tmp_path: Path) -> None:
    written = tmp_path / "pooled.md"
    here(
        "report",
        "ties=optimistic",
        "dataset=wikipedia",
        "--format",
        "md",
        f"output={written}",
        "--store",
        store,
        cwd=cwd,
        check=0,
    )
    text = written.read_text(encoding="utf-8")
    assert "One exponent for several families, again + one" in text
    assert "misfit, not scatter" in text
