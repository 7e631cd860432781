"""Shows log messages with results: each once, and only the first few about the damage of one store.

Modules call `logging.getLogger(__name__).warning(...)`, and `warn_damage` for what a store leaves out. A handler shows
them: on stderr (`rbpx.cli.messages`), or with the answer of a notebook (`collected_messages`).
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOGGER: Final = "rbpx"
logging.getLogger(LOGGER).addHandler(logging.NullHandler())  # without it Python prints warnings to stderr
_LOGGER: Final = logging.getLogger(__name__)
_LINES_OF_DAMAGE: Final = 5
_STORE: Final = "damaged_store"  # attribute of a log record


def warn_damage(store: Path, what: str, fault: str, remedy: str) -> None:
    """Log that something in a store is left out, with halves of surrogate pairs escaped for the stream."""
    line = f"{what} in store={store} is left out: {fault}; {remedy}"
    _LOGGER.warning(line.encode("utf-8", "backslashreplace").decode(), extra={_STORE: store})


def warn_run(store: Path, run_id: str, fault: str) -> None:
    """Log that a run is damaged and left out."""
    warn_damage(store, f"run {run_id}", fault, f"rbpx store rm {run_id}, then run the line that measured it again")


class MessageHandler(logging.Handler):
    """Shows each message once; of a store five lines about damage, then one on how to see the rest."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show
        self._shown: set[str] = set()
        self._damaged: Counter[Path] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message unless it was shown before."""
        line = record.getMessage()
        if line in self._shown:
            return
        store = getattr(record, _STORE, None)
        if store is not None:
            self._damaged[store] += 1
            if self._damaged[store] > _LINES_OF_DAMAGE:
                line = f"more of store={store} is left out; rbpx store verify --store {store} names all of it"
        if line not in self._shown:
            self._shown.add(line)
            self._show(line)


@contextmanager
def attached(handler: logging.Handler) -> Iterator[None]:
    """Show messages with this handler within the block."""
    logger = logging.getLogger(LOGGER)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def collected_messages() -> Iterator[list[str]]:
    """The messages logged within the block, each once, in order."""
    messages: list[str] = []
    with attached(MessageHandler(messages.append)):
        yield messages
