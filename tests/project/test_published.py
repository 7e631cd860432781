"""The published laws come out of the published numbers, through the commands that anyone would type.

Table 2's column of GPT-2 is what the test of `record` finds; the surface of the Gemstones is held among the laws.
"""

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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by all studies, which stay apart."""
    return tmp_path_factory.mktemp("published") / "store"


def rows(cwd: Path, store: Path, *words: str) -> list[dict[str, Any]]:
    return list(json.loads(here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


def test_the_released_windows_of_gpt2_are_far_from_independent(cwd: Path, store: Path) -> None:
    found = rows(cwd, store, "experiment=published_gpt2_emergence", "k=1")
    laws = [row for row in found if row["kind"] == "law"]
    assert [row["n"] for row in laws] == [1, 5, 10, 50, 100]
    assert [round(row["alpha"], 3) for row in laws] == pytest.approx([0.056, 0.049, 0.032, 0.001, 0.000])
    (joint,) = [row for row in found if row["kind"] == "joint law"]
    assert round(joint["r2"], 2) == 0.10
    windows = [row for row in found if row["kind"] == "windows" and row["size"] == "gpt2" and row["n"] == 10]
    assert windows[0]["p"] == pytest.approx(0.0029894881555312014)
    assert windows[0]["p_independent"] == pytest.approx(0.416065**10)


def test_the_pythia_rows_of_table_2_stay_apart_from_those_of_gpt2(cwd: Path, store: Path) -> None:
    found = rows(cwd, store, "experiment=published_pythia_wikipedia", "analyses=[fit]")
    fits = {row["k"]: (round(row["r2"], 3), round(-row["alpha"], 3)) for row in found}
    assert fits == {None: (0.993, -0.087), 1: (0.992, -0.079)}
    assert len(found) == 2


def test_the_ten_published_lognormals_derive_the_published_slopes() -> None:
    """Figure 8b: derived cross-entropy -0.061 (R2 0.992), -ln RBP_1 -0.080 (0.991); exact sums bend the latter."""
    with (PUBLISHED / "pythia_wikipedia_lognormal.csv").open() as file:
        rows = list(csv.DictReader(file))
    S, mu, sigma = ([float(row[name]) for row in rows] for name in ("non_embedding_params", "mu", "sigma"))
    said = derived_approximation(mu, sigma)
    rbp_1, entropy = (fit_power_law(S, each) for each in said)
    assert (rbp_1.alpha.value, rbp_1.r2.value) == (pytest.approx(0.080, abs=5e-4), pytest.approx(0.991, abs=5e-4))
    assert (entropy.alpha.value, entropy.r2.value) == (pytest.approx(0.061, abs=6e-4), pytest.approx(0.992, abs=5e-4))
    exact = derived(mu, sigma, 50_304)
    assert fit_power_law(S, exact.neg_ln_rbp_1).alpha.value == pytest.approx(0.0751, abs=5e-5)
    assert fit_power_law(S, exact.cross_entropy_nats).alpha.value == pytest.approx(0.0616, abs=5e-5)


def test_the_cited_tables_are_the_reference() -> None:
    if not (SHARED / "reference").is_dir():
        pytest.skip(f"{SHARED / 'reference'} is not there to compare with")
    for name in ("paper_table1_k_law", "paper_table2_size_law", "figure7_emergence", "gemstones_checkpoints"):
        assert (PUBLISHED / f"{name}.csv").read_text() == (SHARED / "reference" / f"{name}.csv").read_text(), name
