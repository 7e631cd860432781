"""Plots on a terminal: series and their axes in; a title, the plot and its legend printed."""

import math
import os
from collections.abc import Sequence
from itertools import groupby
from typing import Final

import numpy as np
from rich.console import Console
from rich.text import Text

from rbpx.display.chart.marks import Chart, Mark, Rows, spread
from rbpx.display.plot.canvas import MARKS, PLAIN_MARKS, Axis, Series, draw
from rbpx.display.view import Table
from rbpx.display.vocabulary import plain_signs
from rbpx.laws.numeric.arrays import Floats

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
    x_L, y_L = np.array([np.nanmin(x_N), np.nanmax(x_N)]), np.repeat(at, 2)
    return Series(mark.name, x_L[:1], y_L[:1], x_L=x_L, y_L=y_L)


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
    lo_N, hi_N = (None, None) if bars is None else (_numbers(own, bars.lo), _numbers(own, bars.hi))
    label = plain_signs(f"{chart.legend} = {name}" if chart.legend and name.replace(".", "", 1).isdecimal() else name)
    if line is None:
        return Series(label, x_N, y_N, lo_N, hi_N)
    parts = groupby(own if line.rows is None else of_series(line.rows), key=lambda row: row.get(line.by))
    parted: Rows = [row for _, part in parts for row in ({}, *part)]  # an empty row ends the line before
    x_L, y_L = (_numbers(parted, key) for key in (chart.x.key, chart.y.key))
    if not own:  # a line without points has its mark at its end
        return Series(label, x_L[-1:], y_L[-1:], x_L=x_L, y_L=y_L)
    return Series(label, x_N, y_N, lo_N, hi_N, x_L, y_L)


def is_plain(screen: Console) -> bool:
    """Whether a terminal shows only ASCII, by its encoding or because its font has no Braille."""
    return screen.options.ascii_only or os.environ.get("TERM") in ("linux", "dumb")
