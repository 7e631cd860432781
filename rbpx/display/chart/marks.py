"""What a figure draws, in no language of any program: axes, and marks over the rows of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from rbpx.display.column import Value
from rbpx.display.vocabulary import AXES
from rbpx.laws.names import Axis
from rbpx.laws.power.law import PowerLawFit
from rbpx.laws.predict.prediction import along

Rows = Sequence[Mapping[str, Value]]
T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """An axis.

    Attributes:
        key: of the value of a row that lies on it.
        title: beside it.
        log: whether it is logarithmic.
        zero: whether 0 is on it.
        form: of its labels (d3); empty for the usual one.
        names: of an axis of names, in their order; empty for one of numbers.
    """

    key: str
    title: str
    log: bool = False
    zero: bool = False
    form: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """One layer of a chart.

    Attributes:
        kind: points; a line through rows in their order; a band or bars from lo to hi; a rule across the chart where a
            row has the one of both axes that it names.
        rows: what is drawn; None for the rows of the figure's values.
        lo: key of the lower end of a band or bar.
        hi: of the upper end.
        by: key of what is told apart by dashes of lines, and shapes of points, instead of the series.
        along: the axis that a band or bar lies along: x or y; empty for that of the values.
        look: further properties of the mark in Vega-Lite.
        plain: whether it has no colour of a series.
        name: of a rule at some y, or of plain points, where a terminal draws them too.
    """

    kind: Literal["points", "line", "band", "bars", "rule"]
    rows: Rows | None = None
    lo: str = "lo"
    hi: str = "hi"
    by: str = ""
    along: Literal["", "x", "y"] = ""
    look: Mapping[str, Any] = field(default_factory=dict)
    plain: bool = False
    name: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        x: the horizontal axis.
        y: the vertical axis.
        marks: the lowest first.
        series: key of what is told apart by colours, shapes and dashes; empty where there is one series.
        legend: its title.
        order: of the series in the legend; empty for that of the rows.
        height: in pixels, where 560 are its width.
    """

    x: Scale
    y: Scale
    marks: tuple[Mark, ...]
    series: str = ""
    legend: str = ""
    order: tuple[str, ...] = ()
    height: int = 300


def scale_of(axis: Axis, key: str = "") -> Scale:
    """The logarithmic axis of what laws are in."""
    of_S = "non_embedding_params" if axis is Axis.S else axis.value
    return Scale(key or of_S, AXES[axis].title, log=True, form="~e" if axis is Axis.C else "~s")


def curve(fit: PowerLawFit, x: str, y: str, steps: int = 12, **names: Value) -> list[dict[str, Value]]:
    """x, y, lo, hi along a law from its smallest to its largest size; the interval is that of one new model."""
    return [{**names, x: at.S, y: at.y, "lo": at.lo, "hi": at.hi} for at in along(fit, steps)]


def points(**more: Any) -> Mark:
    """A point for each row."""
    return Mark("points", **more)


def line(rows: Rows | None = None, **more: Any) -> Mark:
    """A line for each series."""
    return Mark("line", rows, **more)


def bars(lo: str = "lo", hi: str = "hi", **more: Any) -> Mark:
    """An interval for each row."""
    return Mark("bars", lo=lo, hi=hi, **more)


def rule(name: str = "", **at: float) -> Mark:
    """A dashed rule across the chart at a value of one axis, by its key; a terminal draws one at some y with a name."""
    return Mark("rule", [at], plain=True, name=name)


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most so many of the items, evenly spaced, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(at * (len(items) - 1) / (most - 1))] for at in range(most)]
