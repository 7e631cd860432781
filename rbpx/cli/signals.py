"""Raises signals that end a command as exceptions, so that work stops in order, as after Ctrl-C.

Schedulers send SIGTERM and kill half a minute later; submitit lets Slurm send SIGUSR2 before a job's time is over.
"""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

__all__ = ["Stopped", "leave_no_heartbeat", "stop_in_order", "stop_job_in_order", "stop_no_more"]


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)

    def __str__(self) -> str:
        return self.signal.name


def stop_in_order() -> None:
    """Raises `Stopped` in the main thread on SIGTERM; forked processes end at once."""
    process = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        if os.getpid() == process:
            raise Stopped(number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, stop)


def stop_job_in_order() -> None:
    """Raises `Stopped` in a job of submitit, which ignores SIGTERM, on it, and on SIGUSR2 if it queues no job again."""
    if threading.current_thread() is not threading.main_thread():
        return
    stop_in_order()
    queue_again: Any = signal.getsignal(signal.SIGUSR2)

    def stop(number: int, frame: FrameType | None) -> None:
        try:
            queue_again(number, frame)
        except Exception:  # submitit raises its own error if it does not queue the job again
            raise Stopped(number) from None

    if callable(queue_again):
        signal.signal(signal.SIGUSR2, stop)


def stop_no_more() -> None:
    """Ignores further SIGTERM while the last line is written."""
    if callable(signal.getsignal(signal.SIGTERM)):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def leave_no_heartbeat() -> None:
    """Removes the heartbeat of a cell that is given up or was just done, in case a signal kept it."""
    cell_states = sys.modules.get("rbpx.store.cell_states")  # else nothing was measured
    if cell_states is not None:
        cell_states.end_heartbeats()
