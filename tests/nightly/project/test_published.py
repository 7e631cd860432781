"""Published studies share a store and stay apart, and one fits a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import here


def rows(cwd: Path, store: Path, *words: str) -> list[dict[str, Any]]:
    return list(json.loads(here(*words, "--store", store, "--format", "json", cwd=cwd, check=0).stdout))


def fits(cwd: Path, store: Path, experiment: str) -> dict[int | None, tuple[float, float]]:
    """{k: (R2, slope)} to three digits, cross-entropy under None."""
    found = rows(cwd, store, f"experiment={experiment}", "analyses=[fit]")
    return {row["k"]: (round(row["r2"], 3), round(-row["alpha"], 3)) for row in found}


def test_two_studies_share_a_store_and_stay_apart(cwd: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert len(fits(cwd, tmp_path / "store", "published_gpt2_wikipedia")) == 6
        assert len(fits(cwd, tmp_path / "store", "published_pythia_wikipedia")) == 2


def test_the_printed_study_fits_the_terminal(cwd: Path, tmp_path: Path) -> None:
    printed = here("experiment=published_gpt2_wikipedia", "--store", tmp_path / "store", cwd=cwd, check=0).stdout
    tables = [line for line in printed.splitlines() if line.startswith(" ")]
    assert max(map(len, tables)) <= 82
    assert "document sampling is unknown" in printed


def test_the_gemstones_reach_the_published_objective(cwd: Path, tmp_path: Path) -> None:
    (law,) = rows(cwd, tmp_path / "store", "experiment=published_gemstones", "resamples=1")
    assert (law["form"], law["n_points"], law["n_runs"]) == ("chinchilla", 770, 22)
    assert law["objective"] == pytest.approx(0.00069233, abs=5e-9)
    assert law["E"] == pytest.approx(1.9457, abs=2e-3)
