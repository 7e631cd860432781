"""Calibration: groups in; T* of each run, what it saves, and the laws at T = 1 and at T* out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.temperature.analysis import RunTemperature, Temperatures
from rbpx.display.fit_cells import constant
from rbpx.display.names import law_name, remedies, status_name
from rbpx.display.numbers import UNKNOWN, number, percent, span
from rbpx.display.tables import console, grid, put
from rbpx.status import Status


def show(results: Sequence[Temperatures]) -> None:
    """Print for each group its temperatures and cross-entropies, then both laws."""
    screen = console()
    measured = [result for result in results if result.runs]
    for result in measured:
        _print_runs(screen, result)
        _print_laws(screen, result)
    for result in results:
        if not result.runs:
            screen.print(f"{result.group.title}: not measured at other temperatures", markup=False, soft_wrap=True)
    if not measured:
        return
    betas = measured[0].runs[0].beta_J
    screen.print(
        "T*: the temperature at which softmax(z / T) has the least mean cross-entropy on these tokens; above 1 the "
        "model is overconfident on this text. CE, at T*: nats a token; a temperature moves no rank. Intervals are over "
        "documents, those of the exponents over models too; T* is found again for each resample.",
        soft_wrap=True,
    )
    statuses = {law.fit.status for result in measured for law in (result.raw, result.tempered) if law is not None}
    if Status.at_limit in statuses:
        screen.print(
            f"{status_name(Status.at_limit)}: T* lies beyond {1 / betas[-1]:g} to {1 / betas[0]:g}, so what stands at "
            "T* is the value at the nearer end.",
            soft_wrap=True,
        )
    for line in remedies(statuses - {Status.at_limit}):
        screen.print(line, soft_wrap=True)


def _print_runs(screen: Console, result: Temperatures) -> None:
    title = f"{result.group.title}: temperature"
    table = grid(title, ["size", "T*", "95 % interval", "CE", "at T*", "95 % interval", "difference"])
    for each in result.runs:
        table.add_row(escape(each.run.size), *_cells(each))
    put(screen, table)


def _cells(each: RunTemperature) -> list[str]:
    found, best = each.temperature, each.at_best
    known = number(found.value, 3) if each.status is Status.ok else status_name(each.status)
    difference = each.cross_entropy_nats.difference.value
    return [
        known,
        span(found.lo, found.hi, 3),
        number(each.at_one.value),
        number(best.value),
        span(best.lo, best.hi, 3),
        UNKNOWN if difference is None else f"{difference:+.4f}",
    ]


def _print_laws(screen: Console, result: Temperatures) -> None:
    columns = ["law", "alpha", "95 % interval", "C", "95 % of C", "R2", "backtest", "status"]
    table = grid(f"{result.group.title}: laws", columns, spare=("C", "95 % of C", "backtest"))
    table.columns[-1].justify = "left"
    for law in (result.raw, result.tempered):
        if law is not None:
            fit = law.fit
            more = [*constant(fit), number(fit.r2, 3), percent(fit.backtest_error)]
            ends = span(fit.alpha_lo, fit.alpha_hi)
            table.add_row(law_name(law.law), number(fit.alpha), ends, *more, status_name(fit.status))
    change = result.difference
    if change is not None and change.alpha is not None:
        ends = UNKNOWN if change.alpha_lo is None else f"{change.alpha_lo:+.4f}..{change.alpha_hi:+.4f}"
        table.add_row("difference", f"{change.alpha:+.4f}", ends, *[""] * 5)
    put(screen, table)
