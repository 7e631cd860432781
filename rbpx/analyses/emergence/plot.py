"""Emergence as plots: windows and their laws in, p_N against S out (RBP paper, figure 7)."""

from collections.abc import Sequence

import numpy as np

from rbpx.analyses.emergence.analysis import Emergence, Emergences, WindowLaw
from rbpx.display.along import plot_axis
from rbpx.display.numbers import number
from rbpx.display.plot.axes import Axis
from rbpx.display.plot.canvas import Series
from rbpx.display.plot.terminal import MOST, law_curve, print_plot
from rbpx.display.spread import spread
from rbpx.display.tables import console
from rbpx.groups.group import Group
from rbpx.status import Status


def show(results: Sequence[Emergences]) -> None:
    """Plot each group at each k: for each window length N the measured shares and their law exp(-C S^-alpha)."""
    screen = console()
    for emergences in results:
        for emergence in emergences.by_k:
            lengths = spread(range(len(emergence.lengths)), MOST)
            series = [_series(emergences.group, emergence, at) for at in lengths]
            title = f"{emergences.group.title}, k = {emergence.k}: p_N against {emergences.group.axis.value}"
            print_plot(screen, title, series, plot_axis(emergences.group.axis), Axis("p_N", log=False))


def _series(group: Group, result: Emergence, at: int) -> Series:
    S_M = np.array([run.x for run in group.runs], dtype=np.float64)
    law: WindowLaw = result.laws[at]
    name, p_M = f"N = {law.n}", result.measured_MN[:, at]
    if law.fit.alpha is None:
        return Series(f"{name}: {law.fit.status.label}", S_M, p_M)
    x_L, y_L = law_curve(law.fit)
    doubt = "" if law.fit.status is Status.ok else f", {law.fit.status.label}"
    return Series(f"{name}: alpha {number(law.fit.alpha)}{doubt}", S_M, p_M, x_L=x_L, y_L=np.exp(-y_L))
