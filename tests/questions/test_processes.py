"""Questions in several processes: calls in their order, and nothing lost when one of the processes is killed."""

import sys
from pathlib import Path

import joblib
import pytest

from rbpx.runs.processes import in_processes as in_parallel
from rbpx.runs.processes import several_processes
from rbpx.spelling import speaking_shell, typed
from tests.support import in_processes
from tests.support.processes import ALL, Found, done, processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux alone")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path, Found]:
    folder = tmp_path_factory.mktemp("several")
    return 2, folder, done("2", folder)


def test_as_many_processes_as_asked_for_share_the_calls(several: tuple[int, Path, Found]) -> None:
    n, _, found = several
    used = processes(found["places"])
    assert len(used) == n
    assert (found["main"] in used) is (n == 1)  # with more this one waits
    assert processes(found["again"]) <= used
    assert found["advanced"] == len(ALL)


def test_messages_stand_in_the_order_of_the_calls(several: tuple[int, Path, Found]) -> None:
    assert several[2]["messages"] == [f"call {at}" for at in ALL]


def test_the_first_error_is_raised_and_says_where_it_was(several: tuple[int, Path, Found]) -> None:
    n, _, found = several
    assert found["problem"] == "call 13"
    assert ["in _fail_late" in note for note in found["notes"]] == [True] * (n > 1)


def test_arguments_and_results_larger_than_a_pipe(several: tuple[int, Path, Found]) -> None:
    assert several[2]["large"] == [at * 500_000 for at in range(12)]


def test_no_call_is_made_twice(several: tuple[int, Path, Found]) -> None:
    files = list(several[1].glob("*.txt"))
    assert len(files) == len(ALL)
    assert {len(file.read_text().splitlines()) for file in files} == {1}


def test_what_a_call_calls_is_computed_where_it_is(several: tuple[int, Path, Found]) -> None:
    _, _, found = several
    for at, places in enumerate(found["nested"]):
        assert [number for number, _ in places] == [at, at]
        assert len({process for _, process in places}) == 1
    assert processes(found["within"]) <= processes(found["places"])  # a block within another uses its processes


def test_threads_and_what_waits_for_ever_are_refused() -> None:
    found = in_processes.refused()
    for name in ("threading", "multiprocessing"):
        assert "in processes, not in threads, and those of 'multiprocessing' wait for ever" in found[name]


def test_this_process_computes_alone_outside_of_a_block_and_where_more_do_not_pay() -> None:
    found = in_processes.alone()
    for case in ("outside", "small", "asked for", "threads, and few calls"):
        assert processes(found[case]) == {found["main"]}, case


def _advice(k: int) -> str:
    return typed(k=[k])


def test_workers_advise_in_the_words_of_the_process_that_asked() -> None:
    with joblib.parallel_config(backend="loky", n_jobs=2), several_processes(dict):
        assert in_parallel(_advice, [(1,), (2,)]) == ["k=[1]", "k=[2]"]
        with speaking_shell():
            assert in_parallel(_advice, [(1,), (2,)]) == ["k='[1]'", "k='[2]'"]
