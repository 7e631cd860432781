"""Asks questions and shows the answers, on a terminal or in sections of a page, from the same tables and sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.section import Doubt, Section
from rbpx.display.terminal import console, print_passages, print_tables, print_under
from rbpx.display.view import Table
from rbpx.errors import RbpxError
from rbpx.files.output import opened
from rbpx.questions.answer import Grid, answer
from rbpx.questions.question import OfGroup
from rbpx.questions.registry import analyses, analysis, question
from rbpx.runs.group import Group
from rbpx.store.store import Record

Shown = TypeVar("Shown", Figure, Undrawn, Figure | Undrawn, Table)
_MOST_IN_WORDS = 3  # sections whose sentences are printed; where there are more, a hint says how to see them


def together(name: str, results: Sequence[OfGroup]) -> list[list[OfGroup]]:
    """Group results as they are shown: each by itself, or all together where a question compares groups.

    Where such a question has a section in a report, the results of each family are shown together.
    """
    if not analysis(name).across:
        return [[result] for result in results]
    if not analysis(name).in_report:
        return [list(results)]
    families: dict[str, list[OfGroup]] = {}
    for result in results:
        families.setdefault(_title(name, [result]), []).append(result)
    return list(families.values())


def tables(name: str, results: Sequence[OfGroup]) -> list[Table]:
    """The tables of a question."""
    return [table for each in together(name, results) for table in question(name).tables(each)]


def show(name: str, results: Sequence[OfGroup], briefly: bool = False) -> None:
    """Print the texts and tables of a question, then its sentences, the meanings of columns, and what to do."""
    asked = question(name)
    if briefly and asked.brief is not None:
        results = [asked.brief(result) for result in results]
    screen, sections, found = console(), together(name, results), tables(name, results)
    print_passages(screen, asked.texts(results))
    meanings = print_tables(screen, found)
    told = []
    if len(sections) <= _MOST_IN_WORDS or asked.says_all:
        about = [f"{_title(name, each)}: " if len(sections) > 1 else "" for each in sections]
        told = [of + sentence for of, each in zip(about, sections, strict=True) for sentence in asked.sentences(each)]
    elif asked.sentences(sections[0]):
        told = [f"{_title(name, each)}: {warning}" for each in sections for warning in asked.warnings(each)]
        told.append(f"In words, for each of these {len(sections)}: --format md.")
    notes = [f"{group.title}: {note}" for group in _groups(results) for note in group.notes]
    print_under(screen, [*told, *meanings], {status for table in found for status in table.doubts()}, notes)


def _title(name: str, results: Sequence[OfGroup]) -> str:
    """What results that are shown together are about; empty for a file."""
    across = analysis(name).across
    return "; ".join(dict.fromkeys(each.title_of_family if across else each.title for each in _groups(results)))


def _groups(results: Sequence[OfGroup]) -> list[Group]:
    return [result.group for result in results if result.group is not None]


def section(name: str, results: Sequence[OfGroup], fit_ids: Sequence[str]) -> Section:
    """The section of a page about one result, or about those of a family, where each part says what it is about."""
    described = analysis(name)
    if described.across or not described.trainings:
        return _section(name, results, fit_ids)
    parts = [(_title(name, [each]), _section(name, [each], fit_ids)) for each in results]
    if len(parts) == 1:
        ((of, part),) = parts
        return replace(part, title=f"{described.title}: {of}")
    return Section(
        name,
        f"{described.title}, {_groups(results)[0].first.family}",
        tuple(
            sentence if at else f"{of}: {sentence}"  # those that follow are about the same
            for of, part in parts
            for at, sentence in enumerate(part.sentences)
        ),
        tuple(_numbered(figure, at, of) for at, (of, part) in enumerate(parts) for figure in part.figures),
        tuple(_numbered(table, at, of) for at, (of, part) in enumerate(parts) for table in part.sheets),
        tuple(
            replace(doubt, of=tuple(f"{each} of {of}" for each in doubt.of))
            for of, part in parts
            for doubt in part.doubts
        ),
        tuple(passage for _, part in parts for passage in part.passages),
    )


def _section(name: str, results: Sequence[OfGroup], fit_ids: Sequence[str]) -> Section:
    asked = question(name)
    tables = [table for table in asked.tables(results) if table.rows]
    names = [table.name for table in tables]  # those of one name are about several groups
    tables = [_numbered(each, at, each.about) if names.count(each.name) > 1 else each for at, each in enumerate(tables)]
    return Section(
        name,
        ", ".join(filter(None, [analysis(name).title, _title(name, results) if analysis(name).across else ""])),
        (*asked.sentences(results), *(line for group in _groups(results) for line in group.of_schedules)),
        tuple(asked.figures(results, fit_ids)),
        tuple(table.without_empty() for table in tables),
        tuple(Doubt(status, tuple(dict.fromkeys(of))) for table in tables for status, of in table.doubts().items()),
        tuple(asked.passages(results)),
    )


def _numbered(each: Shown, at: int, of: str) -> Shown:
    """Give one of several with the same name a name of its own, and a title that says what it is about."""
    return replace(each, name=f"{each.name}-{at}", title=f"{each.title}: {of}")


def perform(
    names: Sequence[str], grids: Sequence[Grid], required: bool = True, writes: bool = False, briefly: bool = False
) -> list[Record]:
    """Ask each question about all grids together, keep what was fitted, print it, and return rows with `analysis`.

    Args:
        names: questions.
        grids: what to look at; the first one says how to print.
        required: whether having no law at all is an error.
        writes: whether `output` is for the rows.
        briefly: whether tables show what fits a screen.

    Raises:
        RbpxError: as in `answer`, or there is no such question.
    """
    unknown = [name for name in names if name not in analyses()]
    if unknown:
        raise RbpxError(f"analyses={unknown[0]} is unknown; known: {', '.join(analyses())}")
    request, rows = grids[0][0], list[Record]()
    for name in names:
        answered = answer(name, grids, required)
        results, found = [result for result, _ in answered], [row for _, of in answered for row in of]
        is_plain = request.format in (Format.csv, Format.json) and not request.details
        rows += [{"analysis": name, **row} for row in (plain_rows(name, results, found) if is_plain else found)]
        if request.format is Format.html:
            _write_page(name, results, request.output)
        elif results and request.format is Format.table:
            show(name, results, briefly)
    if request.format not in (Format.table, Format.html):
        from rbpx.display.records import print_records

        unnamed = ({name: value for name, value in row.items() if name != "analysis"} for row in rows)
        print_records(unnamed, request.format, request.output if writes else None)
    return rows


def _write_page(name: str, results: Sequence[OfGroup], output: str | None) -> None:
    """Write the page that a question has of its own."""
    page = question(name).page
    if page is None:
        raise RbpxError(f"format=html shows one question at a time: python -m rbpx {name} --format html")
    with opened(output) as file:
        file.write(page(results))


_DETAILS: Final = frozenset("objective_name delta aic bic alpha_stderr created_at seen_at versions".split())
_HOW: Final = frozenset("window stride padding bos engine training_flops unique_tokens training_seed".split())


def plain_rows(name: str, results: Sequence[OfGroup], rows: Sequence[Record]) -> list[Record]:
    """The rows of an answer with what its tables show, exact, and what identifies a row.

    What is nested is left to `--details`, and how runs were read where all rows agree in it. A number that a table
    shows and that is nested in `params` comes out of it.
    """
    shown = dict.fromkeys(key for table in tables(name, results) for column in table.columns for key in column.keys)
    columns = dict.fromkeys(key for row in rows for key in row)
    left = _DETAILS | {key for row in rows for key, value in row.items() if isinstance(value, dict | list)}
    left |= {key for key in _HOW if len({row.get(key) for row in rows}) == 1}
    inner = [dict(_leaves(row.get("params"))) for row in rows]
    lifted = [key for key in shown if key not in columns and any(key in of for of in inner)]
    return [
        {key: row[key] for key in columns if key in row and (key in shown or key not in left)}
        | {key: of.get(key) for key in lifted}
        for row, of in zip(rows, inner, strict=True)
    ]


def _leaves(value: object) -> Iterator[tuple[str, object]]:
    """What is nested in mappings, each by its own name."""
    for key, each in value.items() if isinstance(value, dict) else ():
        yield from _leaves(each) if isinstance(each, dict) else [] if isinstance(each, list) else [(key, each)]


def print_results(name: str, results: Sequence[OfGroup], request: Request) -> None:
    """Print results that are in no store, as the question's tables or as rows for programs."""
    if request.format is not Format.table:
        from rbpx.display.records import print_records

        rows = rows_of(name, results)
        print_records(rows if request.details else plain_rows(name, results, rows), request.format)
    elif results:
        show(name, results)


def rows_of(name: str, results: Sequence[OfGroup]) -> list[Record]:
    """The rows of results that are in no store."""
    rows = question(name).rows
    return [] if rows is None else [row for result in results for row in rows(result)]
