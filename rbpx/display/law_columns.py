"""Columns of fitted power laws, which the tables of many questions have."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rbpx.display.view import Column, Row, ends, error, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, number, significant

if TYPE_CHECKING:
    from rbpx.laws.power.law import LawFit

OfLaw = Callable[[Row], "LawFit"]


def exponent(of: OfLaw[Row], digits: int = 4, means: str = "") -> Sequence[Column[Row]]:
    """Alpha with its interval."""
    return with_ends("α", "alpha", lambda row: of(row).exponent, lambda value: number(value, digits), means)


def constant(of: OfLaw[Row], spare: int = 0) -> Sequence[Column[Row]]:
    """C, at 1 of what the law is in, with its interval."""
    return with_ends("{c}", "C", lambda row: of(row).constant, lambda value: significant(value, 4), spare=spare)


def determination(of: OfLaw[Row], spare: int = 0, ends_spare: int = 0) -> Sequence[Column[Row]]:
    """R2 of the regression, with its interval."""
    return with_ends(
        "R²", "r2", lambda row: of(row).determination, lambda value: number(value, 3), "", spare, ends_spare
    )


def points_of(of: OfLaw[Row], spare: int = 0) -> Sequence[Column[Row]]:
    """How many points a law is fitted to, and the places of the first and the last."""
    return (
        whole("points", "n_points", lambda row: of(row).n_points, spare=spare),
        ends("{x}_from {x}_to", lambda row: _reach(of(row)), _power, "over {x}", spare=spare),
    )


def backtest(of: OfLaw[Row], spare: int = 0) -> Column[Row]:
    """The error of the last point, predicted from the others."""
    means = "error of the largest {x}, predicted from the others"
    return error("backtest", "backtest_error", lambda row: of(row).backtest_error, means, spare)


def _reach(fit: "LawFit") -> tuple[float | None, float | None]:
    return (min(fit.S), max(fit.S)) if fit.S else (None, None)


def _power(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
