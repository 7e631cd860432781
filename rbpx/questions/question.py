"""Defines a question: which runs it looks at, and what it answers about them.

The module `ask` of each folder beside this file has one as QUESTION.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rbpx.runs.select.ways import Cells, in_size

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
        answer: answers about groups of runs: about one (`of_each`), or about all that are compared (`across`).
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


# ------------------------------------------------------------------ parts of questions that are not one function yet


def each(analyse: Any) -> Any:
    """Turn an analysis of one group into one of several groups, one after another."""
    return lambda connection, groups, request: [analyse(connection, group, request) for group in groups]


def one_by_one(tell: Any) -> Any:
    """Turn what shows one result into what shows several, one after another."""

    def of_all(results: Any, /, *more: Any, **named: Any) -> list[Any]:
        return [told for result in results for told in tell(result, *more, **named)]

    return of_all


def of_parts(analyse: Any, keep: Any, tables: Any, sentences: Any = None, figures: Any = None, **more: Any) -> Question:
    """A question whose rows, tables, sentences and figures are made of results of its own."""
    shows = {name: more.pop(name, None) for name in ("passages", "texts")}
    together = more.pop("together", None)

    def answer(connection: Any, groups: Any, request: Any) -> Any:
        results = analyse(connection, groups, request)
        parts: dict[Any, list[Any]] = {}
        for at, result in enumerate(results):
            group = result.group
            key = at if together is None or group is None else "" if together == "all" else group.title_of_family
            parts.setdefault(key, []).append(result)
        return [told(part) for part in parts.values()]

    def told(part: Any) -> Any:
        from rbpx.questions.result import Result, undrawn
        from rbpx.store.schema import FITS

        kept = [keep(None, result) for result in part]
        rest = {k: v for each in kept if isinstance(each, dict) for k, v in each.items() if k != "rows"}
        rows = [row for each in kept for row in (each["rows"] if isinstance(each, dict) else each)]
        fits = rest.pop("fits", None) or [
            {n: r[n] for n in FITS.names} for r in rows if r.get("fit_id") and "created_at" in r
        ]
        ids = [row["fit_id"] for row in fits]
        return Result(
            [result.group for result in part if result.group is not None],
            rows,
            tables(part),
            () if sentences is None else sentences(part),
            undrawn if figures is None else partial(figures, part, ids),
            fits,
            passages=() if shows["passages"] is None else shows["passages"](part),
            texts=() if shows["texts"] is None else shows["texts"](part),
            page=part if more.get("page") else None,
            **rest,
        )

    of_file = more.pop("of_file", None)
    more["of_file"] = None if of_file is None else lambda path, request: told([of_file(path, request)])
    return Question(answer, **more)
