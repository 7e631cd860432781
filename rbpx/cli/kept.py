"""Questions asked again: what a command printed before is printed from the store, to the last bit."""

import io
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any, Final, TextIO, cast

from rbpx.analyses import registry
from rbpx.cli.argv import CommandLine
from rbpx.config.overrides import store_of, what_was_typed
from rbpx.files.visible import is_harmless, write_as_ascii_where_needed
from rbpx.store.answers import KeptAnswer, kept_answer
from rbpx.store.messages import collected_messages, repeat

__all__ = ["print_again", "print_once"]

# By what of its surroundings a terminal's text differs.
_OF_TERMINALS: Final = (
    *("COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "PYTHONIOENCODING", "TERM"),
    *("TTY_COMPATIBLE", "TTY_INTERACTIVE"),
)
_COMPUTED: Final = ("output=", "register=")  # rows for a file, what is written for good


def print_again(line: CommandLine) -> bool:
    """Print what a line printed before, before anything is composed; false where it has to be computed."""
    if line.verb not in registry.names() or registry.analysis(line.verb).measures:
        return False
    kept = _kept(line, ())
    return kept is not None and not _is_fresh(line) and _printed(kept)


def print_once(line: CommandLine, of: Sequence[str], do: Callable[[], object], keeps: bool = True) -> None:
    """Do what prints the answer to a question, or print what it printed when the same was asked before.

    With `fresh=true` it is computed in any case. Answers are kept in stores on this machine, and only those that are
    printed: rows that go into a file are computed.

    Args:
        line: as typed.
        of: the cells that it is asked about; empty for all that the requests choose.
        do: computes and prints.
        keeps: whether all came that was asked for.
    """
    kept = _kept(line, of)
    if kept is None:
        do()
        return
    if not _is_fresh(line) and _printed(kept):
        return
    printed = _Copied(sys.stdout)
    with collected_messages() as messages, redirect_stdout(cast(TextIO, printed)):
        do()
    if keeps:
        kept.keep({"printed": printed.text.getvalue(), "messages": messages})


def _kept(line: CommandLine, of: Sequence[str]) -> KeptAnswer | None:
    """What the store has of the answer to a line; None where it has to be computed whatever is there."""
    words = [word.lstrip("+") for word in line.hydra]
    names_keys = line.verb in registry.names() and registry.analysis(line.verb).words
    reads_file = bool(line.words) and not names_keys
    computes = any(word.startswith(_COMPUTED) or "${" in word or word.startswith("hydra/") for word in words)
    prints = any(word.startswith("-") and word not in ("-m", "--multirun", "--config-dir", "-cd") for word in words)
    stores = [word for word in words if word.startswith("store=")]
    if reads_file or computes or prints or line.trusts_config or (line.sweeps and stores and "," in stores[-1]):
        return None
    asked = what_was_typed(line.verb, line.words, line.hydra)
    return kept_answer([store_of(words)], {**asked, "of": list(of), "terminal": _terminal()})


def _is_fresh(line: CommandLine) -> bool:
    given = [word.partition("=")[2] for word in line.hydra if word.lstrip("+").startswith("fresh=")]
    return bool(given) and given[-1].lower() != "false"


def _printed(kept: KeptAnswer) -> bool:
    """Print an answer that was kept; false where there is none."""
    write_as_ascii_where_needed()
    answer = kept.find() or {}
    printed, messages = answer.get("printed"), answer.get("messages")
    if not isinstance(printed, str) or not isinstance(messages, list) or not is_harmless(printed):
        return False
    repeat(map(str, messages))
    sys.stdout.write(printed)
    return True


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
