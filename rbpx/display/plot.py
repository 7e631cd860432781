"""Draws charts in characters on a terminal: axes, the points, intervals and curves of each series, and a legend.

Curves are drawn in Braille, 2 x 4 dots a character, or in full stops where a terminal knows no Unicode.

Shapes: N points of a series, L places along its curve.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

import numpy as np
from rich.console import Console
from rich.text import Text

from rbpx.display.chart.figure import Chart, Mark, Rows, spread
from rbpx.display.view import Table
from rbpx.display.vocabulary import plain_signs
from rbpx.laws.numeric import Floats

MARGIN: Final = 0.03  # of the axis, beside the outermost values
_STEPS: Final = (1, 2, 5)
MARKS: Final = "●■▲◆○□△◇"
PLAIN_MARKS: Final = "ox+*#@%&"
_BLANK: Final = 0x2800  # the Braille pattern without a dot
_DOTS: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # by column, then row


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and whether it is logarithmic."""

    label: str
    log: bool = True

    def holds(self, value: float) -> bool:
        """Whether a value has a place on the axis."""
        return math.isfinite(value) and (value > 0 or not self.log)


@dataclass(frozen=True)
class Scale:
    """An axis with its ends; `lo` and `hi` are logarithms where it is logarithmic."""

    axis: Axis
    lo: float
    hi: float

    def place(self, value: float) -> float:
        """Where on the axis a value lies: 0 at its lower end, 1 at its upper end."""
        return ((math.log10(value) if self.axis.log else value) - self.lo) / (self.hi - self.lo)

    def ticks(self, most: int) -> list[float]:
        """Round values on the axis, in order: decades, else 1, 2 and 5 of each decade, else even steps."""
        if not self.axis.log:
            return _even(self.lo, self.hi, most)
        decades = range(math.ceil(self.lo), math.floor(self.hi) + 1)
        if len(decades) >= 3:
            every = -(-len(decades) // most)
            return [10.0**n for n in decades if n % every == 0]
        span = range(math.floor(self.lo), math.floor(self.hi) + 1)
        finer = [step * 10.0**n for n in span for step in _STEPS]
        inside = [tick for tick in finer if self.lo <= math.log10(tick) <= self.hi]
        return inside if len(inside) >= 3 else _even(10**self.lo, 10**self.hi, most)


def scale_of(axis: Axis, values: Sequence[float]) -> Scale:
    """The scale on which these values fit with a margin; values without a place on the axis are ignored.

    Raises:
        ValueError: none of them has a place on it.
    """
    places = [math.log10(value) if axis.log else value for value in values if axis.holds(value)]
    if not places:
        raise ValueError(f"no value has a place on the axis of {axis.label}")
    lo, hi = min(places), max(places)
    margin = MARGIN * (hi - lo) or max(abs(lo), 1.0) / 10  # a single value is placed in the middle
    return Scale(axis, lo - margin, hi + margin)


def tick_names(ticks: Sequence[float]) -> list[str]:
    """The labels of the ticks of one axis, in one notation, with as many digits as they need."""
    if all(tick == 0 or 1e-3 <= abs(tick) < 1e5 for tick in ticks):
        return [f"{tick:.10g}" for tick in ticks]
    digits = next(n for n in range(17) if all(math.isclose(float(f"{tick:.{n}e}"), tick) for tick in ticks))
    return [f"{tick:.{digits}e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e") for tick in ticks]


def _even(lo: float, hi: float, most: int) -> list[float]:
    rough = (hi - lo) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (*_STEPS, 10) if step * power >= rough * (1 - 1e-9))
    return [
        round(n * step, 12 - math.floor(math.log10(step)))
        for n in range(math.ceil(lo / step), math.floor(hi / step) + 1)
    ]


@dataclass(frozen=True, eq=False)
class Series:
    """The points, intervals and curve that are drawn with one mark.

    Attributes:
        name: in the legend.
        x_N: positions of its points.
        y_N: their values; points without a place on an axis are not drawn.
        ends_2N: lower and upper ends of their intervals, NaN where there is none; None for no intervals at all.
        curve_2L: positions along its curve, in order, and its values; NaN between parts of it. None for no curve.
    """

    name: str
    x_N: Floats
    y_N: Floats
    ends_2N: Floats | None = None
    curve_2L: Floats | None = None


@dataclass(frozen=True)
class Glyph:
    """A character and the series that it belongs to; None for axes and blanks."""

    character: str
    series: int | None = None


def draw(series: Sequence[Series], x: Axis, y: Axis, width: int, height: int, plain: bool) -> list[list[Glyph]]:
    """Draw all series on the same axes, with ticks and labels.

    Args:
        series: at most as many as there are marks; a later one covers an earlier one.
        x: the horizontal axis.
        y: the vertical axis.
        width: characters of a line, the axis included.
        height: lines between the ends of the vertical axis.
        plain: whether only ASCII may be used.

    Raises:
        ValueError: more series than marks, or no value has a place on the axes.
    """
    if len(series) > len(MARKS):
        raise ValueError(f"{len(series)} series for {len(MARKS)} marks")
    curves = [each.curve_2L for each in series if each.curve_2L is not None]
    ends = [each.ends_2N.ravel() for each in series if each.ends_2N is not None]
    scale_x = scale_of(x, np.concatenate([*(each.x_N for each in series), *(x_L for x_L, _ in curves)]).tolist())
    of_y = [*(each.y_N for each in series), *ends, *(y_L for _, y_L in curves)]
    scale_y = scale_of(y, np.concatenate(of_y).tolist())
    ticks_y = scale_y.ticks(max(height // 3, 2))
    names_y = tick_names(ticks_y)
    left = max(map(len, names_y), default=0)
    field = _Field(scale_x, scale_y, max(width - left - 2, 8), height, plain)
    for at, each in enumerate(series):
        field.add_curve(at, each)
    for at, each in enumerate(series):
        field.add_intervals(at, each)
    for at, each in enumerate(series):
        field.add_points(at, each)
    corner, side, tick, floor, under = ("+", "|", "+", "-", "+") if plain else ("└", "│", "┤", "─", "┬")
    at_row = {field.row(tick): name for tick, name in zip(ticks_y, names_y, strict=True)}
    lines = [_cells(f"{'':{left}} {y.label}")]
    for row, cells in enumerate(field.cells()):
        edge = tick if row in at_row else side
        lines.append([*_cells(f"{at_row.get(row, ''):>{left}} {edge}"), *cells])
    ticks_x = scale_x.ticks(max(field.width // 9, 2))
    columns = [field.column(tick) for tick in ticks_x]
    lines.append(
        _cells(" " * (left + 1) + corner + "".join(under if c in columns else floor for c in range(field.width)))
    )
    lines.append(_cells(" " * (left + 2) + _named(columns, tick_names(ticks_x), field.width)))
    lines.append(_cells(" " * (left + 2) + x.label.center(field.width).rstrip()))
    return lines


def _cells(text: str) -> list[Glyph]:
    return [Glyph(character) for character in text]


def _named(columns: Sequence[int], names: Sequence[str], width: int) -> str:
    """The labels of the horizontal ticks, each under its tick; one that would touch the one before is left out."""
    line = [" "] * width
    free = 0
    for column, name in zip(columns, names, strict=True):
        start = min(max(column - len(name) // 2, 0), width - len(name))
        if start >= free:
            line[start : start + len(name)] = name
            free = start + len(name) + 1
    return "".join(line).rstrip()


class _Field:
    """The characters between the axes while they are being drawn."""

    def __init__(self, x: Scale, y: Scale, width: int, height: int, plain: bool) -> None:
        self.x, self.y, self.width, self.height, self.plain = x, y, width, height, plain
        self.marks = PLAIN_MARKS if plain else MARKS
        self._dots = np.zeros((height, width), dtype=np.int64)
        self._of_dots: dict[tuple[int, int], int] = {}
        self._drawn: dict[tuple[int, int], Glyph] = {}

    def row(self, y: float) -> int:
        return self.height - 1 - min(max(math.floor(self.y.place(y) * self.height), 0), self.height - 1)

    def column(self, x: float) -> int:
        return min(max(math.floor(self.x.place(x) * self.width), 0), self.width - 1)

    def add_curve(self, at: int, series: Series) -> None:
        if series.curve_2L is None:
            return
        for (x0, y0), (x1, y1) in pairwise(self._dots_of(x, y) for x, y in series.curve_2L.T):
            if math.isnan(x0 + y0 + x1 + y1):
                continue
            steps = max(math.ceil(abs(x1 - x0)), math.ceil(abs(y1 - y0)), 1)
            for step in range(steps + 1):
                self._dot(at, x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps)

    def _dots_of(self, x: float, y: float) -> tuple[float, float]:
        """Where a point lies, in dots; NaN where it has no place, and the curve ends."""
        if not self._holds(x, y):
            return math.nan, math.nan
        return self.x.place(x) * 2 * self.width, self.y.place(y) * 4 * self.height

    def _dot(self, at: int, x: float, y: float) -> None:
        across = min(max(math.floor(x), 0), 2 * self.width - 1)
        down = 4 * self.height - 1 - min(max(math.floor(y), 0), 4 * self.height - 1)
        cell = (down // 4, across // 2)
        self._dots[cell] |= _DOTS[across % 2][down % 4]
        self._of_dots[cell] = at

    def add_intervals(self, at: int, series: Series) -> None:
        if series.ends_2N is None:
            return
        for x, (lo, hi) in zip(series.x_N, series.ends_2N.T, strict=True):
            if self._holds(x, lo) and self._holds(x, hi):
                for row in range(self.row(hi), self.row(lo) + 1):
                    self._drawn[row, self.column(x)] = Glyph("|" if self.plain else "│", at)

    def add_points(self, at: int, series: Series) -> None:
        for x, y in zip(series.x_N, series.y_N, strict=True):
            if self._holds(x, y):
                self._drawn[self.row(y), self.column(x)] = Glyph(self.marks[at], at)

    def _holds(self, x: float, y: float) -> bool:
        return self.x.axis.holds(x) and self.y.axis.holds(y)

    def cells(self) -> list[list[Glyph]]:
        return [[self._cell(row, column) for column in range(self.width)] for row in range(self.height)]

    def _cell(self, row: int, column: int) -> Glyph:
        if (row, column) in self._drawn:
            return self._drawn[row, column]
        dots = int(self._dots[row, column])
        if not dots:
            return Glyph(" ")
        return Glyph("." if self.plain else chr(_BLANK + dots), self._of_dots[row, column])


HEIGHT: Final = 16  # lines
WIDEST: Final = 100  # characters; a wider plot would show nothing more
MOST: Final = len(MARKS)
_COLOURS: Final = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")


def print_plot(screen: Console, title: str, series: Sequence[Series], x: Axis, y: Axis) -> None:
    """Print one plot: coloured Braille, or plain ASCII on a terminal without Unicode."""
    plain = is_plain(screen)
    shown = [each for each in series if any(x.holds(a) and y.holds(b) for a, b in zip(each.x_N, each.y_N, strict=True))]
    screen.print()
    screen.print(title, style="bold", markup=False, soft_wrap=True)
    if not shown:
        screen.print(f"Nothing to draw: no value of {y.label} has a place on its axis.", markup=False, soft_wrap=True)
        return
    for line in draw(shown, x, y, min(screen.width, WIDEST), HEIGHT, plain):
        text = Text()
        for cell in line:
            text.append(cell.character, "" if cell.series is None else _COLOURS[cell.series])
        text.rstrip()
        screen.print(text, soft_wrap=True)
    for at, each in enumerate(shown):
        if each.name:
            text = Text.assemble("  ", ((PLAIN_MARKS if plain else MARKS)[at], _COLOURS[at]), f" {each.name}")
            screen.print(text, soft_wrap=True)


def print_chart(screen: Console, title: str, chart: Chart, values: Table) -> None:
    """Print a chart of two axes of numbers: the points, lines and intervals of each series."""
    rows = values.records()
    of_points = {str(row.get(chart.series, "")): None for row in rows}
    named = [mark for mark in chart.marks if mark.name and rows]
    series = [_series(chart, name, rows) for name in spread(chart.order or tuple(of_points), MOST - len(named))]
    series += [_rule(chart, mark, rows) if mark.kind == "rule" else _all(chart, mark, rows) for mark in named]
    x, y = (Axis(plain_signs(scale.title), scale.log) for scale in (chart.x, chart.y))
    print_plot(screen, plain_signs(title), series, x, y)


def _numbers(rows: Rows, key: str) -> Floats:
    values = [row.get(key) for row in rows]
    return np.array([value if isinstance(value, (int, float)) else math.nan for value in values], np.float64)


def _rule(chart: Chart, mark: Mark, values: Rows) -> Series:
    """A rule as far as the values go."""
    at = _numbers(mark.rows or (), chart.y.key)
    x_N = _numbers(values, chart.x.key)
    curve_2L = np.array([[np.nanmin(x_N), np.nanmax(x_N)], np.repeat(at, 2)])
    return Series(mark.name, curve_2L[0, :1], curve_2L[1, :1], curve_2L=curve_2L)


def _all(chart: Chart, mark: Mark, values: Rows) -> Series:
    """All values as one series."""
    return Series(mark.name, _numbers(values, chart.x.key), _numbers(values, chart.y.key))


def _series(chart: Chart, name: str, values: Rows) -> Series:
    """What a chart draws of one of its series."""

    def of_series(rows: Rows) -> Rows:
        return [row for row in rows if not chart.series or str(row.get(chart.series)) == name]

    found = {mark.kind: mark for mark in chart.marks if not (chart.series and mark.plain)}
    own = of_series(values)
    x_N, y_N = (_numbers(own, key) for key in (chart.x.key, chart.y.key))
    bars, line = found.get("bars", found.get("band")), found.get("line")
    bars = bars if bars is not None and any(bars.lo in row for row in own) else None
    ends_2N = None if bars is None else np.array([_numbers(own, bars.lo), _numbers(own, bars.hi)])
    label = plain_signs(f"{chart.legend} = {name}" if chart.legend and name.replace(".", "", 1).isdecimal() else name)
    if line is None:
        return Series(label, x_N, y_N, ends_2N)
    parts = groupby(own if line.rows is None else of_series(line.rows), key=lambda row: row.get(line.by))
    parted: Rows = [row for _, part in parts for row in ({}, *part)]  # an empty row ends the line before
    curve_2L = np.array([_numbers(parted, key) for key in (chart.x.key, chart.y.key)])
    if not own:  # a line without points has its mark at its end
        x_N, y_N = curve_2L[:, -1:]
    return Series(label, x_N, y_N, ends_2N, curve_2L)


def is_plain(screen: Console) -> bool:
    """Whether a terminal shows only ASCII, by its encoding or because its font has no Braille."""
    return screen.options.ascii_only or os.environ.get("TERM") in ("linux", "dumb")
