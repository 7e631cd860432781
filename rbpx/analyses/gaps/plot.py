"""Gaps as plots: fitted pairs in, the ratio of their losses against S out."""

from collections.abc import Sequence

from rbpx.analyses.gaps.analysis import Gaps
from rbpx.display.along import plot_axis
from rbpx.display.names import law_name
from rbpx.display.numbers import number, span
from rbpx.display.plot.axes import Axis
from rbpx.display.plot.terminal import MOST, law_series, print_plot
from rbpx.display.spread import spread
from rbpx.display.tables import console


def show(results: Sequence[Gaps]) -> None:
    """Plot each pair, with a mark for each loss, on logarithmic axes."""
    screen = console()
    for gaps in results:
        names = (gaps.group.first.dataset, gaps.other.first.dataset)
        if gaps.slices is not None:
            names = (gaps.slices[0].chosen.name, gaps.slices[1].chosen.name)
        series = []
        for each in spread(gaps.gaps, MOST):
            A, B = names[::-1] if each.gap.swapped else names
            delta = f"delta {number(each.gap.delta)} ({span(each.gap.delta_lo, each.gap.delta_hi)})"
            delta += f", {each.gap.verdict}" if each.gap.verdict is not None else ""
            series.append(law_series(f"{law_name(each.law, each.k)}, {A} / {B}", each.gap.fit, delta))
        print_plot(
            screen,
            f"{gaps.group.title_of_family}: L_A / L_B against {gaps.group.axis.value}",
            series,
            plot_axis(gaps.group.axis),
            Axis("L_A / L_B"),
        )
