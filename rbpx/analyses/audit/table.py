"""Audits of precision: runs measured again in; ranks that moved and the shifts of each run and law out."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.audit.analysis import Audit, RunAudit
from rbpx.counts import number_of
from rbpx.display.names import law_name, remedies, status_name
from rbpx.display.numbers import UNKNOWN, number, short
from rbpx.display.tables import console, grid, put
from rbpx.groups.shifts import Shift
from rbpx.status import Status


def show(results: Sequence[Audit]) -> None:
    """Print for each group how many ranks moved, and how that shifts each run and the laws through the runs."""
    screen = console()
    for audit in results:
        title = f"{audit.group.title}, again in float32"
        documents = f"{audit.n_documents:,} of {number_of(audit.n_stored, 'document')}"
        _print_moves(screen, f"{title}: ranks, {documents}", audit)
        _print_shifts(screen, f"{title}: RBP_k and nats", audit)
        if audit.laws:
            _print_laws(screen, f"{title}: alpha", audit)
    rules = ", ".join(dict.fromkeys(audit.group.ties.value for audit in results))
    screen.print(
        f"Changed: tokens whose number of greater or of equal logits differs; moved: those whose rank differs, ties "
        f"{rules}; by, largest: the median and the largest change, in ranks; nats: the largest difference of a "
        "log-probability. Same: a second measurement in float32 agrees, with at most 1 token in 1,000 changed and "
        "differences up to 0.0001 nats. Lost, gained: hits only as stored, only in float32. Differences are float32 "
        "minus stored, on the same documents, with 95 % intervals over documents, and for alpha over models too; "
        f"{UNKNOWN} where no document differs.",
        soft_wrap=True,
    )
    statuses = {law.difference.status for audit in results for law in audit.laws}
    if Status.no_variation in statuses:
        screen.print(f"{status_name(Status.no_variation)}: no rank crossed k, so nothing shifts.", soft_wrap=True)
    for line in remedies(statuses - {Status.no_variation}):
        screen.print(line, soft_wrap=True)


def _print_moves(screen: Console, title: str, audit: Audit) -> None:
    table = grid(title, ["size", "tokens", "changed", "moved", "by", "largest", "nats", "same"])
    for each in audit.runs:
        moves, n = each.moves, each.moves.n_tokens
        shares = [f"{count / n:.3%}" for count in (moves.n_changed, moves.n_moved)]
        by = [UNKNOWN if move is None else f"{move:,g}" for move in (moves.median_move, moves.largest_move)]
        cells = [f"{n:,}", *shares, *by, short(moves.largest_logprob_move), _same(each)]
        table.add_row(escape(each.run.size), *cells)
    put(screen, table)


def _same(each: RunAudit) -> str:
    """Only a run in float32 is expected to be reproduced."""
    return UNKNOWN if each.is_same is None else "yes" if each.is_same else "[yellow]no[/yellow]"


def _print_shifts(screen: Console, title: str, audit: Audit) -> None:
    table = grid(title, ["size", "", "stored", "float32", "difference", "95 % interval", "lost", "gained"], left=2)
    for each in audit.runs:
        table.add_section()
        for at, (k, shifted) in enumerate(each.rbp.items()):
            crossed = (f"{each.moves.n_lost[k]:,}", f"{each.moves.n_gained[k]:,}")
            table.add_row(escape(each.run.size) if at == 0 else "", f"RBP_{k}", *_cells(shifted), *crossed)
        table.add_row("", "CE", *_cells(each.cross_entropy_nats))
    put(screen, table)


def _print_laws(screen: Console, title: str, audit: Audit) -> None:
    table = grid(title, ["law", "stored", "float32", "difference", "95 % interval", "status"])
    for law in audit.laws:
        fit = law.difference
        alphas = [
            number(law.before.alpha),
            number(law.after.alpha),
            signed(fit.alpha),
            span_signed(fit.alpha_lo, fit.alpha_hi),
        ]
        table.add_row(law_name(law.law, law.k), *alphas, status_name(fit.status))
    put(screen, table)


def _cells(shifted: Shift) -> list[str]:
    ends = span_signed(shifted.difference.lo, shifted.difference.hi)
    return [number(shifted.before), number(shifted.after), signed(shifted.difference.value), ends]


def signed(value: float | None) -> str:
    """A difference with its sign, or a dash."""
    return UNKNOWN if value is None else f"{value:+.5f}"


def span_signed(lo: float | None, hi: float | None) -> str:
    """The interval of a difference."""
    return UNKNOWN if lo is None and hi is None else f"{signed(lo)}..{signed(hi)}"
