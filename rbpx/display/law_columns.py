"""Columns of fitted power laws, over rows of `fits`, for the tables of many questions."""

from typing import Any, Final

from rbpx.display.table import Column, Row, interval, value_of
from rbpx.display.vocabulary import decimals, in_digits, percent, whole
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis

ALPHA: Final = interval("α", "alpha")
CONSTANT: Final = interval("{c}", "C", in_digits(4))
"""The value at 1 on the law's axis."""
R2: Final = interval("R²", "r2", decimals(3))


def _power(value: float) -> str:
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


POINTS: Final = (Column("points", "n_points", whole), Column("over {x}", "{x}_from {x}_to", _power))
"""The number of points of a law, the first and the last; a record has them by `with_reach`."""
BACKTEST: Final = Column("backtest", "backtest_error", percent, "error of the largest {x}, predicted from the others")


def with_reach(row: Row, axis: Axis) -> dict[str, Any]:
    """Returns the record of a law with its first and last point."""
    S = value_of(row, "S")
    return {**row, f"{axis.value}_from": min(S) if S else None, f"{axis.value}_to": max(S) if S else None}


def estimate_in(row: Row, key: str) -> Estimate:
    """Returns a number of a record with its interval."""
    return Estimate(*(value_of(row, f"{key}{end}") for end in ("", "_lo", "_hi")))
