"""A section of a report: the result of one question for one group, in sentences, figures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet
from rbpx.display.column import Bounded
from rbpx.display.numbers import number
from rbpx.display.passage import Passage
from rbpx.status import Status

if TYPE_CHECKING:
    import duckdb

__all__ = ["Doubt", "Section", "Sources", "doubts_of", "interval", "interval_of", "of_ten"]


@dataclass(frozen=True, eq=False)
class Sources:
    """Where a section looks beyond the result that it shows.

    Attributes:
        connection: to the index of the store, for a figure that counts anew.
        fit_ids: the fits of this result, which its figures name in their SQL.
    """

    connection: duckdb.DuckDBPyConnection
    fit_ids: Sequence[str]


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
    sheets: tuple[Sheet, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    passages: tuple[Passage, ...] = ()


def doubts_of(named: Iterable[tuple[str, Status]]) -> tuple[Doubt, ...]:
    """The doubts among pairs of a name and its status, names of one status together."""
    names: dict[Status, list[str]] = {}
    for of, status in named:
        if status is not Status.ok:
            names.setdefault(status, []).append(of)
    return tuple(Doubt(status, tuple(dict.fromkeys(of))) for status, of in names.items())


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
