"""Reads one cell of an imported table: the name, count or number that it holds, or what is wrong with it.

A cell is checked once for all rows that have it. `Wrong` says what is wrong, without the place or the column.
"""

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rbpx.files.cells import as_written, is_empty, is_no_value, large_number, number, quoted
from rbpx.ties import Ties

_LARGEST: Final = {"k": 2**31 - 1, "n": 2**31 - 1}  # their type in the relation
_PLAIN: Final = re.compile(r"0?\.[0-9]+")  # a share below 1
_FEWEST_ROUNDED: Final = 1000  # of less, a count with digits after the point is one of thousands, millions or billions
_COUNTS: Final = ("n_tokens", "training_tokens", "unique_tokens", "training_step")
_FROM_0: Final = "a whole number from 0 is expected, or empty"
_WHOLE: Final = {  # field -> what is expected, the least
    "k": ("a rank is a whole number from 1", 1),
    "n": ("the length of a window is a whole number from 1", 1),
    "n_samples": ("attempts at an item are a whole number from 1", 1),
    "n_correct": ("right attempts are a whole number from 0 to n_samples", 0),
    "n_tokens": ("a count is a whole number from 1, or empty", 1),
    "training_tokens": (
        "tokens that were trained on are a whole number from 1, not billions (write 1.5B); or empty",
        1,
    ),
    "unique_tokens": ("tokens are a whole number from 1, not billions (write 1.5B); or empty", 1),
    "schedule_tokens": ("tokens of a schedule are a whole number from 1, not billions (write 1.5B); or empty", 1),
    "tokens_per_step": ("tokens of a step are a whole number from 1, or empty", 1),
    "training_step": (_FROM_0, 0),
    "training_seed": (_FROM_0, 0),
}
MISSING_K: Final = f"is empty; {_WHOLE['k'][0]}"  # what is wrong with a row of RBP that does not say its k
_POSITIVE: Final = {
    "non_embedding_params": "give parameters, not millions",
    "active_params": "those of S that a token uses, not millions, or empty",
    "total_params": "all parameters, or empty",
    "training_flops": "the operations of the whole training, or empty",
    "weight": "how much the run counts beside others, or empty",
}
_LARGEST_NUMBER: Final = 10**300
_UNITS: Final = {
    "cross_entropy_nats": "nats per token",
    "loss_bits": "bits per token",
    "bits_per_byte": "bits per byte",
}


class Wrong(Exception):
    """What is wrong with a cell: what follows the name of its column."""


def name_of(cell: Any) -> str | None:
    """A name as text; None where the cell is empty."""
    if is_empty(cell):
        return None
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise Wrong(f"is {quoted(cell)}, but a name is expected; write it as text")
    try:
        str(cell).encode()
    except UnicodeEncodeError:
        raise Wrong(f"is {quoted(cell)}, which is not valid Unicode; write it anew") from None
    return str(cell).strip()


def check_ties(name: str | None) -> None:
    """Refuse a name that is no tie rule."""
    if name not in (None, *Ties):
        raise Wrong(f"is {quoted(name)}; known: {', '.join(Ties)}")


def whole_of(cell: Any, field: str, needed: bool = False) -> int | None:
    """A whole number; a count that is none is rounded. None where the cell is empty."""
    if is_empty(cell) and not needed:
        return None
    meaning, least = _WHOLE[field]
    exact = large_number(cell)
    if exact is not None and is_rounded(cell, field):
        exact = exact.to_integral_value()
    if exact is None or not least <= exact <= _LARGEST.get(field, 2**63 - 1) or exact != exact.to_integral_value():
        raise Wrong(f"is {as_written(cell)}; {meaning}")
    return int(exact)


def is_rounded(cell: Any, field: str) -> bool:
    """Whether a cell holds a count that is no whole number, large enough to be one all the same."""
    exact = large_number(cell) if field in _COUNTS and not is_empty(cell) else None
    return exact is not None and exact >= _FEWEST_ROUNDED and exact != exact.to_integral_value()


def positive_of(cell: Any, field: str, needed: bool = False) -> float | None:
    """A number above 0; None where the cell is empty."""
    if is_empty(cell) and not needed:
        return None
    exact = large_number(cell)
    if exact is None or not 0 < exact < 10**300:
        raise Wrong(
            f"is {as_written(cell)}; a positive number is expected, as 60000000, 60M or 6e7: {_POSITIVE[field]}"
        )
    return float(exact)


def number_of_knob(cell: Any) -> float | None:
    """A number of what a sweep varies; None where the cell is empty."""
    if is_no_value(cell):
        return None
    exact = large_number(cell)
    if exact is None or not abs(exact) < _LARGEST_NUMBER:
        raise Wrong(f"is {as_written(cell)}; a number is expected, as 0.003, 3e-3 or 512, or nothing")
    return float(exact)


def rate_of(cell: Any) -> float | None:
    """A learning rate at a step, 0 at the end of some schedules; None where the cell is empty."""
    rate = None if is_empty(cell) else number_of_knob(cell)
    if rate is not None and rate < 0:
        raise Wrong(f"is {as_written(cell)}; a learning rate is 0 or more, or nothing")
    return rate


def is_missing(cell: Any, field: str) -> bool:
    """Whether a cell holds no share or loss: it is empty, or says NaN of what is no RBP."""
    return is_empty(cell) or (field != "rbp" and is_no_value(cell))


def share_or_loss(cell: Any, field: str) -> float | None:
    """A share in [0, 1] or a loss from 0; None where it is missing."""
    if is_missing(cell, field):
        return None
    exact = number(cell)
    if field in ("rbp", "accuracy") and (exact is None or not 0 <= exact <= 1):
        raise Wrong(f"is {as_written(cell)}; give shares in [0, 1], not percent")
    if exact is None or not 0 <= exact < 10**300:
        unit = _UNITS.get(field.removesuffix("_stderr"), "a share")
        point = ", its decimals after a point" if isinstance(cell, str) and "," in cell else ""
        raise Wrong(f"is {as_written(cell)}; give {unit}{point}, finite and 0 or more, or nothing")
    return float(exact)


def plain_shares(values: list[Any]) -> list[float | None]:
    """Cells that are plainly numbers between 0 and 1, with digits and a point alone; None for any other.

    Below 1 and above 0 as a float, a number is so exactly as written.
    """
    texts = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
    plain = pc.match_substring_regex(texts, f"^{_PLAIN.pattern}$")
    read = pc.if_else(pc.fill_null(plain, False), texts, pa.scalar(None, pa.string())).cast(pa.float64())
    return [share if share is not None and 0 < share < 1 else None for share in read.to_pylist()]


def last_digit(cell: Any) -> float:
    """One unit in the last digit of a number as it is written."""
    if isinstance(cell, str) and _PLAIN.fullmatch(cell):
        return 10.0 ** (cell.index(".") + 1 - len(cell))
    exact = number(cell)
    return 0.0 if exact is None else 10.0 ** int(exact.as_tuple().exponent)
