"""Reads the number or the name of one cell of an imported table, or raises `CellError` with the fault.

Each distinct cell is read once. `CellError` has neither the location nor the column.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from rbpx.files.cells import as_written, has_unit, is_empty, is_no_value, large_number, number, quoted, with_point
from rbpx.spelling import typed
from rbpx.store.imports.units import shown
from rbpx.ties import Ties

BELOW: Final = 10**300
_PLAIN: Final = re.compile(r"-?(?:0?\.[0-9]+|[0-9]{1,9}\.[0-9]*)")  # floats that need no exact arithmetic
_LONG: Final = 19  # digits that 64 bits may not hold
_FEWEST_ROUNDED: Final = 1000  # a smaller count with decimals is one of thousands, millions or billions
_PERCENT: Final = 0.01


class CellError(Exception):
    """The fault of a cell: the words after the name of its column, and the factor that mends the column.

    `of_column` says whether all its numbers need a factor or another decimal sign.
    """

    def __init__(self, text: str, of_column: bool = False, times: float | None = None) -> None:
        super().__init__(text)
        self.of_column, self.times = of_column, times


@dataclass(frozen=True)
class Number:
    """The numbers that a field may hold.

    Attributes:
        meaning: what is expected, for the error.
        above: whether `least` itself is excluded.
        is_rounded: whether others are rounded to a whole number.
        scaled: whether it may be written 1.2B, 60M or 1,000.
        may_be_nan: whether NaN, NA and null count as empty.
        below_0: added to the error for a number below 0.
        quoted_as: its name, where errors are of no column: they have that, the literal of the cell, and no verb.
    """

    meaning: str
    least: float = 0
    most: float = BELOW
    above: bool = False
    whole: bool = False
    is_rounded: bool = False
    scaled: bool = True
    may_be_nan: bool = False
    below_0: str = ""
    quoted_as: str = ""

    def of(self, cell: Any, times: Decimal | None = None) -> float | None:
        """The number of a cell times the factor of its column; None where it is empty, NaN, NA or null."""
        plain = cell if times is None and type(cell) is (int if self.whole else float) else None
        if times is None and isinstance(cell, str):
            if self.whole and cell.isascii() and cell.isdigit() and len(cell) < _LONG:
                plain = int(cell)
            elif not (self.scaled or self.whole) and _PLAIN.fullmatch(cell):
                plain = float(cell)
        if plain is not None and self.least <= plain < self.most and not (self.above and plain == self.least):
            return plain
        if is_empty(cell) or (self.may_be_nan and is_no_value(cell)):
            return None
        if times is not None and has_unit(cell):
            raise CellError(f"is {as_written(cell)}, but its column is read times {shown(times)}; write numbers alone")
        exact = self.exact(cell, times)
        if exact is not None and self.is_rounded and exact >= _FEWEST_ROUNDED:
            exact = exact.to_integral_value()
        sound = exact is not None and self.least <= exact <= self.most and abs(exact) < BELOW
        if exact is None or not sound or (self.above and exact == self.least) or (self.whole and exact % 1):
            raise self._fault(cell, exact, times)
        return int(exact) if self.whole else float(exact)

    def exact(self, cell: Any, times: Decimal | None = None) -> Decimal | None:
        """The number as written, times the factor, which of a share with a percent sign is 0.01; None for no number."""
        if self.most == 1 and isinstance(cell, str) and cell.rstrip().endswith("%"):
            cell, times = cell.rstrip()[:-1], times or Decimal(str(_PERCENT))
        exact = large_number(cell) if self.scaled else number(cell)
        return exact if exact is None or times is None else exact * times

    def _fault(self, cell: Any, exact: Decimal | None, times: Decimal | None) -> CellError:
        if self.quoted_as:
            return CellError(f"{self.quoted_as} {quoted(cell)} {self.meaning}")
        if isinstance(cell, str) and "," in cell and with_point(cell) != cell:
            comma = f"where decimals stand after a comma, give {typed(decimal=',')}"
            return CellError(f"is {as_written(cell)}; {comma}", of_column=True)
        below = self.below_0 if exact is not None and exact < 0 else ""
        by = "" if times is None else f" times {shown(times)}"
        is_percent = self.most == 1 and times is None and 1 < (number(cell) or 0) <= 1 / _PERCENT
        told = f"is {as_written(cell)}{by}; {self.meaning}{below}"
        return CellError(told, is_percent, _PERCENT if is_percent else None)


def value_of(
    cell: Any, field: str, numbers: Number | None, given: Any = None, needed: bool = False, times: Decimal | None = None
) -> Any:
    """The number or the name that a cell holds, which must not differ from what all rows are `given`.

    Raises:
        CellError: it is no such number or name.
    """
    value = _name_of(cell, field) if numbers is None else numbers.of(cell, times)
    if value is None and needed and given is None:
        rule = "pessimistic, optimistic or mid" if field == "ties" else "NAME"
        fill = f"is empty; fill in the {field}, or give {field}={rule}"
        raise CellError(fill if numbers is None else f"is {as_written(cell)}; {numbers.meaning}")
    if given is not None and value not in (None, given):
        told = quoted(value) if numbers is None else as_written(cell)
        raise CellError(f"is {told}, but {field}={given} was given; leave one of them out")
    return given if value is None else value


def _name_of(cell: Any, field: str) -> str | None:
    if is_empty(cell):
        return None
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise CellError(f"is {quoted(cell)}, but a name is expected; write it as text")
    name = str(cell).strip()
    if field == "ties" and name not in list(Ties):
        raise CellError(f"is {quoted(name)}; known: {', '.join(Ties)}")
    return name
