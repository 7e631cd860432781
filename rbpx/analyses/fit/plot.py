"""The laws of size as plots: fitted groups in, -ln RBP_k and nats against S out (RBP paper, figures 3 to 5)."""

from collections.abc import Sequence

from rich.console import Console

from rbpx.analyses.fit.analysis import Laws
from rbpx.analyses.fit.residuals import residual_series
from rbpx.display.along import plot_axis
from rbpx.display.names import law_name
from rbpx.display.plot.axes import Axis
from rbpx.display.plot.terminal import law_series, print_plot
from rbpx.display.spread import spread
from rbpx.display.tables import console
from rbpx.groups.fits import Law
from rbpx.laws.names import IMPORTED

_NATS = ("cross_entropy", "lognormal_cross_entropy", "error_entropy")  # of one order of magnitude


def show(results: Sequence[Laws]) -> None:
    """Plot each group: the points of all sizes and the laws through them, on logarithmic axes."""
    screen = console()
    for laws in results:
        for method in dict.fromkeys(law.method for law in laws.laws):
            of_method = [law for law in laws.laws if law.method is method]
            title = f"{laws.group.title}, {method.value}"
            at_k = [law for law in of_method if law.law == "rbp"]
            usual = [law for law in at_k if law.k in (1, 10, 100)]
            along = plot_axis(laws.group.axis)
            against = f"against {laws.group.axis.value}"
            _print(screen, f"{title}: -ln RBP_k {against}", usual or spread(at_k, 4), along, Axis("-ln RBP_k"))
            nats = [law for law in of_method if law.law in _NATS]
            _print(screen, f"{title}: cross-entropy {against}", nats, along, Axis("nats a token"))
            also = [law for law in of_method if law.law in IMPORTED]
            _print(screen, f"{title}: what was imported {against}", also, along, Axis("bits a byte, or misses"))
            straight = [law for law in nats if law.law == "cross_entropy"]
            left = residual_series([*straight, *(usual or spread(at_k, 4))])
            if left:
                print_plot(screen, f"{title}: residuals about the laws", left, along, Axis("ln y - law", log=False))


def _print(screen: Console, title: str, laws: Sequence[Law], x: Axis, y: Axis) -> None:
    if laws:
        print_plot(screen, title, [law_series(law_name(law.law, law.k), law.fit) for law in laws], x, y)
