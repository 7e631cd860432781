"""A section of a report: the result of one question for one group, in sentences, figures and tables."""

from __future__ import annotations

from dataclasses import dataclass

from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.column import Bounded
from rbpx.display.numbers import number
from rbpx.display.passage import Passage
from rbpx.display.view import Table
from rbpx.status import Status


@dataclass(frozen=True)
class Doubt:
    """A status other than ok, and the laws or fits that have it."""

    status: Status
    of: tuple[str, ...]

    @property
    def text(self) -> str:
        """What has the status, and what to do about it."""
        between = "; " if any("," in each for each in self.of) else ", "
        names = between.join(self.of[:6]) + (f" and {len(self.of) - 6} more" if len(self.of) > 6 else "")
        return f"{self.status.label} ({names}): {self.status.remedy}"


@dataclass(frozen=True, eq=False)
class Section:
    """One section.

    Attributes:
        name: in plain characters, part of its anchor.
        title: its heading.
        sentences: the result in words.
        figures: those drawn, and those that cannot be with the reason.
        sheets: tables beside those of the figures.
        doubts: statuses other than ok.
        passages: texts, token by token.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    figures: tuple[Figure | Undrawn, ...]
    sheets: tuple[Table, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    passages: tuple[Passage, ...] = ()


def interval(value: float | None, lo: float | None, hi: float | None, digits: int = 3) -> str:
    """A number with its interval, for a sentence."""
    if lo is None or hi is None:
        return f"{number(value, digits)} (no interval)"
    return f"{number(value, digits)} (95 %: {number(lo, digits)} to {number(hi, digits)})"


def interval_of(estimate: Bounded, digits: int = 3) -> str:
    """The same of a number that has its interval."""
    return interval(estimate.value, estimate.lo, estimate.hi, digits)


def of_ten(alpha: float) -> str:
    """The change of a quantity at ten times the size."""
    change = 1 - 10**-alpha
    return f"{abs(change):.0%} {'lower' if change >= 0 else 'higher'}"
