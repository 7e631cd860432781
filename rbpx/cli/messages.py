"""Writes messages of Python's logging to stderr as `rbpx: LINE`."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rbpx.cores import is_main_process
from rbpx.files.escapes import say
from rbpx.store.messages import LOGGER, MessageHandler, attached


class _Stderr(MessageHandler):
    """The handler of a command; of processes that measure together only the main one writes."""

    def __init__(self) -> None:
        super().__init__(_print)


def _print(line: str) -> None:
    if is_main_process():
        say(f"rbpx: {line}")


@contextmanager
def messages_on_stderr() -> Iterator[None]:
    """Shows messages on stderr, and not on the root logger, where Hydra would print them again."""
    logger = logging.getLogger(LOGGER)
    propagate, logger.propagate = logger.propagate, False
    try:
        with attached(_Stderr()):
            yield
    finally:
        logger.propagate = propagate


def show_messages_of_job() -> None:
    """Shows messages until the process ends, for a job that a launcher runs."""
    logger = logging.getLogger(LOGGER)
    if not any(isinstance(handler, _Stderr) for handler in logger.handlers):
        logger.addHandler(_Stderr())
        logger.setLevel(logging.INFO)
        logger.propagate = False
