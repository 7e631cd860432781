"""Emergence as plots: windows and their laws in, p_N against S out (RBP paper, figure 7)."""

from collections.abc import Sequence

import numpy as np

from rbpx.analyses.emergence.analysis import Emergence, Emergences, WindowLaw
from rbpx.display.plot.axes import SIZE, Axis
from rbpx.display.plot.canvas import Series
from rbpx.display.plot.terminal import LENGTH, print_plot, some
from rbpx.display.tables import console, number
from rbpx.groups.selection import Group
from rbpx.laws.prediction import along


def show(found: Sequence[Emergences]) -> None:
    """Plot each group at each k: a mark a window length N, the share measured and its curve exp(-C S^-alpha)."""
    screen = console()
    for emergences in found:
        for emergence in emergences.found:
            drawn = some(range(len(emergence.lengths)))
            series = [_series(emergences.group, emergence, at) for at in drawn]
            title = f"{emergences.group.title}, k = {emergence.k}: p_N against S"
            print_plot(screen, title, series, SIZE, Axis("p_N", log=False))


def _series(group: Group, found: Emergence, at: int) -> Series:
    S_M = np.array([run.non_embedding_params for run in group.runs], dtype=np.float64)
    law: WindowLaw = found.laws[at]
    name, p_M = f"N = {law.n}", found.measured_MN[:, at]
    if law.fit.alpha is None:
        return Series(f"{name}: {law.fit.status.value.replace('_', ' ')}", S_M, p_M)
    x_L, y_L = np.array([(said.S, said.y) for said in along(law.fit, LENGTH)]).T
    return Series(f"{name}: alpha {number(law.fit.alpha)}", S_M, p_M, x_L=x_L, y_L=np.exp(-y_L))
