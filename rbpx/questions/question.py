"""Defines a question: which runs it looks at, and what it answers about them.

The module `ask` of each folder beside this file has one as QUESTION.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rbpx.runs.select.selections import Cells, in_size

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from rbpx.config.request import Request
    from rbpx.measure.results import Failure
    from rbpx.questions.result import Result
    from rbpx.runs.group import Group

__all__ = ["Measured", "Question", "of_each"]


@dataclass(frozen=True)
class Measured:
    """What was measured for a question.

    Attributes:
        run_ids: the runs that it may look at now.
        failures: runs that could not be measured.
    """

    run_ids: tuple[str, ...]
    failures: tuple[Failure, ...]


Answers = Callable[["duckdb.DuckDBPyConnection", Sequence["Group"], "Request"], "Sequence[Result]"]


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        answer: answers about groups of runs: about one after the other (`of_each`), or about all that it compares.
        select: which groups of runs it looks at.
        measure: measures what the store lacks for the question, before it is asked.
        remeasure: measures again instead of asking the store.
        of_file: answers from a file instead of the store.
        page: makes a page of its own of results, instead of one in the form of a report.
    """

    answer: Answers
    select: Callable[[duckdb.DuckDBPyConnection, Request, Cells], Sequence[Group]] = in_size
    measure: Callable[[Request], Measured] | None = None
    remeasure: Callable[[Request], tuple[Sequence[Result], Measured]] | None = None
    of_file: Callable[[Path, Request], Result] | None = None
    page: Callable[[Sequence[Result]], str] | None = None


def of_each(answer: Callable[[duckdb.DuckDBPyConnection, Any, Request], Result], **more: Any) -> Question:
    """A question about one group of runs after the other."""

    def of_all(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> Sequence[Result]:
        return [answer(connection, group, request) for group in groups]

    return Question(of_all, **more)
