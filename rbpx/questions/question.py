"""Defines a question: how it is asked, what is kept of its answer, and how the answer is shown in every format.

The `views` module of each folder beside this file has one as QUESTION; mypy finds a part that is missing or misfits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from rbpx.config.request import Request
    from rbpx.display.chart.figure import Figure, Undrawn
    from rbpx.display.section import Passage
    from rbpx.display.view import Table
    from rbpx.measure.results import Failure
    from rbpx.runs.group import Group
    from rbpx.store.store import Record, Store

__all__ = ["Measured", "OfGroup", "Question", "each", "one_by_one"]


class OfGroup(Protocol):
    """A result about one group of runs, or about several that one stands for."""

    @property
    def group(self) -> Group | None:
        """The runs that it is about; None for a file."""


@dataclass(frozen=True)
class Measured:
    """What was measured for a question.

    Attributes:
        run_ids: the runs that it may look at now.
        failures: runs that could not be measured.
    """

    run_ids: tuple[str, ...]
    failures: tuple[Failure, ...]


Of = TypeVar("Of", bound="Group")
Result = TypeVar("Result", bound=OfGroup)
One = TypeVar("One")
Told = TypeVar("Told")
More = ParamSpec("More")
Drawn = Sequence["Figure | Undrawn"]


@dataclass(frozen=True)
class Question(Generic[Of, Result]):
    """One question.

    Attributes:
        analyse: finds the results: one for each group, or, across groups, what it finds in all of them.
        keep: writes what was fitted to the store, and returns the rows for programs.
        tables: tables of one result, or of all results of a question across groups.
        sentences: the same in words.
        figures: the same drawn; the ids of the fits go into the SQL that gives their numbers.
        passages: texts of the result, token by token, for a page.
        texts: the same for a terminal, which prints them whole.
        check: refuses what cannot be asked of these groups, before any of them is analysed.
        measure: measures what the store lacks for the question, before it is asked.
        remeasure: measures again instead of asking the store; returns the results and what was measured.
        of_file: answers from a file instead of the store.
        rows: the rows for programs of a result that is in no store.
        page: a page of its own instead of one in the form of a report.
        brief: what of a result is shown after a measurement, where nobody asked for more.
        warnings: those of the sentences that a terminal prints for any number of groups.
        says_all: whether a terminal prints its sentences for any number of groups, because no table says the same.
    """

    analyse: Callable[[duckdb.DuckDBPyConnection, Sequence[Of], Request], Sequence[Result]]
    keep: Callable[[Store, Result], list[Record]]
    tables: Callable[[Sequence[Result]], Sequence[Table]]
    sentences: Callable[[Sequence[Result]], Sequence[str]] = lambda results: ()
    figures: Callable[[Sequence[Result], Sequence[str]], Drawn] = lambda results, fit_ids: ()
    passages: Callable[[Sequence[Result]], Sequence[Passage]] = lambda results: ()
    texts: Callable[[Sequence[Result]], Sequence[Passage]] = lambda results: ()
    check: Callable[[duckdb.DuckDBPyConnection, Store, Sequence[Group], Request], None] = lambda *asked: None
    measure: Callable[[Request], Measured] | None = None
    remeasure: Callable[[Request], tuple[Sequence[Result], Measured]] | None = None
    of_file: Callable[[Path, Request], Result] | None = None
    rows: Callable[[Result], list[Record]] | None = None
    page: Callable[[Sequence[Result]], str] | None = None
    brief: Callable[[Result], Result] | None = None
    warnings: Callable[[Sequence[Result]], Sequence[str]] = lambda results: ()
    says_all: bool = False


def each(
    analyse: Callable[[duckdb.DuckDBPyConnection, Of, Request], Result],
) -> Callable[[duckdb.DuckDBPyConnection, Sequence[Of], Request], Sequence[Result]]:
    """Turn an analysis of one group into one of several groups, one after another."""

    def of_all(connection: duckdb.DuckDBPyConnection, groups: Sequence[Of], request: Request) -> Sequence[Result]:
        return [analyse(connection, group, request) for group in groups]

    return of_all


def one_by_one(
    tell: Callable[Concatenate[One, More], Iterable[Told]],
) -> Callable[Concatenate[Sequence[One], More], list[Told]]:
    """Turn what shows one result (as tables, sentences or figures) into what shows several, one after another."""

    def of_all(results: Sequence[One], /, *more: More.args, **named: More.kwargs) -> list[Told]:
        return [told for result in results for told in tell(result, *more, **named)]

    return of_all
