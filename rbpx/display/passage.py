"""A text whose tokens are coloured by their ranks: what a page and a terminal agree on."""

from dataclasses import dataclass
from typing import Final

RANKS: Final = (1, 10, 100)  # where a colour ends
GRADES: Final = ("rank 1", "to 10", "to 100", "beyond")
MARKED: Final = "Ranks: ‹to 100›, «beyond»; unmarked to 10. … was not scored."
_MARKS: Final = (("", ""), ("", ""), ("‹", "›"), ("«", "»"))


@dataclass(frozen=True)
class Piece:
    """A token.

    Attributes:
        text: as it is shown.
        grade: which of the colours it has, from 0; None where it was not scored.
        tip: what is said of it where one points.
    """

    text: str
    grade: int | None
    tip: str


@dataclass(frozen=True)
class Reading:
    """The tokens as one model reads them.

    Attributes:
        model: its name.
        about: how well it predicts them, in a line.
        pieces: in their order.
    """

    model: str
    about: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Passage:
    """A stretch of a document under one model or two, side by side.

    Attributes:
        name: in plain characters, part of its anchor.
        title: the document.
        rule: why this one, and how much of it.
        command: that shows the whole of it.
        readings: at least one.
    """

    name: str
    title: str
    rule: str
    command: str
    readings: tuple[Reading, ...]


def grade(rank: float) -> int:
    """Which of the colours a rank has, from 0."""
    return sum(rank > end for end in RANKS)


def marked(piece: Piece) -> str:
    """A token with the marks of its rank, for what has no colours; blanks around it stand outside them."""
    core, body = piece.text.strip(), piece.text.rstrip("\n")
    before, _, after = piece.text.partition(core) if core else (body, "", piece.text[len(body) :])
    begin, end = _MARKS[piece.grade or 0]
    return f"{before}{begin}{core}{end}{after}"
