"""Reads a table of CSV or TSV from its text: returns the names of its columns and its rows.

The heading decides the separator. Blank lines, comments that begin with #, and a line `sep=;` for Excel may precede it.
"""

import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rbpx.errors import RbpxError, number_of
from rbpx.files.cells import number

_SEPARATORS: Final = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}  # separator -> its name in errors
_SAID: Final = re.compile(r'"?sep=([^"\r\n])"?\s*', re.IGNORECASE)  # Excel's line for the separator
_REMARK: Final = re.compile(r"\s*#(?![,;\t|])")  # a column may be named #

_Rows = Iterator[tuple[int, dict[str, str]]]  # line number and cells of each row


def read_delimited(text: str, path: Path, usual: str) -> tuple[Sequence[str], _Rows]:
    """The columns and rows of a table; `usual` separates a heading of one column.

    Raises:
        RbpxError: two separators fit equally well, or the heading is among the comments before it.
    """
    csv.field_size_limit(sys.maxsize)
    lines, start, n_before, said, remark = io.StringIO(text, newline=""), 0, 0, "", ""
    while line := lines.readline():
        told = _SAID.fullmatch(line)
        if line.strip() and not told and not _REMARK.match(line):
            break
        said = told[1] if told else said
        remark = line.strip() if _REMARK.match(line) else remark
        start, n_before = lines.tell(), n_before + 1
    separator = said or _separator(lines, start, usual, path)
    lines.seek(start)
    reader = csv.reader(lines, strict=True, delimiter=separator)
    columns = next(reader, [])
    if remark and any(number(cell) is not None for cell in columns):
        raise RbpxError(f"{path}, line {n_before + 1}: numbers name no columns; is {remark[:90]!r} the heading?")
    return columns, _rows(reader, columns, path, n_before, _SEPARATORS.get(separator, repr(separator)))


def _separator(lines: io.StringIO, start: int, usual: str, path: Path) -> str:
    """The separator that gives the heading most columns; a tab wherever there is one."""
    width = dict[str, int]()
    for each in _SEPARATORS:
        lines.seek(start)
        with suppress(csv.Error):  # quoted cells do not fit this separator
            width[each] = len(next(csv.reader(lines, strict=True, delimiter=each), ()))
    best = [each for each, n in width.items() if n == max(width.values())]
    if width.get("\t", 0) > 1:
        return "\t"
    if len(best) > 1 and width[best[0]] > 1:
        alike = " or ".join(_SEPARATORS[each] for each in best)
        raise RbpxError(f"{path}: its columns may be separated by {alike}; say so in a first line, as sep={best[0]}")
    return best[0] if len(best) == 1 else usual


def _rows(reader: Any, columns: list[str], path: Path, n_before: int, separated: str) -> _Rows:
    number, line = 1, n_before + reader.line_num + 1  # a row with quoted line breaks has several lines
    for cells in reader:
        if len(cells) == len(columns):
            yield line, dict(zip(columns, cells, strict=True))
            number += 1
        elif len(cells) > 1 or any(cell.strip() for cell in cells):  # a row of empty cells has separators
            raise RbpxError(
                f"row {number} of {path} (line {line}): {number_of(len(cells), 'cell')} where the header has "
                f"{len(columns)}, separated by {separated}; fix that line"
            )
        line = n_before + reader.line_num + 1
