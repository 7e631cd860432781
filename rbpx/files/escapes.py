"""Makes a text safe to print: control characters and invisible ones become escapes.

What a command prints passes `say`, `out` or a `Screen` of `rbpx.display.screen`.
"""

import codecs
import sys
from io import TextIOWrapper
from typing import Any, Final, TextIO, cast

AS_ASCII: Final = "rbpx_ascii"  # error handler for encodings without our signs
_KEPT = {"\n", "\t"}
_STAND_INS: Final = dict(zip("–─·Σ…−‹›«»", "--*S~-<>{}", strict=True))  # of equal width


def write_as_ascii_where_needed() -> None:
    """Let standard output replace our signs by characters that its encoding has."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=AS_ASCII)


def say(line: str) -> None:
    """Print a line on standard error."""
    print(visible_line(line), file=sys.stderr)  # noqa: T201


def out() -> TextIO:
    """Standard output; a terminal shows escape sequences instead of obeying them, a file gets them."""
    write_as_ascii_where_needed()
    return cast(TextIO, _Shown(sys.stdout)) if sys.stdout.isatty() else sys.stdout


class _Shown:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def visible(text: str) -> str:
    r"""Characters that steer a terminal, or that nobody sees, as Python's escapes \x1b, \u202e and so on.

    These are control characters but line breaks and tabs (ESC begins a terminal's commands), marks that reverse the
    direction of writing, characters for private use and code points without a character.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _KEPT else _escaped(c) for c in text)


def visible_line(text: str) -> str:
    """The same on one line: line breaks and tabs are escaped too."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _as_ascii(problem: UnicodeError) -> tuple[str, int]:
    """Our signs as similar ASCII characters; others as Python escapes."""
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    missing = problem.object[problem.start : problem.end]
    return "".join(_STAND_INS.get(c) or _escaped(c) for c in missing), problem.end


codecs.register_error(AS_ASCII, _as_ascii)
