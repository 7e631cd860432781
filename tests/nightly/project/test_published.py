"""The published laws come out of the published numbers, through the commands that anyone would type."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from rbpx.laws.power.law import fit_power_law
from rbpx.laws.ranks.lognormal import derived_approximation
from tests.support.commands import here
from tests.support.places import PUBLISHED, SHARED
from tests.support.singly import derived


def rows(cwd: Path, store: Path, *words: str) -> list[dict[str, Any]]:
    return list(json.loads(here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


def fits(cwd: Path, store: Path, experiment: str) -> dict[int | None, tuple[float, float]]:
    """{k: (R2, slope)} to three digits, cross-entropy under None."""
    found = rows(cwd, store, f"experiment={experiment}", "analyses=[fit]")
    return {row["k"]: (round(row["r2"], 3), round(-row["alpha"], 3)) for row in found}


def test_the_gpt2_column_of_table_2(cwd: Path, tmp_path: Path) -> None:
    found = fits(cwd, tmp_path / "store", "published_gpt2_wikipedia")
    assert found[None] == (0.965, -0.058)
    assert found[1] == (0.983, -0.056)
    assert found[10] == (0.982, -0.093)
    assert found[100] == (0.979, -0.126)
    assert found[10000] == (0.915, 0.090)


def test_the_pythia_rows_of_table_2(cwd: Path, tmp_path: Path) -> None:
    assert fits(cwd, tmp_path / "store", "published_pythia_wikipedia") == {None: (0.993, -0.087), 1: (0.992, -0.079)}


def test_two_studies_share_a_store_and_stay_apart(cwd: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert len(fits(cwd, tmp_path / "store", "published_gpt2_wikipedia")) == 6
        assert len(fits(cwd, tmp_path / "store", "published_pythia_wikipedia")) == 2


def test_the_released_windows_of_gpt2_are_far_from_independent(cwd: Path, tmp_path: Path) -> None:
    found = rows(cwd, tmp_path / "store", "experiment=published_gpt2_emergence", "k=1")
    laws = [row for row in found if row["kind"] == "law"]
    assert [row["n"] for row in laws] == [1, 5, 10, 50, 100]
    assert [round(row["alpha"], 3) for row in laws] == pytest.approx([0.056, 0.049, 0.032, 0.001, 0.000])
    (joint,) = [row for row in found if row["kind"] == "joint law"]
    assert round(joint["r2"], 2) == 0.10
    windows = [row for row in found if row["kind"] == "windows" and row["size"] == "gpt2" and row["n"] == 10]
    assert windows[0]["p"] == pytest.approx(0.0029894881555312014)
    assert windows[0]["p_independent"] == pytest.approx(0.416065**10)


def test_the_gemstones_reach_the_published_objective(cwd: Path, tmp_path: Path) -> None:
    (law,) = rows(cwd, tmp_path / "store", "experiment=published_gemstones", "resamples=1")
    assert (law["form"], law["n_points"], law["n_runs"]) == ("chinchilla", 770, 22)
    assert law["objective"] == pytest.approx(0.00069233, abs=5e-9)
    assert law["E"] == pytest.approx(1.9457, abs=2e-3)


def test_the_printed_study_fits_the_terminal(cwd: Path, tmp_path: Path) -> None:
    printed = here("experiment=published_gpt2_wikipedia", "--store", tmp_path / "store", cwd=cwd, check=0).stdout
    tables = [line for line in printed.splitlines() if line.startswith(" ")]
    assert max(map(len, tables)) <= 82
    assert "document sampling is unknown" in printed


def test_the_ten_published_lognormals_derive_the_published_slopes() -> None:
    """Figure 8b: derived cross-entropy -0.061 (R2 0.992), -ln RBP_1 -0.080 (0.991); exact sums bend the latter."""
    with (PUBLISHED / "pythia_wikipedia_lognormal.csv").open() as file:
        rows = list(csv.DictReader(file))
    S, mu, sigma = ([float(row[name]) for row in rows] for name in ("non_embedding_params", "mu", "sigma"))
    said = derived_approximation(mu, sigma)
    rbp_1, entropy = fit_power_law(S, said.neg_ln_rbp_1), fit_power_law(S, said.cross_entropy_nats)
    assert (rbp_1.alpha, rbp_1.r2) == (pytest.approx(0.080, abs=5e-4), pytest.approx(0.991, abs=5e-4))
    assert (entropy.alpha, entropy.r2) == (pytest.approx(0.061, abs=6e-4), pytest.approx(0.992, abs=5e-4))
    exact = derived(mu, sigma, 50_304)
    assert fit_power_law(S, exact.neg_ln_rbp_1).alpha == pytest.approx(0.0751, abs=5e-5)
    assert fit_power_law(S, exact.cross_entropy_nats).alpha == pytest.approx(0.0616, abs=5e-5)


CITED = ("paper_table1_k_law", "paper_table2_size_law", "figure7_emergence", "gemstones_checkpoints")


@pytest.mark.parametrize("name", CITED)
def test_the_cited_tables_are_the_reference(name: str) -> None:
    reference = SHARED / "reference" / f"{name}.csv"
    if not reference.is_file():
        pytest.skip(f"{reference} is not there to compare with")
    assert (PUBLISHED / f"{name}.csv").read_text() == reference.read_text()
