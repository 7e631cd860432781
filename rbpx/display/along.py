"""What tables and plots of laws in S say where the laws are in training tokens, FLOPs or steps."""

import re
from collections.abc import Iterable
from typing import Final, Protocol

from rich.console import Console

from rbpx.display.numbers import significant
from rbpx.display.plot.axes import SIZE
from rbpx.display.plot.axes import Axis as PlotAxis
from rbpx.laws.names import Axis

__all__ = ["LARGEST", "counted", "in_axis", "place", "place_heading", "plot_axis", "print_group_notes"]

LARGEST: Final = {Axis.S: "size", Axis.D: "D", Axis.C: "C", Axis.step: "step"}
_PLOTS: Final = {
    Axis.S: SIZE,
    Axis.D: PlotAxis("D, training tokens"),
    Axis.C: PlotAxis("C, training FLOPs"),
    Axis.step: PlotAxis("training steps"),
}


class _Described(Protocol):
    """A group of runs, which has a name and says how its points came about."""

    @property
    def title(self) -> str:
        """Its name."""

    @property
    def notes(self) -> list[str]:
        """What was computed, left out or chosen."""


class _Placed(Protocol):
    """A run with its place on an axis."""

    @property
    def axis(self) -> Axis:
        """What laws are in."""

    @property
    def x(self) -> float | None:
        """Where on it the run lies."""


def in_axis(text: str, axis: Axis) -> str:
    """Words about laws in S, with the name of another axis in place of each S that stands alone.

    A constant C becomes c where C is compute.
    """
    if axis is Axis.S:
        return text
    if axis is Axis.C:
        text = re.sub(r"\bC(?=( ·)? [SN]\b|$)", "c", text)
    named = re.sub(r"\bS(?=\b|_ref)(?! times)", axis.value, text)
    return re.sub(r"\bsizes\b", "points", named)


def counted(axis: Axis) -> str:
    """What the points of a law are."""
    return "size" if axis is Axis.S else "point"


def place_heading(axis: Axis) -> list[str]:
    """The heading of the column that says where on its axis a run lies; none for S, which has one."""
    return [] if axis is Axis.S else [axis.value]


def place(run: _Placed) -> list[str]:
    """The cell of that column."""
    return [] if run.axis is Axis.S else [significant(run.x, 4)]


def plot_axis(axis: Axis) -> PlotAxis:
    """The axis of a plot."""
    return _PLOTS[axis]


def print_group_notes(screen: Console, groups: Iterable[_Described]) -> None:
    """Print what was computed, left out or chosen to come to the points of each group."""
    for line in dict.fromkeys(f"{group.title}: {note}" for group in groups for note in group.notes):
        screen.print(line, markup=False, soft_wrap=True)
