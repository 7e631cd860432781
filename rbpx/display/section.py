"""A section of a report: what one analysis says of one group, in sentences, figures and tables, with its doubts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet
from rbpx.display.numbers import number
from rbpx.status import Status

if TYPE_CHECKING:
    import duckdb

__all__ = ["Doubt", "Section", "Sources", "doubts_of", "interval", "of_ten"]


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
    """A status that is not good: of what, and what to do about it."""

    status: Status
    of: tuple[str, ...]

    @property
    def text(self) -> str:
        """In one sentence."""
        shown = ", ".join(self.of[:6]) + (f" and {len(self.of) - 6} more" if len(self.of) > 6 else "")
        return f"{self.status.label} ({shown}): {self.status.remedy}"


@dataclass(frozen=True, eq=False)
class Section:
    """One section.

    Attributes:
        name: plain, part of its anchor.
        title: a heading.
        sentences: what it says.
        figures: drawn or not.
        sheets: tables beside those of the figures.
        doubts: statuses that are not good.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    figures: tuple[Figure | Undrawn, ...]
    sheets: tuple[Sheet, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def doubts_of(named: Iterable[tuple[str, Status]]) -> tuple[Doubt, ...]:
    """The doubts among (of what, status), those of one status together."""
    found: dict[Status, list[str]] = {}
    for of, status in named:
        if status is not Status.ok:
            found.setdefault(status, []).append(of)
    return tuple(Doubt(status, tuple(dict.fromkeys(of))) for status, of in found.items())


def interval(value: float | None, lo: float | None, hi: float | None, digits: int = 3) -> str:
    """A number with its interval, in words."""
    if lo is None or hi is None:
        return f"{number(value, digits)} (no interval)"
    return f"{number(value, digits)} (95 %: {number(lo, digits)} to {number(hi, digits)})"


def of_ten(alpha: float) -> str:
    """What a tenfold size changes a quantity by."""
    change = 1 - 10**-alpha
    return f"{abs(change):.0%} {'lower' if change >= 0 else 'higher'}"
