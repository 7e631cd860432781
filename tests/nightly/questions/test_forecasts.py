"""Forecasts of trainings, of one text of several, and of two stores that are merged, by real commands."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.commands import Answer, here
from tests.support.synthetic import TrueSurface, Truth, write_store, write_surface

LAWS = ("laws=[rbp,cross_entropy]", "k=[1,10]", "resamples=20")


def register(store: Path, cwd: Path, name: str, *words: str, check: int = 0) -> Answer:
    return here("predict", f"register={name}", *LAWS, *words, "--store", store, cwd=cwd, check=check)


def forecasts(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    answer = here("forecasts", *words, "--store", store, "--format", "json", cwd=cwd, check=0)
    return list(json.loads(answer.stdout))


def file_of(store: Path) -> Path:
    (path,) = store.glob("forecasts/*.json")
    return path


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a forecast of a model that is not there; only for copies."""
    folder = tmp_path_factory.mktemp("registered")
    (folder / "cwd").mkdir()
    store = write_store(folder / "store", Truth(scatter=0.02), seed=3, n_documents=10, n_tokens=30)
    answer = register(store.root, folder / "cwd", "june", "S=1e8")
    assert f"registered 3 predictions as {file_of(store.root).stem}" in answer.stderr
    return store.root


@pytest.fixture
def store(registered: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(registered, tmp_path / "store"))


# -------------------------------------------------------------------------------------------------------------- scores


def test_a_training_is_forecast_by_its_size_and_tokens(tmp_path: Path, cwd: Path) -> None:
    truth = TrueSurface(S=(10_000, 40_000, 160_000), D=(1_000_000, 3_000_000, 9_000_000))
    drawn = {"seed": 1, "n_documents": 8, "n_tokens": 60}
    store = write_surface(tmp_path / "store", truth, **drawn).root
    register(store, cwd, "larger", "S=6.4e5", "D=2.7e7", "laws=cross_entropy")
    write_surface(store, truth, **drawn, pairs=[(640_000, 27_000_000), (640_000, 9_000_000)])
    row, whole = forecasts(store, cwd)
    assert row["outcome"] in ("inside", "outside")
    assert (row["D"], row["size"], whole["n_models"]) == (2.7e7, "640000", 1), (
        "the model of other tokens is another one"
    )
    answer = register(store, cwd, "again", "S=6.4e5", "D=2.7e7", "laws=cross_entropy", check=2)
    assert "is measured on synthetic already" in answer.stderr


def test_several_groups_are_refused_and_narrowed_they_are_not(store: Path, cwd: Path) -> None:
    write_store(store, Truth(), seed=3, n_documents=10, n_tokens=30, dataset="other")
    assert "there are 2" in register(store, cwd, "july", "S=2e8", check=2).stderr
    register(store, cwd, "july", "S=2e8", "dataset=other")
    assert {row.get("dataset") for row in forecasts(store, cwd, "dataset=other")} == {"other", None}


def test_merge_and_gc_keep_forecasts_and_a_name_of_two_stores_stays_two(
    registered: Path, store: Path, tmp_path: Path, cwd: Path
) -> None:
    twin = write_store(tmp_path / "twin", Truth(scatter=0.02), seed=3, n_documents=10, n_tokens=30).root
    register(twin, cwd, "june", "S=2e8")
    answer = here("store", "merge", twin, "--store", store, cwd=cwd, check=0)
    assert "1 forecast" in answer.stderr
    here("store", "gc", "--store", store, cwd=cwd, check=0)
    for run_id in Store(store).run_ids():
        here("store", "rm", run_id, "--store", store, cwd=cwd, check=0)
    assert verify(Store(store)).faults == []
    assert {path.name for path in store.glob("forecasts/*")} == {file_of(registered).name, file_of(twin).name}
    here("store", "merge", registered, "--store", store, cwd=cwd, check=0)
    assert len({row["forecast_id"] for row in forecasts(store, cwd)[:-1]}) == 2
    query = "SELECT count(*) AS n FROM forecasts WHERE name = 'june'"
    assert json.loads(here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout) == [{"n": 6}]
