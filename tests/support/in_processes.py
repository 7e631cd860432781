"""Calls in several processes, in an interpreter that has no threads: what came of them, as JSON on stdout."""

import json
import logging
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from typing import Any

from rbpx.groups.processes import in_processes, several_processes
from rbpx.store.messages import collected_messages

MAIN = os.getpid()
Place = tuple[int, int]  # the number of a call, and the process that computed it


def _place(at: int) -> Place:
    time.sleep(0.01)
    return at, os.getpid()


def _place_and_log(at: int) -> Place:
    logging.getLogger("rbpx.tests").warning("call %d", at)
    return _place(at)


def _fail_late(at: int) -> Place:
    if at in (13, 37):
        raise ValueError(f"call {at}")
    return _place(at)


def _large(at: int) -> bytes:
    return bytes([at]) * 5_000_000


def _twice(at: int) -> int:
    return 2 * at


def _die_in_a_fork(at: int) -> Place:
    if os.getpid() != MAIN:
        os.kill(os.getpid(), signal.SIGKILL)
    return _place(at)


def _ready(stack: ExitStack) -> None:
    """A fork needs nothing here."""


def _unready(stack: ExitStack) -> None:
    raise OSError("nothing to open")


def main() -> None:
    """Every case, each in a block of its own or in one that several calls share."""
    calls = [(at,) for at in range(40)]
    found: dict[str, Any] = {"main": MAIN}
    advanced: list[float] = []
    with several_processes(_ready):
        found["places"] = in_processes(_place, calls, advanced.append)
        with several_processes(_ready):
            found["nested"] = in_processes(_place, calls)
        with collected_messages() as messages:
            in_processes(_place_and_log, calls)
        found["messages"] = messages
        try:
            in_processes(_fail_late, calls)
        except ValueError as problem:
            found["problem"], found["notes"] = str(problem), getattr(problem, "__notes__", [])
        found["large"] = [len(each) for each in in_processes(_large, calls[:12])]
        many = in_processes(_twice, [(at,) for at in range(70_000)])
        found["many"] = many == list(range(0, 140_000, 2))
        found["dying"] = in_processes(_die_in_a_fork, calls)
        found["after"] = in_processes(_place, calls)
    found["advanced"] = sum(advanced)
    with several_processes(_unready):
        found["unready"] = in_processes(_place, calls)
    found["outside"] = in_processes(_place, calls[:3])
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    with several_processes(_ready):
        found["threaded"] = in_processes(_place, calls[:3])
    stop.set()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
