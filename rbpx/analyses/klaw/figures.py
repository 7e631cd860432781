"""The law in k drawn: -ln RBP_k against k for up to seven models. Source: RBP paper (arXiv 2510.20387), figure 9."""

from collections.abc import Sequence

from rbpx.analyses.klaw.analysis import KLaws
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.laws import law_figure
from rbpx.display.chart.marks import Scale, spread
from rbpx.groups.question import from_shares


def figures(results: Sequence[KLaws], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The points of each model and its law."""
    return [_figure(laws) for laws in results]


def _figure(result: KLaws) -> Figure | Undrawn:
    fitted, group, title = (
        [law for law in result.laws if law.fit.alpha is not None],
        result.group,
        "−ln RBP_k against k",
    )
    if not fitted:
        return Undrawn("k", title, "No size has −ln RBP_k at three k; ask for more with k='[1,3,10,30,100]'.")
    chosen = spread(fitted, MOST_SERIES)
    slopes = " to ".join(f"{law.label} with slope {-(law.fit.alpha or 0):.3f}" for law in spread(chosen, 2))
    part = f" {len(chosen)} of {len(fitted)} sizes are drawn." if len(chosen) < len(fitted) else ""
    says = f"Logarithmic plot for {group.title}: falling lines, from {slopes}."
    words = (says, f"Lines: −ln RBP_k = C·k^−α in each model, by least squares.{part}")
    x, y = Scale("k", "k", log=True), Scale("neg_ln_rbp", "−ln RBP_k", log=True)
    laws, origin = [(law.label, law.fit) for law in chosen], from_shares(group, result.k_grid)
    return law_figure("k", title, laws, x, y, words, origin, legend="size", band=False)
