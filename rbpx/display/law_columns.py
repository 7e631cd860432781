"""Columns of fitted power laws, over rows of `fits`."""

from collections.abc import Sequence
from typing import Final

from rbpx.display.table import Column, Row, Table, interval, table_of
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
"""The number of points of a law, the first and the last; a record has them by `law_row`."""
BACKTEST: Final = Column("backtest", "backtest_error", percent, "error of the largest {x}, predicted from the others")


def with_params(row: Row) -> Row:
    """A row with its params as columns behind its own."""
    return {**(row.get("params") or {}), **row}


def law_row(fit: Row, axis: Axis) -> Row:
    """A row of `fits` as tables have it: with its params, and its first and last point."""
    row = with_params(fit)
    S = row.get("S")
    return row | {f"{axis.value}_from": min(S) if S else None, f"{axis.value}_to": max(S) if S else None}


def estimate_in(row: Row, key: str) -> Estimate:
    """A number of a record with its interval."""
    return Estimate(*(row.get(f"{key}{end}") for end in ("", "_lo", "_hi")))


def paired_table(
    name: str, title: str, names: Sequence[tuple[str, str]], rows: Sequence[Row], over: Sequence[str]
) -> Table:
    """A table of laws with R2 and slope (`r2_and_slope`) of each of `over` side by side.

    Its form is that of tables 1 and 2 of the RBP paper (arXiv 2510.20387); `names` are its first columns.
    """
    pairs = ((f"{of}: {what}", key) for of in over for what, key in zip(("R²", "slope"), _keys(of), strict=True))
    return table_of(name, *names, *((of, key, ".3f") for of, key in pairs)).of(
        title, rows, note="Slope: −α of the line through logarithms."
    )


def r2_and_slope(of: str, law: Row) -> Row:
    """Returns R2 and slope of a law, for a row of `paired_table`."""
    slope = None if law["alpha"] is None else -law["alpha"]
    return dict(zip(_keys(of), (law["r2"], slope), strict=True))


def _keys(of: str) -> tuple[str, str]:
    name = of.replace(" ", "_")
    return f"{name}:r2", f"{name}:slope"
