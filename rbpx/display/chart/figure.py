"""A figure: what it shows in words, its chart, the values that it draws, and where they come from."""

from dataclasses import dataclass
from typing import Any

from rbpx.display.chart.sheet import Sheet

__all__ = ["Figure", "Undrawn"]


@dataclass(frozen=True, eq=False)
class Figure:
    """One figure.

    Attributes:
        name: plain and unique within its section; files are called so.
        title: what it shows.
        says: in a sentence what is to be seen, for those who do not see it.
        caption: what its marks mean.
        spec: its chart in Vega-Lite, without colours and sizes of letters, which are those of the theme.
        values: what it draws.
        sql: a question to the store that gives these numbers.
        run_ids: the runs that they come from.
    """

    name: str
    title: str
    says: str
    caption: str
    spec: dict[str, Any]
    values: Sheet
    sql: str
    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class Undrawn:
    """A figure that cannot be drawn.

    Attributes:
        name: as that of the figure.
        title: as that of the figure.
        reason: why, and what to do about it.
    """

    name: str
    title: str
    reason: str
