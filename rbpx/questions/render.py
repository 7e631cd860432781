"""Renders results on a terminal, as sections of a page, and as rows for programs."""

import fnmatch
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from rbpx.config.keys.output import Printed
from rbpx.config.options import Format
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.section import Section, doubt
from rbpx.display.table import Table
from rbpx.display.terminal import WIDEST, console, print_passages, print_tables, print_under
from rbpx.errors import RbpxError, number_of
from rbpx.files.output import plain, printed_to
from rbpx.questions import registry
from rbpx.questions.ask import Grid, answer
from rbpx.questions.registry import analyses, analysis
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.spelling import speaks_shell, typed
from rbpx.status import Status
from rbpx.store.store import Record

Shown = TypeVar("Shown", Figure, Undrawn, Figure | Undrawn, Table)
_LAW: Final = 3  # sizes
_MOST_ANSWERS: Final = 12  # lines at the top
_LONGEST: Final = 240  # tokens of texts together, or of each in a report


def tables(results: Sequence[Result]) -> list[Table]:
    """The tables of all results."""
    return [table for result in results for table in result.tables]


def sentences(name: str, results: Sequence[Result]) -> list[list[str]]:
    """The sentences of each result, the answer first; of several each names its group."""
    titles = [f"{_title(name, result)}: " if len(results) > 1 else "" for result in results]
    return [[title + each for each in result.sentences] for title, result in zip(titles, results, strict=True)]


def show(name: str, results: Sequence[Result], details: bool = False) -> None:
    """Prints the answer, the main table, warnings and notes of each result, or with `details` all."""
    results, lone = _with_laws(results) if not details else (results, "")
    screen, every, told = console(), tables(results), sentences(name, results)
    found = every if details else [table.briefly() for table in every]
    titles = [_title(name, result) for result in results]
    answers = [each[0] for each in told if each]
    first = answers if details else answers[:_MOST_ANSWERS]
    left = len(answers) - len(first)
    print_under(screen, [*first, *([f"and {left} more"] if left else [])])
    if answers:
        screen.print()
    texts = [text for result in results for text in result.texts]
    room = _LONGEST // max(1, sum(len(text.readings) for text in texts))
    shown = texts if details else [text.beginning(room) for text in texts]
    print_passages(screen, shown)
    meanings = print_tables(screen, found, None if details else min(WIDEST, screen.width))
    notes = [f"{title}: {note}" for title, each in zip(titles, results, strict=True) for note in each.notes]
    notes += [f"{group.title}: {note}" for each in results for group in each.groups for note in group.notes]
    notes += [lone] if lone else []
    more = [sentence for each in told for sentence in each[1:]] if details else []
    print_under(screen, [*more, *meanings], {status for table in found for status in table.shown_doubts()}, notes)
    is_more = any(each[1:] for each in told) or any(table.brief is not None for table in every) or shown != texts
    if is_more and not details:
        screen.print("More: --details, --format html." if speaks_shell() else "More: .show(details=True).")


def _with_laws(results: Sequence[Result]) -> tuple[Sequence[Result], str]:
    """Leaves out checkpoints of too few sizes for a law, where others have one, with a line about them."""
    lone = [each for each in results if all(group.n_sizes < _LAW and _is_checkpoint(group) for group in each.groups)]
    if not lone or not any(group.n_sizes >= _LAW for each in results for group in each.groups):
        return results, ""
    most = max(group.n_sizes for each in lone for group in each.groups)
    sizes = "one size" if most == 1 else f"at most {most} sizes"
    return [each for each in results if each not in lone], (
        f"{number_of(len(lone), 'checkpoint')} of {sizes} {'has' if len(lone) == 1 else 'have'} no law in size: "
        f"ask along their tokens, {typed(axis='D')}, or --details."
    )


def _is_checkpoint(group: Group) -> bool:
    return all(run.training_step is not None or run.training_tokens is not None for run in group.runs)


def _title(name: str, result: Result) -> str:
    across = analysis(name).across
    return "; ".join(dict.fromkeys(each.title_of_family if across else each.title for each in result.groups))


def section(name: str, results: Sequence[Result]) -> Section:
    """The section of a page about one result, or about those of a family."""
    titles, several = [_title(name, each) for each in results], len(results) > 1
    parts = [_section(name, each, of, several) for each, of in zip(results, titles, strict=True)]
    if not several:
        return parts[0]
    named = list(enumerate(zip(titles, parts, strict=True)))
    return Section(
        name,
        f"{analysis(name).title}, {results[0].groups[0].first.family}",
        tuple(
            sentence if at else f"{of}: {sentence}"  # the first sentence names the group
            for _, (of, part) in named
            for at, sentence in enumerate(part.sentences)
        ),
        tuple(_numbered(figure, at, of) for at, (of, part) in named for figure in part.figures),
        tuple(_numbered(table, at, of) for at, (of, part) in named for table in part.sheets),
        tuple(each for part in parts for each in part.doubts),
        tuple(passage for part in parts for passage in part.passages),
    )


def _section(name: str, result: Result, of: str, names_group: bool) -> Section:
    described, tables = analysis(name), [table for table in result.tables if table.rows]
    names = [table.name for table in tables]  # tables of several groups share a name
    tables = [_numbered(each, at, each.about) if names.count(each.name) > 1 else each for at, each in enumerate(tables)]
    of_schedules = [line for group in result.groups for line in group.of_schedules]
    ending, doubts = f" of {of}" if names_group else "", dict[Status, list[str]]()
    for table in tables:
        for status, rows in table.doubts().items():
            doubts.setdefault(status, []).extend(f"{each}{ending}" for each in rows)
    group = f", {of}" if described.across else f": {of}" if described.trainings else ""
    return Section(
        name,
        described.title + group,
        (*result.sentences, *result.notes, *of_schedules),
        tuple(result.figures()),
        tuple(table.without_empty() for table in tables),
        tuple(doubt(status, list(dict.fromkeys(rows))) for status, rows in doubts.items()),
        tuple(text.beginning(_LONGEST) for text in result.passages),
    )


def _numbered(each: Shown, at: int, of: str) -> Shown:
    return replace(each, name=f"{each.name}-{at}", title=f"{each.title}: {of}")


def perform(
    names: Sequence[str], grids: Sequence[Grid], required: bool = True, output: str | None = None
) -> list[Record]:
    """Asks each question about all grids together, stores its fits, prints it, and returns its rows with `analysis`.

    The first request says how to print; `required` and errors are as in `answer`.
    """
    unknown = [name for name in names if name not in registry.names()]
    if unknown:
        raise RbpxError(f"analyses={unknown[0]} is unknown; known: {', '.join(analyses())}")
    request, rows = grids[0][0], list[Record]()
    with printed_to(output):
        for name in names:
            results = answer(name, grids, required)
            rows += [{"analysis": name, **row} for row in rows_for(name, request, results)]
            if results and request.format is Format.table:
                show(name, results, request.details)
        if request.format is not Format.table:
            from rbpx.display.records import print_records

            unnamed = ({name: value for name, value in row.items() if name != "analysis"} for row in rows)
            print_records(unnamed, request.format)
    return rows


def rows_for(name: str, request: Printed, results: Sequence[Result]) -> list[Record]:
    """Rows in a request's format: plain in CSV and JSON unless it asks for details."""
    is_plain = request.format in (Format.csv, Format.json) and not request.details
    return plain_rows(name, results) if is_plain else detailed_rows(results)


def rows_of(results: Sequence[Result]) -> list[Record]:
    """The full rows of results."""
    return [row for result in results for row in (*result.rows, *result.beside)]


def detailed_rows(results: Sequence[Result]) -> list[Record]:
    """The full rows of results as they are printed."""
    return [with_status_label({key: plain(value) for key, value in row.items()}) for row in rows_of(results)]


def plain_rows(name: str, results: Sequence[Result]) -> list[Record]:
    """The rows with the question's plain columns, at full precision."""
    described = analysis(name)
    every = (row for result in results for row in result.plain or result.rows)
    rows = [row for row in every if not described.kinds or row.get("kind") in described.kinds]
    known = dict.fromkeys(
        key for row in rows for key, value in row.items() if not isinstance(value, dict | list | tuple)
    )
    columns = [key for each in described.plain or known for key in (fnmatch.filter(known, each) or [each])]
    return [{key: plain(row.get(key)) for key in columns} for row in rows]


def with_status_label(row: Record) -> Record:
    """Adds the label of its status to a row."""
    return row | {"status_word": Status(row["status"]).label} if row.get("status") in list(Status) else row


def print_results(name: str, results: Sequence[Result], request: Printed) -> None:
    """Prints results as tables or as rows for programs, to the output of the request."""
    with printed_to(request.output):
        if request.format is not Format.table:
            from rbpx.display.records import print_records

            print_records(rows_for(name, request, results), request.format)
        elif results:
            show(name, results, request.details)
