"""A text of anybody's in; what a terminal shows of it, and nothing that it would obey, out."""

from typing import Final

PRIVATE: Final = range(0xE000, 0xF900)  # of Unicode: what our own tables mark their headings with
_KEPT = {"\n", "\t"}


def visible(text: str) -> str:
    r"""Characters that steer a terminal, or that nobody sees, as the escapes that Python writes for them.

    Lines and tabs stay. Control characters (ESC begins a terminal's commands), marks that turn the direction of
    writing, and what is no character become \x1b, \u202e and so on.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _KEPT or ord(c) in PRIVATE else _escaped(c) for c in text)


def visible_line(text: str) -> str:
    """The same on one line: line breaks, tabs and characters for private use are escaped too."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
