"""Forecasts of two stores that are merged, by real commands."""

import json
from pathlib import Path
from typing import Any

from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.commands import Answer, here
from tests.support.synthetic import Truth, write_store


def register(store: Path, cwd: Path, name: str, *words: str, check: int = 0) -> Answer:
    more = (f"register={name}", "laws=cross_entropy", "resamples=20", *words)
    return here("predict", *more, "--store", store, cwd=cwd, check=check)


def forecasts(store: Path, cwd: Path) -> list[dict[str, Any]]:
    words = ("forecasts", "--store", store, "--format", "json", "--details")
    return list(json.loads(here(*words, cwd=cwd, check=0).stdout))


def test_merge_and_gc_keep_forecasts_and_a_name_of_two_stores_stays_two(tmp_path: Path, cwd: Path) -> None:
    store, twin = (
        write_store(tmp_path / name, Truth(scatter=0.02), seed=3, n_documents=10, n_tokens=30).root
        for name in ("store", "twin")
    )
    for root, S in ((store, "S=1e8"), (twin, "S=2e8")):
        register(root, cwd, "june", S)
    names = {path.name for root in (store, twin) for path in root.glob("forecasts/*.json")}
    assert "1 forecast" in here("store", "merge", twin, "--store", store, cwd=cwd, check=0).stderr
    here("store", "gc", "--store", store, cwd=cwd, check=0)
    for run_id in Store(store).run_ids():
        here("store", "rm", run_id, "--store", store, cwd=cwd, check=0)
    assert verify(Store(store)).faults == []
    assert {path.name for path in store.glob("forecasts/*")} == names
    here("store", "merge", twin, "--store", store, cwd=cwd, check=0)
    assert len({row["forecast_id"] for row in forecasts(store, cwd)[:-1]}) == 2
