"""Error-entropy: decomposed groups in, the terms of each run with their shares and laws out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.entropy.analysis import TERMS, Entropies, RunTerms
from rbpx.display.along import in_axis, place, place_heading, print_group_notes
from rbpx.display.fit_cells import constant, sizes_of
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, percent, span
from rbpx.display.tables import console, grid, print_notes, put

_TERM_NAMES = ("H", "KL", "-ln")
_MORE = ("C", "95 % of C", "sizes", "over S")


def show(results: Sequence[Entropies]) -> None:
    """Print for each group the terms, the corrected entropy, their shares of cross-entropy, and the laws."""
    screen = console()
    for group in results:
        _print_terms(screen, group)
        _print_shares(screen, group)
        _print_laws(screen, group)
    ties = ", ".join(dict.fromkeys(each.group.ties.value for each in results))
    print_notes(
        screen,
        f"CE = H(P) + KL(P || Q) - ln(sum S), nats, ties {ties} (the source counts ranks strictly: ties=optimistic). "
        "Shares are of CE, and may be below 0 or above 1. H(P) of counted ranks is too small; the jackknife over D "
        "documents removes the part of that bias that falls as 1/D, while the value extrapolated from halves and "
        "quarters of the documents tends to be too large; where the two differ by less than the standard error, the "
        "remaining bias cannot be resolved. A share is given less the bias that resampled documents show, with a 95 % "
        "interval over documents; counted: as it is in the identity, which the interval is not of. A law of a share is "
        f"y = C {results[0].group.axis.value}^-alpha of term / CE, both as counted.",
        (law.fit.status for group in results for law in group.all_laws),
    )
    print_group_notes(screen, [each.group for each in results])


def _print_terms(screen: Console, result: Entropies) -> None:
    columns = [
        "size",
        *place_heading(result.group.axis),
        "CE",
        "H(P)",
        "KL",
        "-ln sum S",
        "jackknife",
        "stderr",
        "extrapolated",
    ]
    table = grid(f"{result.group.title}: cross-entropy taken apart, and H(P) corrected", columns)
    for each in result.runs:
        nats = [number(value, 4) for value in (each.cross_entropy_nats, *(each.terms[name] for name in TERMS))]
        table.add_row(escape(each.run.size), *place(each.run), *nats, *_corrected(each))
    put(screen, table)


def _corrected(each: RunTerms) -> list[str]:
    fixed = each.corrected
    if fixed is None:
        return [UNKNOWN, UNKNOWN, UNKNOWN]
    return [number(fixed.jackknife), number(fixed.stderr), number(fixed.extrapolated)]


def _print_shares(screen: Console, result: Entropies) -> None:
    counted = [f"{name} counted" for name in _TERM_NAMES]
    columns = [column for name in _TERM_NAMES for column in (name, "95 %", f"{name} counted")]
    table = grid(
        f"{result.group.title}: shares of cross-entropy, corrected for the bias of counting",
        ["size", *place_heading(result.group.axis), *columns],
        spare=counted[::-1],
    )
    for each in result.runs:
        cells = []
        for name in TERMS:
            share = each.corrected_shares[name]
            cells += [number(share.value, 3), span(share.lo, share.hi, 3), number(each.shares[name], 3)]
        table.add_row(escape(each.run.size), *place(each.run), *cells)
    put(screen, table)


def _print_laws(screen: Console, result: Entropies) -> None:
    more = [in_axis(column, result.group.axis) for column in _MORE]
    table = grid(
        f"{result.group.title}: laws{in_axis(' in S', result.group.axis)}",
        ["law", "alpha", "95 % interval", *more, "R2", "backtest", "status"],
        spare=(*more, "backtest"),
    )
    table.columns[-1].justify = "left"
    for law in result.all_laws:
        ends = span(law.fit.alpha_lo, law.fit.alpha_hi)
        more = [*constant(law.fit), *sizes_of(law.fit), number(law.fit.r2, 3), percent(law.fit.backtest_error)]
        table.add_row(law_name(law.law), number(law.fit.alpha), ends, *more, status_name(law.fit.status))
    put(screen, table)
