"""The median rank: results in, a table of medians and laws out."""

from collections.abc import Sequence

from rich.markup import escape

from rbpx.analyses.medians.analysis import Medians
from rbpx.display.names import remedies, status_name
from rbpx.display.numbers import number, short, span
from rbpx.display.tables import console, grid, put


def show(results: Sequence[Medians]) -> None:
    """Print the median of each run, and the law of each group."""
    screen = console()
    for result in results:
        table = grid(f"{result.group.title}: median rank", ["size", "median", "alpha", "95 % interval", "status"])
        for run, median in zip(result.group.runs, result.medians, strict=True):
            table.add_row(escape(run.size), short(median))
        fit = result.fit
        table.add_section()
        table.add_row("law", "", number(fit.alpha), span(fit.alpha_lo, fit.alpha_hi), status_name(fit.status))
        put(screen, table)
    for line in remedies(result.fit.status for result in results):
        screen.print(line, soft_wrap=True)
