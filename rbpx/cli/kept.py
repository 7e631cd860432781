"""Questions asked again: what a command printed before is printed from the store, to the last bit."""

import io
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from rbpx.display.visible import is_harmless, write_as_ascii_where_needed
from rbpx.store.answers import kept_answer
from rbpx.store.messages import collected_messages, repeat

if TYPE_CHECKING:
    from rbpx.config.request import Request

__all__ = ["print_once"]

# By what of its surroundings a terminal's text differs.
_OF_TERMINALS: Final = (
    *("COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "PYTHONIOENCODING", "TERM"),
    *("TTY_COMPATIBLE", "TTY_INTERACTIVE"),
)


def print_once(verb: str, requests: "Sequence[Request]", of: Sequence[str], do: Callable[[], object]) -> None:
    """Do what prints the answer to a question, or print what it printed when the same was asked before.

    With `fresh=true` it is computed in any case. Answers are kept in stores on this machine, and only those that are
    printed: rows that go into a file are computed.

    Args:
        verb: the question.
        requests: one for each job of a sweep.
        of: the cells that it is asked about; empty for all that the requests choose.
        do: computes and prints.
    """
    kept = None
    if requests[0].output is None:
        asked = {"verb": verb, "requests": [request.asked() for request in requests], "of": list(of), **_terminal()}
        kept = kept_answer([request.store for request in requests], asked)
    if kept is None:
        do()
        return
    answer = None if requests[0].fresh else kept.find()
    write_as_ascii_where_needed()
    if answer is not None and is_harmless(answer["printed"]):
        repeat(answer["messages"])
        sys.stdout.write(answer["printed"])
        return
    printed = _Copied(sys.stdout)
    with collected_messages() as messages, redirect_stdout(cast(TextIO, printed)):
        do()
    kept.keep({"printed": printed.text.getvalue(), "messages": messages})


class _Copied:
    """A stream that remembers what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.text = io.StringIO()
        self._stream = stream

    def write(self, text: str) -> int:
        self.text.write(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _terminal() -> Mapping[str, Any]:
    return {
        "environment": {name: os.environ.get(name) for name in _OF_TERMINALS},
        "size": list(shutil.get_terminal_size()),
        "is_terminal": sys.stdout.isatty(),
        "encoding": sys.stdout.encoding,
    }
