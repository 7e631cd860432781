"""Cells of CSV, written for spreadsheets where that was asked for: none of them is taken for a formula."""

import json
import re
from contextvars import ContextVar
from typing import Any, Final

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
