"""Error-entropy: decomposed groups in, the terms of each run, their shares and laws out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.entropy.analysis import TERMS, Entropies, RunTerms
from rbpx.display.constants import constant, sizes_of
from rbpx.display.tables import LAW_NAMES, UNKNOWN, console, grid, number, percent, put, remedies, span, status_name
from rbpx.groups.fits import Law

_MORE = ("C", "95 % of C", "sizes", "over S")


def show(found: Sequence[Entropies]) -> None:
    """Print for each group the terms, what each is of the whole, the corrected entropy, and the laws."""
    screen = console()
    for group in found:
        _print_terms(screen, group)
        _print_corrected(screen, group)
        _print_laws(screen, group)
    ties = ", ".join(dict.fromkeys(each.group.ties.value for each in found))
    screen.print(
        f"CE = H(P) + KL(P || Q) - ln(sum S), nats, ties {ties} (the source counts ranks strictly: ties=optimistic). "
        "Shares are of CE, and may be below 0 or above 1. H(P) of counted ranks is too small: less so by the jackknife "
        "over documents, which takes away what falls as 1/D; extrapolated from halves and quarters of them it tends to "
        "be too large; where these two differ by less than the standard error, nothing is told of what bias is left. "
        "The interval of a share lies about the share less its bias, so the counted share may be beside it. A law of a "
        "share is y = C S^-alpha of term / CE.",
        soft_wrap=True,
    )
    for line in remedies(law.fit.status for group in found for law in group.all_laws):
        screen.print(line, soft_wrap=True)


def _print_terms(screen: Console, found: Entropies) -> None:
    columns = ["size", "CE", "H(P)", "KL", "-ln sum S", "H share", "KL share", "-ln share"]
    table = grid(f"{found.group.title}: cross-entropy taken apart", columns)
    for each in found.runs:
        shares = [number(each.shares[name][0], 3) for name in TERMS]
        nats = [number(value, 4) for value in (each.cross_entropy_nats, *(each.terms[name] for name in TERMS))]
        table.add_row(escape(each.run.size), *nats, *shares)
    put(screen, table)


def _print_corrected(screen: Console, found: Entropies) -> None:
    columns = ["size", "H(P)", "jackknife", "stderr", "extrapolated", "H share, 95 %"]
    table = grid(f"{found.group.title}: bias of H(P)", columns)
    for each in found.runs:
        table.add_row(escape(each.run.size), number(each.terms["error_entropy"]), *_corrected(each))
    put(screen, table)


def _corrected(each: RunTerms) -> list[str]:
    fixed, ends = each.corrected, each.shares["error_entropy"][1]
    share = span(*ends, 3) if ends is not None else UNKNOWN
    if fixed is None:
        return [UNKNOWN, UNKNOWN, UNKNOWN, share]
    return [number(fixed.jackknife), number(fixed.stderr), number(fixed.extrapolated), share]


def _print_laws(screen: Console, found: Entropies) -> None:
    table = grid(
        f"{found.group.title}: laws",
        ["law", "alpha", "95 % interval", *_MORE, "R2", "backtest", "status"],
        spare=(*_MORE, "backtest"),
    )
    table.columns[-1].justify = "left"
    for law in found.all_laws:
        ends = span(law.fit.alpha_lo, law.fit.alpha_hi)
        more = [*constant(law.fit), *sizes_of(law.fit), number(law.fit.r2, 3), percent(law.fit.backtest_error)]
        table.add_row(_name(law), number(law.fit.alpha), ends, *more, status_name(law.fit.status))
    put(screen, table)


def _name(law: Law) -> str:
    for ending, words in (("_share", ", share"), ("_corrected", ", corrected")):
        if law.law.endswith(ending):
            return LAW_NAMES[law.law.removesuffix(ending)] + words
    return LAW_NAMES[law.law]
