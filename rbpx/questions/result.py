"""What a question answers about a group of runs, or about those that it compares: rows, and what people see of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rbpx.display.chart.figure import Figure, Undrawn
    from rbpx.display.section import Passage
    from rbpx.display.view import Table
    from rbpx.runs.group import Group
    from rbpx.store.store import Record, Store

__all__ = ["Result", "undrawn"]


def undrawn() -> Sequence[Figure | Undrawn]:
    """No figures."""
    return ()


@dataclass(frozen=True, eq=False)
class Result:
    """One result; it can be sent to another process.

    Attributes:
        groups: the runs that it is about; none for a file.
        rows: all that is known, a record a row: what `--details` prints, with the keys that columns of tables name.
        tables: what people see of the rows, and of others.
        sentences: the same in words.
        figures: draws them.
        fits: those of the rows that the relation `fits` keeps.
        rank_fits: rows that the relation `rank_fits` keeps.
        notes: what a terminal says under its tables for any number of groups.
        passages: texts, token by token, for a page.
        texts: the same for a terminal, which prints them whole.
        page: what a page of its own is made of, by the part `page` of the question.
        then: what is done with the store when the rows are kept.
    """

    groups: Sequence[Group]
    rows: Sequence[Record] = ()
    tables: Sequence[Table] = ()
    sentences: Sequence[str] = ()
    figures: Callable[[], Iterable[Figure | Undrawn]] = undrawn
    fits: Sequence[Record] = ()
    rank_fits: Sequence[Record] = ()
    notes: Sequence[str] = ()
    passages: Sequence[Passage] = ()
    texts: Sequence[Passage] = ()
    page: Any = None
    then: Callable[[Store], object] | None = None

    @property
    def fit_ids(self) -> list[str]:
        """The ids of its fits."""
        return [str(row["fit_id"]) for row in self.fits]
