"""Reads one cell of an imported table: the name or number of a field, or `CellError` with the fault.

Each distinct cell is checked once. `CellError` has neither the location nor the column.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from rbpx.files.cells import as_written, has_unit, is_empty, is_no_value, large_number, number, quoted, with_point
from rbpx.spelling import typed
from rbpx.store.imports.units import shown
from rbpx.store.schema import VARY
from rbpx.ties import Ties

_PLAIN: Final = re.compile(r"0?\.[0-9]+|[0-9]{1,9}\.[0-9]*")  # a float written like this needs no exact arithmetic
_BELOW: Final = 10**300
_FEWEST_ROUNDED: Final = 1000  # a smaller count with decimals is one of thousands, millions or billions


class CellError(Exception):
    """The fault of a cell: the words after the name of its column."""


class ColumnError(CellError):
    """The fault of a cell that is that of its whole column, whose numbers need a factor or another decimal sign."""

    def __init__(self, text: str, times: float | None = None) -> None:
        """Keeps the factor that mends the column."""
        super().__init__(text)
        self.times = times


_PERCENT: Final = 0.01


@dataclass(frozen=True)
class Number:
    """The numbers that a field may hold.

    Attributes:
        meaning: what is expected, for the error.
        least: the smallest.
        most: the largest.
        above: whether `least` itself is excluded.
        whole: whether it is a whole number.
        is_rounded: whether others are rounded to a whole number.
        scaled: whether it may be written 1.2B, 60M or 1,000.
        may_be_nan: whether NaN, NA and null count as empty.
        below_0: added to the error for a number below 0.
    """

    meaning: str
    least: float = 0
    most: float = _BELOW
    above: bool = False
    whole: bool = False
    is_rounded: bool = False
    scaled: bool = True
    may_be_nan: bool = False
    below_0: str = ""

    def of(self, cell: Any, times: Decimal | None = None) -> float | None:
        """The number of a cell times the factor of its column; None where it is NaN, NA or null."""
        plain = not self.scaled and times is None and isinstance(cell, str) and _PLAIN.fullmatch(cell)
        if plain and self.least <= float(cell) < self.most:
            return float(cell)
        if is_empty(cell) or (self.may_be_nan and is_no_value(cell)):
            return None
        if times is not None and has_unit(cell):
            raise CellError(f"is {as_written(cell)}, but its column is read times {shown(times)}; write numbers alone")
        exact = large_number(cell) if self.scaled else number(cell)
        if exact is not None and times is not None:
            exact *= times
        if exact is not None and self.is_rounded and exact >= _FEWEST_ROUNDED:
            exact = exact.to_integral_value()
        sound = exact is not None and self.least <= exact <= self.most and abs(exact) < _BELOW
        if exact is None or not sound or (self.above and exact == self.least) or (self.whole and not _is_whole(exact)):
            if isinstance(cell, str) and "," in cell and with_point(cell) != cell:
                comma = f"where decimals stand after a comma, give {typed(decimal=',')}"
                raise ColumnError(f"is {as_written(cell)}; {comma}")
            below = self.below_0 if exact is not None and exact < 0 else ""
            by = "" if times is None else f" times {shown(times)}"
            told = f"is {as_written(cell)}{by}; {self.meaning}{below}"
            if self.most == 1 and times is None and exact is not None and 1 < exact <= 1 / _PERCENT:
                raise ColumnError(told, _PERCENT)
            raise CellError(told)
        return int(exact) if self.whole else float(exact)


def _is_whole(exact: Decimal) -> bool:
    return exact == exact.to_integral_value()


def _whole(meaning: str, least: int = 1, most: int = 2**63 - 1, is_rounded: bool = False) -> Number:
    return Number(meaning, least, most, whole=True, is_rounded=is_rounded)


def _positive(meaning: str, whole: bool = False) -> Number:
    how = f"a positive number is expected, as 60000000, 60M or 6e7: {meaning}"
    return Number(how, above=True, whole=whole, most=2**63 - 1 if whole else _BELOW)


def _quantity(meaning: str, most: float = _BELOW, below_0: str = "", least: float = 0) -> Number:
    return Number(meaning, least, most, scaled=False, may_be_nan=True, below_0=below_0)


def _loss(unit: str) -> Number:
    return _quantity(f"give {unit}, finite and 0 or more, or nothing", below_0=_NORMALISED)


_NORMALISED: Final = "; a loss less that of a unigram is kept as a column vary_NAME, beside one that is of this unit"
_TOKENS: Final = "are a whole number from 1, not billions (write 1.5B); or empty"
_FROM_0: Final = "a whole number from 0 is expected, or empty"
_SHARE: Final = "give shares in [0, 1], not percent"
_KNOB: Final = Number("a number is expected, as 0.003, 3e-3 or 512, or nothing", least=-_BELOW, may_be_nan=True)
NUMBERS: Final = {  # by field; any other field holds a name
    "non_embedding_params": _positive("give parameters, not millions"),
    "active_params": _positive("those of S that a token uses, not millions, or empty"),
    "total_params": _positive("all parameters, or empty", whole=True),
    "training_flops": _positive("the operations of the whole training, or empty"),
    "weight": _positive("how much the run counts beside others, or empty"),
    "k": _whole("a rank is a whole number from 1", most=2**31 - 1),
    "n": _whole("the length of a window is a whole number from 1", most=2**31 - 1),
    "n_samples": _whole("attempts at an item are a whole number from 1"),
    "n_correct": _whole("right attempts are a whole number from 0 to n_samples", 0),
    "n_tokens": _whole("a count is a whole number from 1, or empty", is_rounded=True),
    "training_tokens": _whole(f"tokens that were trained on {_TOKENS}", is_rounded=True),
    "unique_tokens": _whole(f"tokens {_TOKENS}", is_rounded=True),
    **dict.fromkeys(("schedule_tokens", "decay_tokens"), _whole(f"tokens of a schedule {_TOKENS}")),
    "warmup_tokens": _whole(_FROM_0, 0),
    "tokens_per_step": _whole("tokens of a step are a whole number from 1, or empty"),
    "training_step": _whole(_FROM_0, 0, is_rounded=True),
    "training_seed": _whole(_FROM_0, 0),
    **dict.fromkeys(("lr", "final_lr"), Number("a learning rate is a number, 0 or more, or nothing", may_be_nan=True)),
    "rbp": Number(_SHARE, most=1, scaled=False),
    "accuracy": _quantity(_SHARE, 1),
    "accuracy_stderr": _loss("a share"),
    **dict.fromkeys(("cross_entropy_nats", "cross_entropy_nats_stderr"), _loss("nats per token")),
    **dict.fromkeys(("loss_bits", "loss_bits_stderr"), _loss("bits per token")),
    "perplexity": _quantity("a perplexity is finite and 1 or more", least=1),
    **dict.fromkeys(("bits_per_byte", "bits_per_byte_stderr"), _loss("bits per byte")),
}
MISSING_K: Final = f"is empty; {NUMBERS['k'].meaning}"  # the fault of a row of RBP without its k
MISSING_RBP: Final = "is empty; give a share in [0, 1], or leave the row out"


def value_of(cell: Any, field: str, given: Any = None, needed: bool = False, times: Decimal | None = None) -> Any:
    """The number or the name that a cell holds; None where it holds none.

    Args:
        cell: the cell.
        field: its field.
        times: the factor of its column, where one is given.
        given: the name or number that all rows have; a cell must not differ from it.
        needed: whether the cell must not be empty.

    Raises:
        CellError: it is no such number or name.
    """
    numbers = NUMBERS.get(field, _KNOB if field.startswith(VARY) else None)
    if numbers is None:
        return _name_of(cell, field, given, needed)
    value = numbers.of(cell, times)
    if value is None and needed:
        raise CellError(f"is {as_written(cell)}; {numbers.meaning}")
    if given is not None and value not in (None, given):
        raise CellError(f"is {as_written(cell)}, but {field}={given} was given; leave one of them out")
    return given if value is None else value


def _name_of(cell: Any, field: str, given: str | None, needed: bool) -> str | None:
    if is_empty(cell):
        if needed and given is None:
            rule = "pessimistic, optimistic or mid" if field == "ties" else "NAME"
            raise CellError(f"is empty; fill in the {field}, or give {field}={rule}")
        return given
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise CellError(f"is {quoted(cell)}, but a name is expected; write it as text")
    name = str(cell).strip()
    if field == "ties" and name not in list(Ties):
        raise CellError(f"is {quoted(name)}; known: {', '.join(Ties)}")
    if given not in (None, name):
        raise CellError(f"is {quoted(name)}, but {field}={given} was given; leave one of them out")
    return name


def is_rounded(cell: Any, field: str, times: Decimal | None = None) -> bool:
    """Whether a cell holds a count that is no whole number, and is rounded."""
    exact = large_number(cell) if field in NUMBERS and NUMBERS[field].is_rounded and not is_empty(cell) else None
    return exact is not None and not _is_whole(exact * (times or 1))


def type_of(field: str) -> pa.DataType:
    """The Arrow type of a field."""
    numbers = NUMBERS.get(field, _KNOB if field.startswith(VARY) else None)
    return pa.string() if numbers is None else pa.int64() if numbers.whole else pa.float64()
