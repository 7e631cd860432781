"""Gaps between datasets: fitted pairs in, which text is harder, how fast that changes and where it ends out."""

import math
from collections.abc import Sequence

from rbpx.analyses.gaps import Gaps
from rbpx.laws.gap import Gap
from rbpx.tables.plain import UNKNOWN, console, grid, law_name, number, put, remedies, span, status_name


def show(found: Sequence[Gaps]) -> None:
    """Print a table for each pair of texts, a row a loss."""
    screen = console()
    for gaps in found:
        names = (gaps.group.first.dataset, gaps.other.first.dataset)
        for swapped, (A, B) in ((False, names), (True, names[::-1])):
            rows = [each for each in gaps.gaps if each.gap.swapped is swapped]
            if rows:
                title = f"{gaps.group.first.family}: {A} (A) against {B} (B), {len(gaps.group.runs)} sizes"
                table = grid(title, ["loss", "L_A/L_B", "delta", "95 % interval", "gap", "closed at S"])
                for each in rows:
                    table.add_row(law_name(each.law, each.k), *_row(each.gap))
                put(screen, table)
    ties = ", ".join(dict.fromkeys(f"ties {gaps.group.ties.value}" for gaps in found))
    screen.print(
        f"L_A / L_B = G (S / S_ref)^delta, {ties}; A is the text with the higher loss at the geometric mean of the "
        "sizes, where the ratio is given. delta < 0: the gap closes; constant: its interval holds 0. Closed at S: "
        "where the ratio would be 1, with a 95 % interval, an end of – where there is none.",
        soft_wrap=True,
    )
    for line in remedies(each.gap.fit.status for gaps in found for each in gaps.gaps):
        screen.print(line, soft_wrap=True)


def _row(gap: Gap) -> list[str]:
    return [
        number(gap.ratio, 3),
        number(gap.delta, 4),
        span(gap.delta_lo, gap.delta_hi, 3),
        gap.verdict or status_name(gap.fit.status),
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
