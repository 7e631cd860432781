"""Regimes of k as plots: the law at every k in, its alpha and R2 against k out (RBP paper, figure 6)."""

from collections.abc import Sequence

import numpy as np

from rbpx.analyses.regimes.analysis import Regimes
from rbpx.display.plot.axes import Axis
from rbpx.display.plot.canvas import Series
from rbpx.display.plot.terminal import print_plot
from rbpx.display.tables import console


def show(results: Sequence[Regimes]) -> None:
    """Plot each group: alpha with its interval, marked by whether the law holds, then R2."""
    screen = console()
    for regimes in results:
        if not regimes.regimes:
            continue
        fits = [regime.law.fit for regime in regimes.regimes]
        k_N = np.array([regime.k for regime in regimes.regimes], dtype=np.float64)
        stands_N = np.array([regime.stands for regime in regimes.regimes], dtype=bool)
        alpha_N, lo_N, hi_N, r2_N = (
            np.array([getattr(fit, name) for fit in fits], dtype=np.float64)  # None becomes NaN
            for name in ("alpha", "alpha_lo", "alpha_hi", "r2")
        )
        series = [
            Series(name, k_N[which_N], alpha_N[which_N], lo_N[which_N], hi_N[which_N])
            for name, which_N in (("the law holds", stands_N), ("it does not", ~stands_N))
        ]
        k = Axis("k")
        print_plot(screen, f"{regimes.group.title}: alpha against k", series, k, Axis("alpha, 95 %", log=False))
        print_plot(screen, f"{regimes.group.title}: R2 against k", [Series("R2", k_N, r2_N)], k, Axis("R2", log=False))
