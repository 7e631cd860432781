"""Sweeps over groups, files and values: each request is that of its job composed alone."""

from itertools import product

import pytest

from rbpx.cli.registry import asking
from rbpx.config.hydra.compose import Overrides, compose, requests

JOBS = (
    {"model": ["ladder", "pythia"], "dataset": ["c4", "lambada"], "protocol": ["paper", "rolling"]},
    {"model": ["hub"], "model.id": ["[a/b,c/d]", "[e/f]"], "model.family": ["x", "y"], "dataset": ["c4", "file"]},
    {"dataset": ["hellaswag", "pydoc"], "dtype": ["float32", "bfloat16"], "size": ['"3k"', "all"]},
)


def sweep(*words: str) -> list[object]:
    jobs = requests(Overrides(asking("measure"), ["-m", *words]))
    assert jobs is not None
    return [read_request() for read_request in jobs]


@pytest.mark.parametrize("choices", JOBS)
def test_each_request_is_that_of_its_job_alone(choices: dict[str, list[str]]) -> None:
    found = sweep(*(f"{key}={','.join(values)}" for key, values in choices.items()))
    jobs = [[f"{key}={value}" for key, value in zip(choices, job, strict=True)] for job in product(*choices.values())]
    assert len(found) == len(jobs)
    for job, request in list(zip(jobs, found, strict=True))[::3]:
        assert request == compose(asking("measure"), job)
