"""Forks of this process as a backend of joblib, whose own either start slowly or wait for ever for a killed process.

Python's ProcessPoolExecutor makes them, all at once and before it starts a thread. What a task is made of and what came
of it lie in files, and pipes carry their paths alone: a path is written whole or not at all, where a process that is
killed amid a result of megabytes would leave the others to wait for the rest of it.
"""

import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import count
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from joblib.parallel import ParallelBackendBase

__all__ = ["Forks"]


class Forks(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """Several forks, as they are when this is made; a context manager that ends them.

    After one of them was killed, all have ended, and what was still asked of them raises BrokenExecutor.
    """

    supports_retrieve_callback = True

    def __init__(self, n: int, begin: Callable[[], object]) -> None:
        """Fork this process.

        Args:
            n: how many.
            begin: what each does first; it may not raise.
        """
        super().__init__(nesting_level=0)
        self._n, self._numbers = n, count()
        self._folder = TemporaryDirectory(prefix=f"rbpx-tasks-{os.getpid()}-")
        self._executor = ProcessPoolExecutor(n, get_context("fork"), _begin, (begin,))
        others = set(active_children())
        with warnings.catch_warnings():
            # The one other thread is of the allocator of Arrow, which forks safely.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            self._executor.submit(os.getpid)  # the first task makes all of them
        self._forks = set(active_children()) - others

    def __enter__(self) -> "Forks":
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is not None:
            self.abort_everything()
        self._executor.shutdown()
        self._folder.cleanup()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """How many there are."""
        return self._n

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None]) -> "Future[None]":
        """Give a task to the next of them that is free."""
        file = Path(self._folder.name, str(next(self._numbers)))
        file.write_bytes(pickle.dumps(func, pickle.HIGHEST_PROTOCOL))
        future = self._executor.submit(_do, file)
        future.file = file  # type: ignore[attr-defined]
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, future: "Future[None]") -> Any:
        """What came of a task.

        Raises:
            BrokenExecutor: a fork was killed.
        """
        future.result()
        file: Path = future.file  # type: ignore[attr-defined]
        result = pickle.loads(file.read_bytes())
        file.unlink()
        return result

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Kill them: joblib was interrupted, or one of them was killed."""
        for fork in self._forks:
            fork.kill()


def _do(file: Path) -> None:
    result = pickle.loads(file.read_bytes())()
    file.write_bytes(pickle.dumps(result, pickle.HIGHEST_PROTOCOL))


def _begin(begin: Callable[[], object]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()
    begin()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "forks have one"
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)
