"""The law in k as a plot: fitted groups in, -ln RBP_k against k for each model out (RBP paper, figure 9)."""

from collections.abc import Sequence

from rbpx.analyses.klaw.analysis import KLaws
from rbpx.display.plot.axes import Axis
from rbpx.display.plot.terminal import law_series, print_plot, some
from rbpx.display.tables import console, number


def show(found: Sequence[KLaws]) -> None:
    """Plot each group: a mark a model, from the smallest to the largest, on logarithmic axes."""
    screen = console()
    for laws in found:
        drawn = some(laws.laws)
        of_all = f", {len(drawn)} of its {len(laws.laws)} sizes" if len(drawn) < len(laws.laws) else ""
        series = [law_series(law.run.size, law.fit, f"slope -{number(law.fit.alpha)}") for law in drawn]
        print_plot(screen, f"{laws.group.title}{of_all}: -ln RBP_k against k", series, Axis("k"), Axis("-ln RBP_k"))
