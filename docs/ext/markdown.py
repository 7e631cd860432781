"""Plain words in, Markdown out."""

import re

_SPECIAL = r"(^[-+]|[\\`*_{}\[\]<>#|$~])"  # no more, since the pages are read as they are too


def plain(text: object) -> str:
    """Text that means nothing to Markdown, except `code`, on one line; None is a dash."""
    if text is None:
        return "–"
    pieces = re.split(r"(`[^`]+`)", " ".join(str(text).split()))
    code = [n % 2 and "|" not in piece for n, piece in enumerate(pieces)]  # a bar would end a cell in code too
    return "".join(p if c else re.sub(_SPECIAL, r"\\\1", p) for p, c in zip(pieces, code, strict=True))


def name(text: object) -> str:
    """A name as code."""
    return "–" if text is None else f"`{str(text).replace('|', chr(92) + '|')}`"


def block(text: str, language: str = "text") -> str:
    """Lines as they are."""
    return f"```{language}\n{text.rstrip()}\n```\n"
