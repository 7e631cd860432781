"""Quantised weights: rounded as torchao says, the head and S untouched, and another run than without."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.stores import manifests

has_torchao = pytest.mark.skipif(
    find_spec("torchao") is None, reason="torchao is not installed: pip install 'rbpx[quantise]'"
)


@has_torchao
def test_a_quantised_run_is_another_one_beside_the_plain_one(tiny_jsonl: Path, tmp_path: Path, cwd: Path) -> None:
    store = tmp_path / "store"
    words = ("model=ladder", "size=3k", "dataset=file", f"dataset.path={tiny_jsonl}", "--store", store)
    here("measure", *words, cwd=cwd, check=0)
    here("measure", *words, "model.quantise=int4", cwd=cwd, check=0)
    facts = {run["dtype"]: (run["quantise"], run["weights_hash"], run["run_id"]) for run in manifests(store).values()}
    assert facts.keys() == {"float32", "float32-int4"}
    (plain, rounded) = (facts[dtype] for dtype in sorted(facts))
    assert (plain[0], rounded[0], plain[1] == rounded[1], plain[2] == rounded[2]) == (None, "int4", True, False)
    again = here("audit", "limit=2", "k=1", "resamples=20", "--store", store, cwd=cwd, check=0)
    assert "float32-int4" in again.stdout
    assert "1 of 2 runs were measured in float32" in again.stderr
    planned = here("status", *words[:4], "model.quantise=int8", "--store", store, cwd=cwd, check=0).stdout
    assert "missing" in planned
