"""Backtest and prediction: laws in order of their errors in; their backtests and predictions out."""

from collections.abc import Sequence

from rbpx.analyses.predict.analysis import FAR, Foresights
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, percent, short, span
from rbpx.display.tables import console, grid, print_notes, put


def show(results: Sequence[Foresights]) -> None:
    """Print the laws ranked by the errors of their backtests, then their predictions."""
    screen = console()
    for foresights in results:
        _print_backtest(foresights)
        _print_predictions(foresights)
    print_notes(
        screen,
        "Backtest: fitted to the smallest sizes and compared with the larger ones, on the same tokens; laws in order "
        "of their mean |error|; from n: error of the largest size, predicted from the n smallest. Inside: how many of "
        "the 95 % intervals contained the measured value. Intervals of a prediction are for one new model; a "
        f"prediction farther than {FAR} times outside the measured sizes is an extrapolation that no backtest covers.",
        (f.law.fit.status for foresights in results for f in foresights.laws),
    )


def _print_backtest(foresights: Foresights) -> None:
    sizes = foresights.group.runs
    left_out = list(range(1, min(3, max(len(sizes) - 3, 0)) + 1))
    columns = ["law", "mean |error|", *(f"from {len(sizes) - n}" for n in left_out), "inside"]
    spare = ("alpha", "95 % of alpha", "R2")
    table = grid(f"{foresights.group.title}: backtest", [*columns, *spare, "status"], spare=spare)
    for foresight in foresights.laws:
        last = {b.n_fitted: b.error for b in foresight.backtests if b.size == sizes[-1].size}
        mean = foresight.mean_error
        fit = foresight.law.fit
        inside = [b.is_inside for b in foresight.backtests if b.is_inside is not None]
        table.add_row(
            law_name(foresight.law.law, foresight.law.k, foresight.law.method),
            UNKNOWN if mean is None else percent(mean).lstrip("+"),
            *(percent(last.get(len(sizes) - n)) for n in left_out),
            f"{sum(inside)}/{len(inside)}" if inside else UNKNOWN,
            number(fit.alpha),
            span(fit.alpha_lo, fit.alpha_hi),
            number(fit.r2, 3),
            status_name(fit.status),
        )
    put(console(), table)


def _print_predictions(foresights: Foresights) -> None:
    columns = ["law", *(f"S = {S:,.0f}" if S < 1e7 else f"S = {S:.3g}" for S in foresights.targets)]
    table = grid(f"{foresights.group.title}: predictions", columns)
    for foresight in foresights.laws:
        if foresight.predictions:
            cells = [f"{short(p.y)} ({short(p.lo)}..{short(p.hi)})" for p in foresight.predictions]
            table.add_row(law_name(foresight.law.law, foresight.law.k, foresight.law.method), *cells)
    beyond = [f"{p.beyond:.3g} times" for p in next((f.predictions for f in foresights.laws if f.predictions), ())]
    if beyond:
        table.add_section()
        table.add_row("outside the sizes", *("" if text == "1 times" else text for text in beyond))
    put(console(), table)
    far = [p.S for f in foresights.laws[:1] for p in f.predictions if p.beyond > FAR]
    if far:
        sizes = ", ".join(f"{S:.3g}" for S in far)
        console().print(
            f"[yellow]S = {sizes}: more than {FAR} times beyond what was fitted; an extrapolation.[/yellow]\n",
            soft_wrap=True,
        )
