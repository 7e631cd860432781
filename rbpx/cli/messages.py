"""Messages of a command line: one handler of Python's logging, which writes them to stderr as `rbpx: LINE`."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rbpx.cores import is_main_process
from rbpx.files.escapes import visible_line
from rbpx.store.messages import LOGGER, MessageHandler, attached


class _Stderr(MessageHandler):
    """What a command shows; of processes that measure together only the main one writes."""

    def __init__(self) -> None:
        super().__init__(_print)


def _print(line: str) -> None:
    if is_main_process():
        print(f"rbpx: {visible_line(line)}", file=sys.stderr)


@contextmanager
def messages_on_stderr() -> Iterator[None]:
    """Show messages on stderr for as long as a command takes, each line once.

    They do not go on to the root logger, where Hydra would print them a second time.
    """
    logger = logging.getLogger(LOGGER)
    propagate, logger.propagate = logger.propagate, False
    try:
        with attached(_Stderr()):
            yield
    finally:
        logger.propagate = propagate


def show_messages_of_job() -> None:
    """The same for a job that a launcher runs in a process of its own, until that process ends."""
    logger = logging.getLogger(LOGGER)
    if not any(isinstance(handler, _Stderr) for handler in logger.handlers):
        logger.addHandler(_Stderr())
        logger.setLevel(logging.INFO)
        logger.propagate = False
