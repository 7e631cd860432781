"""Cells of tables: exact numbers read from users' files, and cells of CSV that no spreadsheet takes for a formula."""

import json
import re
import reprlib
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, Final

from rbpx.errors import RbpxError

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_SCALED = re.compile(r"([+-]?[\d.,]+) ?([kmbt])", re.ASCII | re.IGNORECASE)
_POWERS = {"k": 3, "m": 6, "b": 9, "t": 12}
_BLANK = re.compile(r"(?<=\d)[ \u00a0\u202f](?=\d{3}(?!\d))")  # between groups of three digits, in French and others
_SWAPPED = str.maketrans(",.", ".,")
_NO_VALUE = {"nan", "na", "n/a", "#n/a", "null", "none"}  # as tables write it, in any case
_LONGEST = 100  # characters of a cell in an error
_SHORT = reprlib.Repr()  # of the beginning of what is nested, however deep that is
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _LONGEST


def number(value: Any) -> Decimal | None:
    """A finite number exactly as written, None where a cell is not one; true and false are not numbers."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    text = str(value).strip()
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def large_number(value: Any) -> Decimal | None:
    """A number as `number` reads it, or as people write large ones: 1.2B, 1,100M, 10k, 2T, 1,000; None for others.

    A comma stands before three digits and nowhere else: 1,5 has two readings.
    """
    text = value.strip() if isinstance(value, str) else ""
    scaled = _SCALED.fullmatch(text)
    if scaled:
        exact = large_number(scaled[1])
        return None if exact is None else exact.scaleb(_POWERS[scaled[2].lower()])
    return number(text.replace(",", "") if _GROUPED.fullmatch(text) else value)


def with_point(cell: str) -> str:
    """A number whose decimals stand after a comma, with a point there; any other cell as it is.

    Its groups of three digits may be divided by points or blanks.
    """
    written = _BLANK.sub("", cell).translate(_SWAPPED)
    return written if large_number(written) is not None else cell


def has_unit(value: Any) -> bool:
    """Whether a number is written with the letter of its unit: 60M, 7B."""
    return isinstance(value, str) and bool(_SCALED.fullmatch(value.strip()))


def whole_number(place: str, field: str, value: Any, meaning: str, *, least: int = 1, most: int = 2**63 - 1) -> int:
    """A whole number within limits.

    Args:
        place: where the cell is, for the error.
        field: the field that the cell holds.
        value: the cell.
        meaning: what is expected there, for the error.
        least: the smallest number that is accepted.
        most: the largest.

    Raises:
        RbpxError: the cell is empty, not a whole number, or out of its limits.
    """
    exact = None if is_empty(value) else number(value)
    if exact is None or not least <= exact <= most or exact != exact.to_integral_value():
        raise RbpxError(f"{place}: {field} is {as_written(value)}; {meaning}")
    return int(exact)


def is_empty(value: Any) -> bool:
    """Whether a cell is empty."""
    return value is None or (isinstance(value, str) and not value.strip())


def is_no_value(value: Any) -> bool:
    """Whether a cell says that there is no number: NaN, NA, null and the like."""
    if isinstance(value, str):
        return value.strip().lstrip("+-").lower() in _NO_VALUE
    return isinstance(value, float) and value != value


def as_written(value: Any) -> str:
    """A cell as an error shows it, shortened where it is long."""
    if is_empty(value):
        return "empty"
    text = _SHORT.repr(value) if isinstance(value, list | dict) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def quoted(value: Any) -> str:
    """A cell as an error shows it where its type matters: as Python writes it, shortened where it is long."""
    return _SHORT.repr(value)


_for_spreadsheets: Final = ContextVar("for_spreadsheets", default=False)
# What spreadsheets take for a formula, signs of full width too: at the beginning, and after what ends a cell or a row
# where the separator is another, since a quote that is not the first of a cell keeps nothing together there.
_RUN: Final = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")


def write_for_spreadsheets(on: bool) -> None:
    """Whether CSV is written so that no spreadsheet takes a cell for a formula; until the next call."""
    _for_spreadsheets.set(on)


def csv_cell(value: Any) -> Any:
    """A value as a cell of CSV: what is nested as JSON; for spreadsheets, text that they would run behind a quote."""
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)
    if _for_spreadsheets.get() and isinstance(value, str):
        return _RUN.sub(r"\1'", value)
    return value
