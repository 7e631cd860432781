"""A section of a report, and texts whose tokens are coloured by their ranks, on a page and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from rbpx.display.vocabulary import decimals, listed, number
from rbpx.status import Status

if TYPE_CHECKING:
    from rbpx.display.chart.figure import Figure, Undrawn
    from rbpx.display.table import Table
    from rbpx.laws.intervals.estimate import Estimate

RANKS: Final = (1, 10, 100)  # upper rank of each colour
GRADES: Final = ("rank 1", "to 10", "to 100", "beyond")
MARKED: Final = "Ranks: ‹to 100›, «beyond»; unmarked to 10. … was not scored."
_MARKS: Final = (("", ""), ("", ""), ("‹", "›"), ("«", "»"))


class Piece(NamedTuple):
    """A token as shown, the index of its colour (None if it was not scored), and its tooltip."""

    text: str
    grade: int | None
    tip: str


class TextReading(NamedTuple):
    """The tokens as one model reads them, and how well it predicts them."""

    model: str
    about: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Passage:
    """A stretch of a document under one model or two, side by side.

    `rule` says why it was chosen, and how much this is; `command` shows all.
    """

    name: str
    title: str
    rule: str
    command: str
    readings: tuple[TextReading, ...]

    def beginning(self, longest: int) -> Passage:
        """The passage up to `longest` scored tokens."""
        places = [[at for at, piece in enumerate(of.pieces) if piece.grade is not None] for of in self.readings]
        if max(map(len, places)) <= longest:
            return self
        ends = [(at[:longest] or [len(of.pieces)])[-1] + 1 for at, of in zip(places, self.readings, strict=True)]
        cut = tuple(of._replace(pieces=of.pieces[:end]) for end, of in zip(ends, self.readings, strict=True))
        return replace(self, rule=f"{self.rule} Its first {longest} of {max(map(len, places)):,} tokens.", readings=cut)


def grade(rank: float) -> int:
    """The index of the colour of a rank, from 0."""
    return sum(rank > end for end in RANKS)


def marked(piece: Piece) -> str:
    """A token with the marks of its rank, inside its blanks, for output without colours."""
    core, body = piece.text.strip(), piece.text.rstrip("\n")
    before, _, after = piece.text.partition(core) if core else (body, "", piece.text[len(body) :])
    begin, end = _MARKS[piece.grade or 0]
    return f"{before}{begin}{core}{end}{after}"


def doubt(status: Status, of: Sequence[str]) -> str:
    """Says which laws or fits have a status, and what to do about it."""
    between = "; " if any("," in each for each in of) else ", "
    return f"{status.label} ({listed(of, 6, between)}): {status.remedy}"


Fact = tuple[str, str, str]
"""A finding in one number: what it is, the number as people read it, its interval and how far to trust it."""
_IN_THREE: Final = decimals(3)


def fact_of(label: str, of: Estimate, status: str | None) -> Fact:
    """A number with its interval and status as a fact."""
    return label, _IN_THREE(of.value), ends_of(of) + doubt_of(status)


def ends_of(of: Estimate, how: Callable[[float | None], str] = _IN_THREE) -> str:
    """Renders the interval of a number, beside it."""
    return _ends(of.lo, of.hi, how)


def _ends(lo: float | None, hi: float | None, how: Callable[[float | None], str]) -> str:
    return "no interval" if lo is None and hi is None else f"95 %: {how(lo)} to {how(hi)}"


def doubt_of(status: str | None) -> str:
    """Renders a status other than ok behind a number."""
    return "" if status in (None, Status.ok) else f"; {Status(status).label}"


@dataclass(frozen=True, eq=False)
class Section:
    """One section: the result in sentences, figures that are drawn or cannot be, other tables, doubts and texts."""

    name: str
    title: str
    sentences: tuple[str, ...]
    figures: tuple[Figure | Undrawn, ...]
    sheets: tuple[Table, ...] = ()
    doubts: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()


def between(value: float | None, lo: float | None, hi: float | None, digits: int = 3) -> str:
    """Renders a number with its interval, for a sentence."""
    return f"{number(value, digits)} ({_ends(lo, hi, decimals(digits))})"


def interval_of(estimate: Estimate, digits: int = 3) -> str:
    """Renders a number that has its interval."""
    return between(estimate.value, estimate.lo, estimate.hi, digits)
