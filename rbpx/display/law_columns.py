"""Columns of fitted power laws, which the tables of many questions have: of rows of `fits`, or of what `of` gives."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rbpx.display.view import Column, Row, ends, error, value_of, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, decimals, number, significant

if TYPE_CHECKING:
    from rbpx.laws.power.law import LawFit

OfLaw = Callable[[Row], "LawFit"]


def exponent(of: OfLaw[Row] | None = None, digits: int = 4, means: str = "") -> Sequence[Column[Row]]:
    """Alpha with its interval."""
    return with_ends("α", "alpha", of and (lambda row: of(row).exponent), lambda value: number(value, digits), means)


def constant(of: OfLaw[Row] | None = None, spare: int = 0) -> Sequence[Column[Row]]:
    """C, at 1 of what the law is in, with its interval."""
    return with_ends(
        "{c}", "C", of and (lambda row: of(row).constant), lambda value: significant(value, 4), spare=spare
    )


def determination(of: OfLaw[Row] | None = None, spare: int = 0, ends_spare: int = 0) -> Sequence[Column[Row]]:
    """R2 of the regression, with its interval."""
    return with_ends("R²", "r2", of and (lambda row: of(row).determination), decimals(3), "", spare, ends_spare)


def points_of(of: OfLaw[Row] | None = None, spare: int = 0) -> Sequence[Column[Row]]:
    """How many points a law is fitted to, and the places of the first and the last."""
    return (
        whole("points", "n_points", of and (lambda row: of(row).n_points), spare=spare),
        ends(
            "{x}_from {x}_to",
            lambda row: _reach(of(row).S if of else value_of(row, "S")),
            _power,
            "over {x}",
            spare=spare,
        ),
    )


def backtest(of: OfLaw[Row] | None = None, spare: int = 0) -> Column[Row]:
    """The error of the last point, predicted from the others."""
    means = "error of the largest {x}, predicted from the others"
    return error("backtest", "backtest_error", of and (lambda row: of(row).backtest_error), means, spare)


def _places(of: OfLaw[Row] | None, row: Row) -> Sequence[float]:
    places: Sequence[float] = value_of(row, "S") if of is None else of(row).S
    return places


def _reach(S: Sequence[float]) -> tuple[float | None, float | None]:
    return (min(S), max(S)) if S else (None, None)


def _power(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
