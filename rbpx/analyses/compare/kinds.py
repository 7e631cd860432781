"""Kinds of text: the characters of a token or of a part of one in, what they are out."""

from functools import lru_cache
from typing import Final

KINDS: Final = ("word", "number", "white space", "punctuation", "non-ASCII", "mixed", "unknown")
"""What a stretch of text is, white space around it aside; `unknown` where its text is not in the store."""


@lru_cache(maxsize=65_536)
def kind_of(text: str | None) -> str:
    """The kind of a stretch: letters and _ make words, digits numbers; one character beyond ASCII makes it non-ASCII.

    A tokenizer writes a part of a character as U+FFFD, and only characters beyond ASCII have parts.
    """
    if not text:
        return "unknown"
    core = text.strip()
    if not core:
        return "white space"
    if not core.isascii():
        return "non-ASCII"
    if all(c.isalpha() or c == "_" for c in core):
        return "word"
    if core.isdigit():
        return "number"
    return "mixed" if any(c.isalnum() or c == "_" for c in core) else "punctuation"


def part_of(text: str | None, n_bytes: int, begin: int, length: int) -> str | None:
    """The part of a token's text from byte `begin`, `length` bytes long; None where the text is not those bytes.

    Args:
        text: of the token, as its tokenizer writes it alone.
        n_bytes: of the document that the token stands for; -1 where that is not known, and all of it is the part.
        begin: first byte of the part in the token.
        length: bytes of the part.
    """
    if text is None or n_bytes in (-1, length):
        return text
    written = text.encode("utf-8", "surrogatepass")
    if len(written) != n_bytes:
        return None
    return written[begin : begin + length].decode("utf-8", "replace")
