"""The one check of numbers in users' tables: a cell in, an exact number or a refusal that names its place out."""

import re
from decimal import Decimal
from typing import Any

from rbpx.errors import RbpxError
from rbpx.files.rows import Row

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def number(value: Any) -> Decimal | None:
    """A finite number exactly as written, None where a cell holds none; true and false are not numbers."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    text = str(value).strip()
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def whole_number(row: Row, field: str, value: Any, meaning: str, *, least: int = 1, most: int = 2**63 - 1) -> int:
    """A whole number within limits.

    Args:
        row: where it is.
        field: what it is.
        value: the cell.
        meaning: what is expected there, for the error.
        least: the smallest one that is accepted.
        most: the largest one.

    Raises:
        RbpxError: it is empty, not a whole number, or out of its limits.
    """
    exact = None if is_empty(value) else number(value)
    if exact is None or not least <= exact <= most or exact != exact.to_integral_value():
        raise RbpxError(f"{row.place}: {field} is {as_written(value)}; {meaning}")
    return int(exact)


def is_empty(value: Any) -> bool:
    """Whether a cell holds nothing."""
    return value is None or (isinstance(value, str) and not value.strip())


def as_written(value: Any) -> str:
    """A cell as an error shows it."""
    return "empty" if is_empty(value) else str(value)
