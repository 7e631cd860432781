"""Defines a question: which runs it selects and how it answers; the `ask` module of each folder has one as QUESTION."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rbpx.runs.select.groups import Cells, select

if TYPE_CHECKING:
    import duckdb

    from rbpx.measure.results import Failure
    from rbpx.questions.result import Result
    from rbpx.runs.group import Group

__all__ = ["MeasuredRuns", "Question", "of_each"]


@dataclass(frozen=True)
class MeasuredRuns:
    """The outcome of measuring again for a question.

    Attributes:
        run_ids: the runs that the question may use now.
        failures: the runs that could not be measured.
    """

    run_ids: tuple[str, ...]
    failures: tuple[Failure, ...]


Answers = Callable[["duckdb.DuckDBPyConnection", Sequence["Group"], Any], "Sequence[Result]"]


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        answer: answers about groups of runs: each by itself (`of_each`), or all compared.
        select: selects the groups of runs.
        remeasure: scores runs again instead of reading the store.
    """

    answer: Answers
    select: Callable[[duckdb.DuckDBPyConnection, Any, Cells], Sequence[Group]] = select
    remeasure: Callable[[Any], tuple[Sequence[Result], MeasuredRuns]] | None = None


def of_each(answer: Callable[[duckdb.DuckDBPyConnection, Any, Any], Result], **more: Any) -> Question:
    """Makes a question that is answered for each group of runs by itself."""

    def of_all(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Any) -> Sequence[Result]:
        return [answer(connection, group, request) for group in groups]

    return Question(of_all, **more)
