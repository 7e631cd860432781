"""Signals that end a command: raised as exceptions, so that what is under way is given up in order, as after Ctrl-C.

Schedulers send SIGTERM and kill half a minute later; submitit has Slurm send SIGUSR2 before the time of a job is over.
"""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

__all__ = ["Stopped", "leave_no_heartbeat", "stop_in_order", "stop_job_in_order", "stop_no_more"]


class Stopped(KeyboardInterrupt):
    """A signal has asked this process to end.

    Attributes:
        signal: which.
    """

    def __init__(self, number: int) -> None:
        """Note the signal."""
        super().__init__(number)
        self.signal = signal.Signals(number)

    def __str__(self) -> str:
        """Its name."""
        return self.signal.name


def stop_in_order() -> None:
    """Raise `Stopped` in the main thread of this process when SIGTERM comes; its forks end at once."""
    process = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        if os.getpid() == process:
            raise Stopped(number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, stop)


def stop_job_in_order() -> None:
    """The same for a job that submitit runs; of SIGUSR2, before which submitit queues a job again where it may.

    Submitit passes SIGTERM over, so a job would learn of its end when it is killed; and where it does not queue a job
    again, it raises an error amid the cell, which would be noted as that cell's failure.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    stop_in_order()
    queue_again: Any = signal.getsignal(signal.SIGUSR2)

    def stop(number: int, frame: FrameType | None) -> None:
        try:
            queue_again(number, frame)
        except Exception:  # submitit raises one of its own where it does not queue the job again
            raise Stopped(number) from None

    if callable(queue_again):
        signal.signal(signal.SIGUSR2, stop)


def stop_no_more() -> None:
    """Pass SIGTERM over while the last line is written, where it is raised: it may come more than once."""
    if callable(signal.getsignal(signal.SIGTERM)):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def leave_no_heartbeat() -> None:
    """Remove the heartbeat of a cell that is given up, or was just done: the signal may have come amid its removal."""
    cell_states = sys.modules.get("rbpx.store.cell_states")  # else nothing was measured
    if cell_states is not None:
        cell_states.end_heartbeats()
