"""A plot on the user's terminal: series and their axes in, a title, the plot and its legend printed."""

import os
from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np
from rich.console import Console
from rich.text import Text

from rbpx.display.plot.axes import Axis
from rbpx.display.plot.canvas import MARKS, PLAIN_MARKS, Series, draw
from rbpx.display.tables import number, span
from rbpx.laws.power import PowerLawFit
from rbpx.laws.prediction import along

HEIGHT: Final = 16  # lines
WIDEST: Final = 100  # characters; a wider plot shows no more
LENGTH: Final = 60  # places along a curve
MOST: Final = len(MARKS)
_COLOURS: Final = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")

T = TypeVar("T")


def print_plot(screen: Console, title: str, series: Sequence[Series], x: Axis, y: Axis) -> None:
    """Print one plot: Braille in colours, plain ASCII where the terminal has no more."""
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
        text = Text.assemble("  ", ((PLAIN_MARKS if plain else MARKS)[at], _COLOURS[at]), f" {each.name}")
        screen.print(text, soft_wrap=True)


def is_plain(screen: Console) -> bool:
    """Whether a terminal shows ASCII alone: its encoding has no more, or its font has no Braille."""
    return screen.options.ascii_only or os.environ.get("TERM") in ("linux", "dumb")


def law_series(name: str, fit: PowerLawFit, exponent: str | None = None) -> Series:
    """The points that a law was fitted to, and the law between the outermost of them; `exponent` in place of alpha."""
    x_N, y_N = (np.array(fit.params[key], dtype=np.float64) for key in ("S", "y"))
    if fit.alpha is None or not np.isfinite(y_N).all():
        return Series(f"{name}: {fit.status.value.replace('_', ' ')}", x_N, y_N)
    x_L, y_L = np.array([(said.S, said.y) for said in along(fit, LENGTH)]).T
    told = exponent or f"alpha {number(fit.alpha)} ({span(fit.alpha_lo, fit.alpha_hi)})"
    return Series(f"{name}: {told}", x_N, y_N, x_L=x_L, y_L=y_L)


def some(found: Sequence[T], most: int = MOST) -> list[T]:
    """At most so many of what is in a row, the first and the last among them, evenly apart."""
    if len(found) <= most:
        return list(found)
    return [found[round(i * (len(found) - 1) / (most - 1))] for i in range(most)]
