"""Calls in a row, and by joblib's workers where a user names a backend: the same results, and faults are said."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import joblib
import pytest

import rbpx
from rbpx.errors import MeasureError, RbpxError
from rbpx.runs.processes import in_order
from rbpx.spelling import speaking_shell, typed
from rbpx.store.messages import collected_messages
from tests.support.synthetic import Truth, write_store

CALLS = [(at,) for at in range(8)]


def _place(at: int) -> tuple[int, int]:
    logging.getLogger("rbpx.tests").info("call %d", at)
    return at, os.getpid()


def _fail(at: int) -> int:
    if at in (3, 6):
        raise ValueError(f"call {at}")
    return at


def _die(at: int) -> int:
    if at == 3:
        os._exit(9)
    return at


def _advice(k: int) -> str:
    return typed(k=[k])


@pytest.fixture
def loky() -> Iterator[None]:
    with joblib.parallel_config("loky", n_jobs=2):
        yield


def test_without_a_backend_this_process_makes_all_calls() -> None:
    advanced: list[float] = []
    for n_jobs in (1, 2):  # a number of jobs alone names no backend
        with joblib.parallel_config(n_jobs=n_jobs):
            assert in_order(_place, CALLS, advanced.append) == [(at, os.getpid()) for (at,) in CALLS]
    assert advanced == [1] * 16


@pytest.mark.usefixtures("loky")
def test_workers_give_results_and_messages_in_the_order_of_the_calls() -> None:
    advanced: list[float] = []
    with collected_messages() as messages:
        found = in_order(_place, CALLS, advanced.append)
    assert [at for at, _ in found] == [at for (at,) in CALLS]
    assert os.getpid() not in {process for _, process in found}
    assert messages == [f"call {at}" for (at,) in CALLS]
    assert advanced == [1] * 8


@pytest.mark.usefixtures("loky")
def test_errors_are_raised_a_killed_worker_is_said_and_advice_is_in_the_words_of_the_process_that_asked() -> None:
    with pytest.raises(ValueError, match=r"call [36]"):
        in_order(_fail, CALLS)
    with pytest.raises(MeasureError, match="a worker of joblib was killed"):
        in_order(_die, CALLS)
    assert in_order(_advice, [(1,), (2,)]) == ["k=[1]", "k=[2]"]
    with speaking_shell():
        assert in_order(_advice, [(1,), (2,)]) == ["k='[1]'", "k='[2]'"]


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_threads_and_what_waits_for_ever_are_refused(backend: str) -> None:
    with (
        joblib.parallel_config(backend, n_jobs=2),
        pytest.raises(RbpxError, match=r"not in threads.*wait for ever.*name 'loky', or 'dask'"),
    ):
        in_order(_place, CALLS)


def test_a_question_has_the_same_rows_by_workers(tmp_path: Path) -> None:
    for seed, dataset in enumerate(("first", "second")):
        store = write_store(tmp_path / "store", Truth(scatter=0.02), seed, dataset=dataset)
    asked = rbpx.open(store.root)
    alone = asked.fit(resamples=50)
    with joblib.parallel_config("loky", n_jobs=2):
        beside = asked.fit(resamples=50)
    assert beside.frame().equals(alone.frame())
    assert len({*alone.frame()["dataset"]}) == 2
