"""Reads exact numbers from cells of users' tables, and writes cells of CSV that no spreadsheet takes for a formula."""

import json
import re
import reprlib
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, Final

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_SCALED = re.compile(r"([+-]?[\d.,]+) ?([kmbt])", re.ASCII | re.IGNORECASE)
_POWERS = {"k": 3, "m": 6, "b": 9, "t": 12}
_BLANK = re.compile(r"(?<=\d)[ \u00a0\u202f](?=\d{3}(?!\d))")  # between groups of three digits, as in French
_SWAPPED = str.maketrans(",.", ".,")
_NO_VALUE = {"nan", "na", "n/a", "#n/a", "null", "none"}  # in any case
_LONGEST = 100  # characters of a cell in an error
_SHORT = reprlib.Repr()  # of the first parts of a nested value
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _LONGEST


def number(value: Any) -> Decimal | None:
    """The finite number of a cell, exactly as written; None for any other, or a truth."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    text = str(value).strip()
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def large_number(value: Any) -> Decimal | None:
    """As `number`, also in forms such as 1.2B, 1,100M, 10k, 2T and 1,000.

    A comma must precede three digits: 1,5 is ambiguous.
    """
    text = value.strip() if isinstance(value, str) else ""
    scaled = _SCALED.fullmatch(text)
    if scaled:
        exact = large_number(scaled[1])
        return None if exact is None else exact.scaleb(_POWERS[scaled[2].lower()])
    return number(text.replace(",", "") if _GROUPED.fullmatch(text) else value)


def with_point(cell: str) -> str:
    """A number with a decimal comma, and points or blanks between groups, with a point; any other cell as it is."""
    written = _BLANK.sub("", cell).translate(_SWAPPED)
    return written if large_number(written) is not None else cell


def has_unit(value: Any) -> bool:
    """Whether a number ends in the letter of a unit: 60M, 7B."""
    return isinstance(value, str) and bool(_SCALED.fullmatch(value.strip()))


def is_empty(value: Any) -> bool:
    """Whether a cell is empty."""
    return value is None or (isinstance(value, str) and not value.strip())


def is_no_value(value: Any) -> bool:
    """Whether a cell is NaN, NA, null or the like."""
    if isinstance(value, str):
        return value.strip().lstrip("+-").lower() in _NO_VALUE
    return isinstance(value, float) and value != value


def as_written(value: Any) -> str:
    """A cell as errors show it, shortened."""
    if is_empty(value):
        return "empty"
    text = _SHORT.repr(value) if isinstance(value, list | dict) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def quoted(value: Any) -> str:
    """The Python literal of a cell, shortened, for errors in which its type matters."""
    return _SHORT.repr(value)


_for_spreadsheets: Final = ContextVar("for_spreadsheets", default=False)
# What spreadsheets take for a formula, full-width signs included: at the start of a cell, and after characters that end
# a cell or row under another separator, where a quote inside a cell protects nothing.
_RUN: Final = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")


def write_for_spreadsheets(on: bool) -> None:
    """Set whether CSV is written so that no spreadsheet takes a cell for a formula."""
    _for_spreadsheets.set(on)


def csv_cell(value: Any) -> Any:
    """A value as a cell of CSV: nested values as JSON; for spreadsheets, formulas behind a quote."""
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)
    if _for_spreadsheets.get() and isinstance(value, str):
        return _RUN.sub(r"\1'", value)
    return value
