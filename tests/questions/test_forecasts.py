"""Forecasts: registered before a model is measured, scored when it came, and never changed without being seen."""

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.store.messages import collected_messages
from rbpx.store.store import Store
from tests.support.asking import Asked, Rows, ask, refused
from tests.support.composed import here
from tests.support.damage import faults, say, truncated
from tests.support.filled import SIZES, filled
from tests.support.stores import manifests, runs_by_size
from tests.support.synthetic import Truth, write_store

LAWS: dict[str, Any] = {"laws": ["rbp", "cross_entropy"], "k": [1, 10], "resamples": 20}


def register(store: Path, name: Any, **keys: Any) -> Asked:
    return ask(store, "predict", register=name, **LAWS, **keys)


def forecasts(store: Path) -> Rows:
    return ask(store, "forecasts").rows


def file_of(store: Path) -> Path:
    (path,) = store.glob("forecasts/*.json")
    return path


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a forecast of a model that is not there; only for copies."""
    root = tmp_path_factory.mktemp("registered") / "store"
    store = write_store(root, Truth(scatter=0.02), seed=3, n_documents=10, n_tokens=30)
    asked = register(store.root, "june", S=1e8)
    assert f"registered 3 predictions as {file_of(store.root).stem}" in " ".join(asked.messages)
    return store.root


@pytest.fixture
def store(registered: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(registered, tmp_path / "store"))


# -------------------------------------------------------------------------------------------------------------- scores


def test_a_model_is_forecast_then_measured_then_scored(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", sizes=["xs", "s", "m"]).root
    register(store, "june", S=SIZES["l"])
    answers = {
        (row["law"], row["k"]): row
        for row in ask(store, "predict", S=SIZES["l"], **LAWS).of_kind("prediction")
        if row["method"] == "combined"
    }
    *waiting, whole = forecasts(store)
    assert [row["outcome"] for row in waiting] == ["waiting"] * 3
    assert (whole["n_scored"], whole["coverage"]) == (0, None)

    filled(store, sizes=["l"])
    *scored, whole = forecasts(store)
    tokens = runs_by_size(store)["l"]
    rank = tokens["greater"] + tokens["ties"] + 1
    by_hand = {("rbp", k): -math.log(np.mean(rank <= k)) for k in (1, 10)}
    by_hand["cross_entropy", None] = -float(np.mean(tokens["logprob"], dtype=float))
    assert len(scored) == 3
    for row in scored:
        of, answer = (row["law"], row["k"]), answers[row["law"], row["k"]]
        assert [row[name] for name in ("y", "lo", "hi")] == [answer[name] for name in ("y", "lo", "hi")]
        assert row["measured"] == pytest.approx(by_hand[of], rel=1e-9)
        assert (row["outcome"] == "inside") == (row["lo"] <= by_hand[of] <= row["hi"])
        assert row["size"] == "l"
    held = sum(row["outcome"] == "inside" for row in scored)
    assert (whole["n_scored"], whole["n_models"], whole["coverage"]) == (3, 1, pytest.approx(held / 3))


def test_a_model_that_was_there_before_does_not_count(store: Path, tmp_path: Path, cwd: Path) -> None:
    """The drawn runs say that they were measured when they were written: one hour before, or after."""
    other = write_store(tmp_path / "other", Truth(S=(100_000_000,)), seed=4, n_documents=10, n_tokens=30)
    before = write_store(tmp_path / "before", Truth(S=(100_000_000,)), seed=4, n_documents=10, n_tokens=30)
    (run,) = before.run_ids()
    say(before.run_folder(run) / "manifest.json", started_at="2020-01-01T00:00:00")
    copy = Path(shutil.copytree(store, tmp_path / "copy"))
    for into, brought, outcomes in ((store, other, {"inside", "outside"}), (copy, before, {"too_late"})):
        here("store", "merge", brought.root, "--store", into, cwd=cwd, check=0)
        *rows, whole = forecasts(into)
        assert {row["outcome"] for row in rows} <= outcomes
        assert whole["n_scored"] == (0 if outcomes == {"too_late"} else 3)
        assert {row["measured"] is None for row in rows} == {False}


def test_a_forecast_that_says_it_is_older_than_its_runs_is_scored_as_theirs_are(
    store: Path, tmp_path: Path, cwd: Path
) -> None:
    """The model is of 2020, the runs that the forecast rests on are of today, and it says that it is of 2019."""
    came = write_store(tmp_path / "came", Truth(S=(100_000_000,)), seed=4, n_documents=10, n_tokens=30)
    say(came.run_folder(came.run_ids()[0]) / "manifest.json", started_at="2020-01-01T00:00:00")
    say(file_of(store), registered_at="2019-05-01T12:00:00")
    here("store", "merge", came.root, "--store", store, cwd=cwd, check=0)
    *rows, told = forecasts(store)
    assert {row["outcome"] for row in rows} == {"too_late"}
    assert told["n_scored"] == 0


# ----------------------------------------------------------------------------------------------- what it rests on


def test_a_run_under_a_forecast_that_is_another_one_by_now_is_seen(store: Path) -> None:
    assert faults(store) == []
    run_id = Store(store).run_ids()[0]
    files = manifests(store)[run_id]["files"]
    say(store / "runs" / run_id / "manifest.json", files=files | {"tokens.parquet": "0" * 64})
    (fault,) = [fault for fault in faults(store) if fault.kind == "forecast"]
    assert fault.fault == f"it rests on run {run_id}, which is another one by now"


def test_a_forecast_that_cannot_be_read_is_named(store: Path) -> None:
    path = file_of(store)
    truncated(path)
    (fault,) = faults(store)
    assert (fault.kind, fault.name) == ("forecast", path.stem)
    with collected_messages() as messages, refused("has no forecasts"):
        forecasts(store)
    assert f"forecasts/{path.name}" in " ".join(messages)
