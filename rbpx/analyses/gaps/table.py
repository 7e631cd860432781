"""Gaps: fitted pairs in; which text or slice is harder, how fast the gap changes and where it closes, out."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.analyses.gaps.analysis import Gaps
from rbpx.analyses.gaps.law import Gap
from rbpx.analyses.gaps.slices import SlicePoints
from rbpx.display.fit_cells import sizes_of
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, span
from rbpx.display.tables import console, grid, print_notes, put
from rbpx.status import Status


def show(results: Sequence[Gaps]) -> None:
    """Print a table for each pair of texts with a row for each loss; of slices a table for each loss."""
    screen = console()
    for gaps in results:
        if gaps.slices is None:
            _print_pair(screen, gaps)
    for group in dict.fromkeys(gaps.group for gaps in results if gaps.slices is not None):
        _print_slices(screen, [gaps for gaps in results if gaps.group is group and gaps.slices is not None])
    ties = ", ".join(dict.fromkeys(f"ties {gaps.group.ties.value}" for gaps in results))
    what = "slice" if any(gaps.slices for gaps in results) else "text"
    print_notes(
        screen,
        f"L_A / L_B = G (S / S_ref)^delta, {ties}; A is the {what} with the higher loss at the geometric mean of the "
        "sizes, where the ratio is given. delta < 0: the gap closes; constant: the interval of delta contains 0. "
        "Closed at S: where the ratio would be 1, with a 95 % interval, – for an end that is unbounded.",
        (each.gap.fit.status for gaps in results for each in gaps.gaps),
    )


def _print_pair(screen: Console, gaps: Gaps) -> None:
    names = (gaps.group.first.dataset, gaps.other.first.dataset)
    for swapped, (A, B) in ((False, names), (True, names[::-1])):
        rows = [each for each in gaps.gaps if each.gap.swapped is swapped]
        if rows:
            title = f"{gaps.group.first.family}: {A} (A) against {B} (B), {len(gaps.group.runs)} sizes"
            table = grid(title, ["loss", *_COLUMNS], spare=_SPARE)
            for each in rows:
                table.add_row(law_name(each.law, each.k), *_row(each.gap))
            put(screen, table)


def _print_slices(screen: Console, results: Sequence[Gaps]) -> None:
    """Print the slices, then how each compares with the first one."""
    group, pairs = results[0].group, [gaps.slices for gaps in results if gaps.slices is not None]
    first = pairs[0][0]
    smallest, largest = group.runs[0].size, group.runs[-1].size
    title = f"{group.title}: slices of its scored tokens, {len(group.runs)} sizes"
    table = grid(title, ["slice", "tokens", "documents", f"CE of {smallest}", f"CE of {largest}"])
    for part in (first, *(other for _, other in pairs)):
        table.add_row(escape(part.chosen.name), f"{part.n_tokens:,}", f"{part.n_documents:,}", *_entropies(part))
    put(screen, table)
    for at, loss in enumerate(results[0].gaps):
        title = f"{group.title}, {law_name(loss.law, loss.k)}: each slice against the first, {first.chosen.name}"
        table = grid(title, ["slice", "A is", *_COLUMNS], left=2, spare=_SPARE)
        for gaps, (_, other) in zip(results, pairs, strict=True):
            gap = gaps.gaps[at].gap
            harder = UNKNOWN if gap.ratio is None else "this" if gap.swapped else "first"
            table.add_row(escape(other.chosen.name), harder, *_row(gap))
        put(screen, table)


def _entropies(part: SlicePoints) -> list[str]:
    entropies = next(each for each in part.points if each.law == "cross_entropy")
    return [number(float(entropies.y_N[0]), 3), number(float(entropies.y_N[-1]), 3)]


_COLUMNS = ["L_A/L_B", "95 % of it", "delta", "95 % interval", "R2", "sizes", "over S", "gap", "closed at S"]
_SPARE = ("95 % of it", "R2", "over S", "sizes")


def _row(gap: Gap) -> list[str]:
    return [
        number(gap.ratio, 3),
        span(gap.ratio_lo, gap.ratio_hi, 3),
        number(gap.delta, 4),
        span(gap.delta_lo, gap.delta_hi, 3),
        number(gap.fit.r2, 3),
        *sizes_of(gap.fit),
        gap.verdict if gap.verdict and gap.fit.status is Status.ok else status_name(gap.fit.status),
        _closed(gap),
    ]


def _closed(gap: Gap) -> str:
    if gap.ln_S_closed is None:
        return UNKNOWN
    lo, hi = (_power(gap.ln_S_closed_lo), _power(gap.ln_S_closed_hi))
    return f"{_power(gap.ln_S_closed)} ({lo}..{hi})"


def _power(ln_S: float | None) -> str:
    """A size in one digit, however large."""
    if ln_S is None:
        return UNKNOWN
    exponent = math.floor(ln_S / math.log(10))
    digit = round(math.exp(ln_S - exponent * math.log(10)))
    return f"1e{exponent + 1}" if digit == 10 else f"{digit}e{exponent}"
