"""The requests of a sweep are those of its jobs composed one by one, at a fraction of their cost."""

import time
from pathlib import Path

import pytest

from rbpx.config.compose import compose, composed
from rbpx.config.sweep import composes, sweep
from rbpx.errors import RbpxError
from tests.support.commands import here

JOBS = (
    ["model=ladder,pythia", "dataset=c4,lambada,mmlu", "protocol=paper,rolling"],
    ["model=hub", "model.id=[a/b,c/d],[e/f]", "model.family=x,y", "dataset=c4,file", "dataset.where={a: 1},{b: 2}"],
    ["dataset=hellaswag,pydoc", "dtype=float32,bfloat16", "limit=3,5", 'size="[3k,7k]",all'],
)


@pytest.mark.parametrize("overrides", JOBS)
def test_each_request_is_that_of_its_job_alone(overrides: list[str]) -> None:
    from rbpx.config.sweep import _jobs

    jobs = _jobs(overrides)
    composed = sweep("measure", ["-m", *overrides])
    assert len(composed) == len(jobs) > 5
    for job, read_request in list(zip(jobs, composed, strict=True))[:: max(1, len(jobs) // 5)]:
        assert read_request() == compose("measure", job)


def test_two_hundred_jobs_are_composed_for_the_price_of_a_few() -> None:
    began = time.process_time()
    composed("measure", ["model=pythia", "dataset=c4", "limit=1"])
    one_s = time.process_time() - began
    began = time.process_time()
    assert len(sweep("measure", ["-m", "model=pythia,gpt2", "dataset=c4,lambada", "limit=range(1,51)"])) == 200
    assert time.process_time() - began < 50 * one_s  # one by one, as Hydra does it: 400 times


def test_what_asks_hydra_for_more_is_left_to_it() -> None:
    assert composes("measure", ["-m", "model=a,b"])
    for word in ("hydra/launcher=joblib", "experiment=demo", "+dataset.path=x", "~model", "--cfg", "store=${oc.env:A}"):
        assert not composes("measure", ["-m", "model=a,b", word])


def test_a_value_of_one_job_that_is_wrong_refuses_the_sweep_as_hydra_does(cwd: Path, tmp_path: Path) -> None:
    with pytest.raises(RbpxError, match="limit"):
        sweep("measure", ["-m", "limit=3,abc"])
    answer = here("measure", "-m", "dataset=pydoc,nosuch", "--store", tmp_path / "store", cwd=cwd, check=2)
    assert "nosuch" in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert not (tmp_path / "store").exists()
