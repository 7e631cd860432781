"""Calls in several processes, in an interpreter that has no threads: what came of them, as JSON on stdout.

python -m tests.support.in_processes CASE FOLDER
"""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib

from rbpx.errors import RbpxError
from rbpx.runs.processes import in_processes, several_processes
from rbpx.store.messages import collected_messages

MAIN, FOLDER = os.getpid(), Path(sys.argv[2]) if len(sys.argv) == 3 else Path()
CALLS = [(at,) for at in range(40)]
Place = tuple[int, int]  # the number of a call, and the process that computed it


def _place(at: int) -> Place:
    time.sleep(0.01)
    return at, os.getpid()


def _place_and_log(at: int) -> Place:
    logging.getLogger("rbpx.tests").info("call %d", at)
    return _place(at)


def _fail_late(at: int) -> Place:
    if at in (13, 37):
        time.sleep(0.2 if at == 13 else 0)  # so the second one fails first
        raise ValueError(f"call {at}")
    return _place(at)


def _larger(text: bytes) -> bytes:
    return text * 5


def _written_down(at: int, folder: Path) -> Place:
    with (folder / f"{at}.txt").open("a") as file:
        file.write(f"{os.getpid()}\n")
    return _place(at)


def _inner(at: int) -> list[Place]:
    with several_processes(_ready):
        return in_processes(_place, [(at,), (at,)])


def _ready() -> None:
    """A fork needs nothing here."""


def _unready() -> None:
    raise OSError("nothing to open")


@contextmanager
def _threaded() -> Iterator[None]:
    stop = threading.Event()
    threading.Thread(target=stop.wait).start()
    try:
        yield
    finally:
        stop.set()


def _messages(do: Callable[[], object]) -> list[str]:
    with collected_messages() as messages:
        do()
    return messages


def several(n: int) -> dict[str, Any]:
    """What `n` processes make of the calls; one that is this one, where it is 1."""
    found: dict[str, Any] = {"main": MAIN}
    advanced: list[float] = []
    with joblib.parallel_config(n_jobs=n), several_processes(_ready):
        found["places"] = in_processes(_place, CALLS, advanced.append)
        found["advanced"] = sum(advanced)
        found["messages"] = _messages(lambda: in_processes(_place_and_log, CALLS))
        try:
            in_processes(_fail_late, CALLS)
        except ValueError as problem:
            found["problem"], found["notes"] = str(problem), getattr(problem, "__notes__", [])
        found["again"] = in_processes(_place, CALLS)
        found["large"] = [len(each) for each in in_processes(_larger, [(bytes(at * 100_000),) for at in range(12)])]
        in_processes(_written_down, [(at, FOLDER) for at in range(40)])
        found["nested"] = in_processes(_inner, CALLS[:8])
        with several_processes(_unready):
            found["within"] = in_processes(_place, CALLS)
    return found


def alone() -> dict[str, Any]:
    """Where this process computes by itself."""
    found: dict[str, Any] = {"main": MAIN, "outside": in_processes(_place, CALLS[:3])}
    with several_processes(_ready, pays=False):
        found["small"] = in_processes(_place, CALLS[:3])
    with joblib.parallel_config("loky", n_jobs=1), several_processes(_ready):
        found["asked for"] = in_processes(_place, CALLS[:3])
    with _threaded(), several_processes(_ready):
        found["threads, and few calls"] = in_processes(_place, CALLS[:3])
    return found


def refused() -> dict[str, Any]:
    """Backends that are none for this."""
    found = {}
    for name in ("threading", "multiprocessing"):
        try:
            with joblib.parallel_config(name, n_jobs=2), several_processes(_ready):
                in_processes(_place, CALLS)
        except RbpxError as problem:
            found[name] = str(problem)
    return found


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "1": lambda: several(1),
    "2": lambda: several(2),
    "alone": alone,
    "refused": refused,
}

if __name__ == "__main__":
    json.dump(CASES[sys.argv[1]](), sys.stdout)
