"""The requests of a sweep are those of its jobs composed one by one, in the order of Hydra's own sweeps."""

from itertools import product

import pytest

from rbpx.cli.registry import asking
from rbpx.config.hydra.compose import Overrides, compose, requests
from rbpx.errors import RbpxError


def sweep(*words: str) -> list[object]:
    jobs = requests(Overrides(asking("measure"), ["-m", *words]))
    assert jobs is not None
    return [read_request() for read_request in jobs]


def test_each_request_is_that_of_its_job_alone() -> None:
    choices = {"model": ["hub"], "model.id": ["[a/b,c/d]", "[e/f]"], "model.family": ["x"], "dataset": ["c4", "file"]}
    found = sweep(*(f"{key}={','.join(values)}" for key, values in choices.items()))
    jobs = [[f"{key}={value}" for key, value in zip(choices, job, strict=True)] for job in product(*choices.values())]
    assert len(found) == len(jobs)
    for job, request in list(zip(jobs, found, strict=True))[1:3]:
        assert request == compose(asking("measure"), job)


def test_a_value_of_one_job_that_is_wrong_refuses_the_sweep() -> None:
    for words, says in (("limit=3,abc", "limit"), ("dataset=pydoc,nosuch", "nosuch")):
        with pytest.raises(RbpxError, match=says) as problem:
            sweep(words)
        assert "\n" not in str(problem.value)
