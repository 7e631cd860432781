"""Calibration as a plot: groups in, cross-entropy at T = 1 and at T* against S out."""

from collections.abc import Sequence

from rbpx.analyses.temperature.analysis import Temperatures
from rbpx.display.numbers import number
from rbpx.display.plot.axes import Axis
from rbpx.display.plot.terminal import law_series, print_plot
from rbpx.display.tables import console


def show(results: Sequence[Temperatures]) -> None:
    """Plot both laws of each group that was measured, on logarithmic axes."""
    screen = console()
    for result in results:
        if result.raw is None or result.tempered is None:
            continue
        series = [
            law_series(name, law.fit, f"slope -{number(law.fit.alpha)}")
            for name, law in (("T = 1", result.raw), ("T*", result.tempered))
        ]
        title = f"{result.group.title}: cross-entropy at T = 1 and at T*"
        print_plot(screen, title, series, Axis("S"), Axis("nats"))
