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
    """Print for each group how many ranks moved, and how that shifts each run and the laws; a line where none did."""
    screen = console()
    told = [audit for audit in results if not _is_unmoved(audit)]
    for audit in results:
        title = f"{audit.group.title}, again in float32"
        documents = f"{audit.n_documents:,} of {number_of(audit.n_stored, 'document')}"
        if _is_unmoved(audit):
            tokens = sum(each.moves.n_tokens for each in audit.runs)
            largest = max(each.moves.largest_logprob_move for each in audit.runs)
            screen.print(
                f"{title}: {len(audit.runs)} sizes, {documents}, {tokens:,} tokens: no rank moved, and no "
                f"log-probability by more than {short(largest)} nats",
                soft_wrap=True,
                markup=False,
            )
            continue
        _print_moves(screen, f"{title}: ranks, {documents}", audit)
        _print_shifts(screen, f"{title}: RBP_k and nats", audit)
        if audit.laws:
            _print_laws(screen, f"{title}: alpha", audit)
    if not told:
        return
    rules = ", ".join(dict.fromkeys(audit.group.ties.value for audit in told))
    screen.print(
        f"Changed: tokens whose number of greater or of equal logits differs; moved: those whose rank differs, ties "
        f"{rules}; by, largest: the median and the largest change, in ranks; nats: the largest difference of a "
        "log-probability. Same: a second measurement in float32 agrees, with at most 1 token in 1,000 changed and "
        f"differences up to 0.0001 nats{_of_engines(told)}. "
        "Differences are float32 minus stored, on the same documents; * where the 95 % "
        f"interval over documents (in --format json, with what was lost and gained) excludes 0; {UNKNOWN} where no "
        "document differs. Intervals of alpha are over documents and models.",
        soft_wrap=True,
    )
    statuses = {law.difference.status for audit in told for law in audit.laws}
    if Status.no_variation in statuses:
        screen.print(f"{status_name(Status.no_variation)}: no rank crossed k, so nothing shifts.", soft_wrap=True)
    for line in remedies(statuses - {Status.no_variation}):
        screen.print(line, soft_wrap=True)


def _of_engines(audits: Sequence[Audit]) -> str:
    """What `same` means for other engines, where there are any."""
    if not any(each.allowed is not None for audit in audits for each in audit.runs):
        return ""
    return (
        "; an engine's run, that it is no further from rbpx's float32 than tolerance= times as much, or, in 16 bits, "
        "than that many times as far as rbpx's own run in that precision"
    )


def _is_unmoved(audit: Audit) -> bool:
    """Whether no rank moved, and no log-probability beyond rounding."""
    return all(each.moves.n_moved == 0 and each.moves.is_same for each in audit.runs)


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
    k_grid = list(audit.runs[0].rbp)
    columns = [f"RBP_{k}" for k in k_grid]
    table = grid(title, ["size", "CE", "difference", *columns], spare=columns)
    for each in audit.runs:
        shifts = [_difference(each.rbp[k]) for k in k_grid]
        nats = each.cross_entropy_nats
        table.add_row(escape(each.run.size), number(nats.before), _difference(nats), *shifts)
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


def _difference(shifted: Shift) -> str:
    """A difference with its sign, marked where its interval excludes 0."""
    value, ends = shifted.difference.value, shifted.difference.ends
    if not value:
        return UNKNOWN
    return f"{signed(value)}{'*' if ends is not None and (ends[0] > 0 or ends[1] < 0) else ' '}"


def signed(value: float | None) -> str:
    """A difference with its sign, or a dash."""
    return UNKNOWN if value is None else f"{value:+.5f}"


def span_signed(lo: float | None, hi: float | None) -> str:
    """The interval of a difference."""
    return UNKNOWN if lo is None and hi is None else f"{signed(lo)}..{signed(hi)}"
