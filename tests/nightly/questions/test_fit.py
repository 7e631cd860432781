"""Laws where models are measured: one that was trained on, a twin, two sizes, another name, and other texts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import Answer, here
from tests.support.stores import RESAMPLES, Family, build_member, manifests, rank_by_hand, runs_by_size

Fit = dict[str, Any]


def fit(store: Path, cwd: Path, *words: str) -> list[Fit]:
    """The rows of `fit --format json`."""
    answer = here("fit", RESAMPLES, *words, "--store", store, "--format", "json", "--details", cwd=cwd, check=0)
    return list(json.loads(answer.stdout))


def one(rows: list[Fit], law: str, k: int | None = None) -> Fit:
    (found,) = [row for row in rows if row["law"] == law and row["k"] == k]
    return found


def shares(store: Path, k: int, ties: str = "pessimistic", dtype: str = "float32") -> tuple[Any, Any]:
    """(S, RBP_k) of each size, counted from the tokens."""
    runs = runs_by_size(store, dtype).values()
    S = [run["non_embedding_params"] for run in runs]
    return np.array(S), np.array([np.mean(rank_by_hand(run, ties) <= k) for run in runs])


def cross_entropies(store: Path, dtype: str = "float32") -> tuple[Any, Any]:
    runs = runs_by_size(store, dtype).values()
    S = [run["non_embedding_params"] for run in runs]
    return np.array(S), np.array([-np.mean(run["logprob"].astype(np.float64)) for run in runs])


def test_a_family_of_ones_own_narrows_a_fit(own_store: Path, family: Family, cwd: Path) -> None:
    here("measure", *family.words("xs", "s", "m", name="other"), "--store", own_store, cwd=cwd, check=0)
    assert {row["family"] for row in fit(own_store, cwd)} == {"mine", "other"}
    rows = fit(own_store, cwd, "model=hub", "model.family=other")
    assert {(row["family"], row["n_points"]) for row in rows} == {("other", 3)}


def test_the_dataset_narrows_a_fit(own_store: Path, family: Family, cwd: Path) -> None:
    words = ["dataset=pydoc" if word == "dataset=file" else word for word in family.words("xs", "s", "m")]
    here("measure", *words, "limit=4", "--store", own_store, cwd=cwd, check=0)
    assert {row["dataset"] for row in fit(own_store, cwd)} == {"pydoc", "file"}
    assert {row["dataset"] for row in fit(own_store, cwd, "dataset=pydoc")} == {"pydoc"}
    assert {row["dataset"] for row in fit(own_store, cwd, "dataset=file", "dataset.path=unread")} == {"file"}


def test_a_model_that_was_trained_on_enters_once_with_its_newest_run(family: Family, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    folders = dict(family.folders) | {"m": build_member(tmp_path / "m", "m", seed=7)}
    before = Family(folders, family.text)
    here("measure", *before.words(), "--store", store, cwd=cwd, check=0)
    old = {run["run_id"] for run in runs_by_size(store).values()}
    build_member(tmp_path / "m", "m", seed=8)
    here("measure", *before.words(), "--store", store, cwd=cwd, check=0)
    (new,) = set(manifests(store)) - old
    row = one(fit(store, cwd), "cross_entropy")
    assert row["n_points"] == 4
    assert new in row["run_ids"]
    assert len(manifests(store)) == 5


@pytest.fixture(scope="module")
def two_sizes(family: Family, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    place = tmp_path_factory.mktemp("two")
    (place / "cwd").mkdir()
    words = ["run", *family.words("xs", "m"), RESAMPLES, "--store", place / "store"]
    return place / "store", here(*words, cwd=place / "cwd", check=0)


def test_run_with_two_sizes_prints_its_measurements_and_what_a_law_needs(two_sizes: tuple[Path, Answer]) -> None:
    store, answer = two_sizes
    assert "2 sizes (xs, m); a law needs at least 3" in answer.stdout
    for share, y in zip(shares(store, 1)[1], cross_entropies(store)[1], strict=True):
        assert f"{share:.4f}" in answer.stdout
        assert f"{y:.4f}" in answer.stdout
    assert "Scaling laws" not in answer.stdout


def test_two_models_of_the_same_size_are_a_wrong_request(family: Family, cwd: Path, tmp_path: Path) -> None:
    folders = dict(family.folders) | {"twin": build_member(tmp_path / "twin", "m", seed=9)}
    twins = Family(folders, family.text)
    words = ["run", *twins.words("xs", "m", "twin"), RESAMPLES, "--store", tmp_path / "store"]
    answer = here(*words, cwd=cwd)
    assert answer.returncode in (1, 2)
    assert "Traceback" not in answer.stderr
    told = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert sum("two models with S = 14,496" in line for line in told) == 1
