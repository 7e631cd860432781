"""Columns of fitted power laws, over rows of `fits`, for the tables of many questions."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rbpx.display.view import Column, ends, error, value_of, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, decimals, number, significant
from rbpx.laws.intervals.estimate import Estimate

Columns = Sequence[Column[Mapping[str, Any]]]


def exponent(digits: int = 4, means: str = "") -> Columns:
    """Returns the columns of alpha and its interval."""
    return with_ends("α", "alpha", None, lambda value: number(value, digits), means)


def constant(spare: int = 0) -> Columns:
    """Returns the columns of C, the value at 1 on the law's axis, and its interval."""
    return with_ends("{c}", "C", None, partial(significant, digits=4), spare=spare)


def determination(spare: int = 0, ends_spare: int = 0) -> Columns:
    """Returns the columns of the regression's R2 and its interval."""
    return with_ends("R²", "r2", None, decimals(3), "", spare, ends_spare)


def points_of(spare: int = 0) -> Columns:
    """Returns the columns of the number of points of a law, the first and the last."""
    return whole("points", "n_points", spare=spare), ends("{x}_from {x}_to", _reach, _power, "over {x}", spare=spare)


def backtest(spare: int = 0) -> Column[Mapping[str, Any]]:
    """Returns the column of the backtest: the error of the last point, predicted from the others."""
    return error("backtest", "backtest_error", None, "error of the largest {x}, predicted from the others", spare)


def estimate_in(row: Mapping[str, Any], key: str) -> Estimate:
    """Returns a number of a record with its interval."""
    return Estimate(*(value_of(row, f"{key}{end}") for end in ("", "_lo", "_hi")))


def _reach(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    S = value_of(row, "S")
    return (min(S), max(S)) if S else (None, None)


def _power(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
