"""CPU seconds of the suite by folder, printed after each run, so that a folder that grows is seen at once.

A test counts with its fixtures and with the processes that it waits for. `make test` has 600 s for all of them.
"""

import os
from collections import Counter
from collections.abc import Generator
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest

MOST_S: Final = 60.0  # of one test of the daily suite, on a machine that is busy with other things too
_START: Final = "start and collection"
_ITSELF: Final = "pytest itself"
_spent_s: Counter[str] = Counter()
_n_tests: Counter[str] = Counter()
_of_test_s: Counter[str] = Counter()
_of_workers: list[dict[str, float]] = []


def computing_s() -> float:
    """CPU time of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What a process used until its tests are known, imports included."""
    _spent_s[_START] = computing_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count a test with its fixtures; those of a session count in the test that first asks for them."""
    before = computing_s()
    result = yield
    used_s, folder = computing_s() - before, "/".join(Path(item.nodeid.partition("::")[0]).parts[:-1])
    _spent_s[folder] += used_s
    _n_tests[folder] += 1
    _of_test_s[item.nodeid] += used_s
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Refuse a test of the daily suite that computes for a minute."""
    before = computing_s()
    result = yield
    if (used_s := computing_s() - before) > MOST_S and "nightly" not in item.path.parts:
        pytest.fail(
            f"computed for {used_s:.0f} s, {MOST_S:.0f} are allowed: make it cheaper, or move it to tests/nightly"
        )
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close the account of this process; a worker hands it to the process that prints."""
    _spent_s[_ITSELF] += computing_s() - sum(_spent_s.values())
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["cpu_seconds"] = [dict(_spent_s), dict(_n_tests), dict(_of_test_s.most_common(20))]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker of xdist counted."""
    _of_workers.extend(getattr(node, "workeroutput", {}).get("cpu_seconds", ()))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table, dearest folders first, and the ten dearest tests."""
    for counter, theirs in zip(cycle((_spent_s, _n_tests, _of_test_s)), _of_workers, strict=False):
        counter.update(theirs)
    terminalreporter.section("CPU seconds")
    for name, spent_s in _spent_s.most_common():
        terminalreporter.write_line(
            f"{spent_s:7.1f}  {name}" + (f", {_n_tests[name]} tests" if name in _n_tests else "")
        )
    terminalreporter.write_line(f"{sum(_spent_s.values()):7.1f}  in all")
    for name, spent_s in _of_test_s.most_common(10):
        terminalreporter.write_line(f"{spent_s:7.1f}  {name}")
