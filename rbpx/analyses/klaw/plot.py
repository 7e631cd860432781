"""The law in k as a plot: fitted groups in, -ln RBP_k against k for each model out (RBP paper, figure 9)."""

from collections.abc import Sequence

from rbpx.analyses.klaw.analysis import KLaws
from rbpx.display.numbers import number
from rbpx.display.plot.axes import Axis
from rbpx.display.plot.terminal import MOST, law_series, print_plot
from rbpx.display.spread import spread
from rbpx.display.tables import console


def show(results: Sequence[KLaws]) -> None:
    """Plot each group, with a mark for each model from the smallest to the largest, on logarithmic axes."""
    screen = console()
    for laws in results:
        chosen = spread(laws.laws, MOST)
        of_all = f", {len(chosen)} of its {len(laws.laws)} sizes" if len(chosen) < len(laws.laws) else ""
        series = [law_series(law.label, law.fit, f"slope -{number(law.fit.alpha)}") for law in chosen]
        print_plot(screen, f"{laws.group.title}{of_all}: -ln RBP_k against k", series, Axis("k"), Axis("-ln RBP_k"))
