"""Error-entropy: decomposed groups in, the terms of each run with their shares and laws out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.entropy.analysis import TERMS, Entropies, RunTerms
from rbpx.display.fit_cells import constant, sizes_of
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, percent, span
from rbpx.display.tables import console, grid, print_notes, put

_MORE = ("C", "95 % of C", "sizes", "over S")


def show(results: Sequence[Entropies]) -> None:
    """Print for each group the terms and their shares of cross-entropy, the corrected entropy, and the laws."""
    screen = console()
    for group in results:
        _print_terms(screen, group)
        _print_corrected(screen, group)
        _print_laws(screen, group)
    ties = ", ".join(dict.fromkeys(each.group.ties.value for each in results))
    print_notes(
        screen,
        f"CE = H(P) + KL(P || Q) - ln(sum S), nats, ties {ties} (the source counts ranks strictly: ties=optimistic). "
        "Shares are of CE, and may be below 0 or above 1. H(P) of counted ranks is too small; the jackknife over D "
        "documents removes the part of that bias that falls as 1/D, while the value extrapolated from halves and "
        "quarters of the documents tends to be too large; where the two differ by less than the standard error, the "
        "remaining bias cannot be resolved. The interval of a share is centred on the share minus its bias, so the "
        "counted share may lie outside it. A law of a share is y = C S^-alpha of term / CE.",
        (law.fit.status for group in results for law in group.all_laws),
    )


def _print_terms(screen: Console, result: Entropies) -> None:
    columns = ["size", "CE", "H(P)", "KL", "-ln sum S", "H share", "KL share", "-ln share"]
    table = grid(f"{result.group.title}: cross-entropy taken apart", columns)
    for each in result.runs:
        shares = [number(each.shares[name][0], 3) for name in TERMS]
        nats = [number(value, 4) for value in (each.cross_entropy_nats, *(each.terms[name] for name in TERMS))]
        table.add_row(escape(each.run.size), *nats, *shares)
    put(screen, table)


def _print_corrected(screen: Console, result: Entropies) -> None:
    columns = ["size", "H(P)", "jackknife", "stderr", "extrapolated", "H share, 95 %"]
    table = grid(f"{result.group.title}: bias of H(P)", columns)
    for each in result.runs:
        table.add_row(escape(each.run.size), number(each.terms["error_entropy"]), *_corrected(each))
    put(screen, table)


def _corrected(each: RunTerms) -> list[str]:
    fixed, ends = each.corrected, each.shares["error_entropy"][1]
    share = span(*ends, 3) if ends is not None else UNKNOWN
    if fixed is None:
        return [UNKNOWN, UNKNOWN, UNKNOWN, share]
    return [number(fixed.jackknife), number(fixed.stderr), number(fixed.extrapolated), share]


def _print_laws(screen: Console, result: Entropies) -> None:
    table = grid(
        f"{result.group.title}: laws",
        ["law", "alpha", "95 % interval", *_MORE, "R2", "backtest", "status"],
        spare=(*_MORE, "backtest"),
    )
    table.columns[-1].justify = "left"
    for law in result.all_laws:
        ends = span(law.fit.alpha_lo, law.fit.alpha_hi)
        more = [*constant(law.fit), *sizes_of(law.fit), number(law.fit.r2, 3), percent(law.fit.backtest_error)]
        table.add_row(law_name(law.law), number(law.fit.alpha), ends, *more, status_name(law.fit.status))
    put(screen, table)
