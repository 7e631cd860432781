"""Power laws under each other, as a report shows them."""

from collections.abc import Iterable

from rbpx.display.chart.sheet import Sheet, decimal, named, sheet_of, span, state
from rbpx.display.names import law_name
from rbpx.laws.power import PowerLawFit

__all__ = ["law_sheet"]


def law_sheet(title: str, laws: Iterable[tuple[str, PowerLawFit]], note: str) -> Sheet:
    """A row a law: its name, its exponent with the 95 % interval, R² and status.

    Args:
        title: of the sheet.
        laws: the name of each, as `fits` has it, and its fit.
        note: what is said under the sheet.
    """
    rows = [
        [
            named(law_name(law)),
            decimal(fit.alpha),
            span(fit.alpha_lo, fit.alpha_hi),
            decimal(fit.r2),
            state(fit.status),
        ]
        for law, fit in laws
    ]
    columns = [("law", "law"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi"), ("R²", "r2"), ("status", "status")]
    return sheet_of("laws", title, columns, rows, note)
