"""The answer of a question about one or several groups of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rbpx.display.chart.figure import Figure, Undrawn
    from rbpx.display.section import Passage
    from rbpx.display.table import Table
    from rbpx.runs.group import Group
    from rbpx.store.store import Record, Store


def undrawn() -> Sequence[Figure | Undrawn]:
    """No figures."""
    return ()


@dataclass(frozen=True, eq=False)
class Result:
    """One result; it can be pickled.

    Attributes:
        rows: the answer; sentences are the same in words.
        fits: for the relation `fits`.
        notes: sentences that a terminal prints below the tables.
        passages: texts, token by token, for a page; texts those for a terminal.
        then: called with the store when the rows are stored.
        beside: rows that `--details` prints too, such as those of single forms where an average answers.
        plain: the answer with the question's plain columns, where rows have some in `params`.
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
    then: Callable[[Store], object] | None = None
    beside: Sequence[Record] = ()
    plain: Sequence[Record] = ()
