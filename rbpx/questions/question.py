"""Defines a question; the `ask` module of each folder has one as QUESTION."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rbpx.runs.select.groups import Cells, select

if TYPE_CHECKING:
    import duckdb

    from rbpx.config.keys.output import Reported
    from rbpx.display.chart.figure import Figure
    from rbpx.display.section import Fact, Section
    from rbpx.display.table import Column, Table
    from rbpx.measure.results import Failure
    from rbpx.questions.result import Result
    from rbpx.runs.group import Group
    from rbpx.store.store import Record


@dataclass(frozen=True)
class MeasuredRuns:
    """The runs that were measured again, and those that could not be."""

    run_ids: tuple[str, ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class OfAll:
    """What a question says of all groups side by side: columns with cells for each result, tables as the paper's."""

    columns: Sequence[Column] = ()
    cells: Sequence[Record] = ()
    paper: Sequence[Table] = ()
    figures: Iterable[Figure] = ()


Grids = Sequence[tuple["Reported", Sequence[str] | None]]
"""Requests of a page, each with the cells that it is about, or None for all runs that it selects."""


@dataclass(frozen=True)
class OnPage:
    """What a report does with a question besides showing its sections.

    Attributes:
        suits: whether it is asked about a group.
        facts: the main numbers of a result with rows.
        of_all: compares its results about all groups, which are asked then however many there are.
        opens: whether the report begins with a result.
        opening: makes the section that it begins with of the question's.
        grids: requests of its own, each asked by itself, made of the report's, of its groups (where it is no part of a
            report, those of the others), and of whether another question opens the report.
    """

    suits: Callable[[Group], bool] = lambda group: True
    facts: Callable[[Result], Iterator[Fact]] | None = None
    of_all: Callable[[Sequence[Result]], OfAll] | None = None
    opens: Callable[[Result], bool] | None = None
    opening: Callable[[Result, Section], Section] = lambda result, section: section
    grids: Callable[[Grids, Sequence[Group], bool], Sequence[Grids]] | None = None


Answers = Callable[["duckdb.DuckDBPyConnection", Sequence["Group"], Any], "Sequence[Result]"]


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        answer: about groups of runs, each by itself (`of_each`) or all compared.
        remeasure: scores runs again instead of reading the store.
    """

    answer: Answers
    select: Callable[[duckdb.DuckDBPyConnection, Any, Cells], Sequence[Group]] = select
    remeasure: Callable[[Any], tuple[Sequence[Result], MeasuredRuns]] | None = None
    page: OnPage = OnPage()


def of_each(answer: Callable[[duckdb.DuckDBPyConnection, Any, Any], Result], **more: Any) -> Question:
    """Makes a question that is answered for each group by itself."""

    def of_all(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Any) -> Sequence[Result]:
        return [answer(connection, group, request) for group in groups]

    return Question(of_all, **more)
