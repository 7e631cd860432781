"""Asks questions and prints the answers: tables, plots or rows on stdout; what was fitted is kept."""

from collections.abc import Sequence

from rbpx.analyses.answer import Answer, Grid, answer
from rbpx.analyses.question import OfGroup
from rbpx.analyses.registry import analyses, question
from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.files.output import opened
from rbpx.store.store import Record


def perform(names: Sequence[str], grids: Sequence[Grid], required: bool = True, writes: bool = False) -> list[Record]:
    """Ask each question about all grids together, keep what was fitted, print it, and return rows with `analysis`.

    Args:
        names: questions.
        grids: what to look at; the first one says how to print.
        required: whether having no law at all is an error.
        writes: whether `output` is for the rows.

    Raises:
        RbpxError: as in `answer`, or there is no such question.
    """
    unknown = [name for name in names if name not in analyses()]
    if unknown:
        raise RbpxError(f"analyses={unknown[0]} is unknown; known: {', '.join(analyses())}")
    request, rows = grids[0][0], list[Record]()
    for name in names:
        results, found = _apart(answer(name, grids, required))
        rows += [{"analysis": name, **row} for row in found]
        if request.format is Format.html:
            _write_page(name, results, request.output)
        elif results and request.format is Format.table:
            show(name, results)
            if request.plot:
                plot(name, results)
    if request.format not in (Format.table, Format.html):
        from rbpx.display.records import print_records

        unnamed = ({name: value for name, value in row.items() if name != "analysis"} for row in rows)
        print_records(unnamed, request.format, request.output if writes else None)
    return rows


def _write_page(name: str, results: Sequence[OfGroup], output: str | None) -> None:
    """Write the page that a question has of its own."""
    page = question(name).page
    if page is None:
        raise RbpxError(f"format=html is of one question: python -m rbpx {name} --format html")
    with opened(output) as file:
        file.write(page(results))


def _apart(found: Answer) -> tuple[list[OfGroup], list[Record]]:
    return [result for result, _ in found], [row for _, rows in found for row in rows]


def print_results(name: str, results: Sequence[OfGroup], request: Request) -> None:
    """Print results that are in no store, as the question's tables or as rows for programs."""
    if request.format is not Format.table:
        from rbpx.display.records import print_records

        print_records(rows_of(name, results), request.format)
    elif results:
        show(name, results)


def rows_of(name: str, results: Sequence[OfGroup]) -> list[Record]:
    """The rows of results that are in no store."""
    rows = question(name).rows
    return [] if rows is None else [row for result in results for row in rows(result)]
