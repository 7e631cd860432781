"""Gaps between the texts of one family, told."""

from collections.abc import Sequence

from rbpx.analyses.gaps import figure as drawn
from rbpx.analyses.gaps.analysis import Gaps, LossGap
from rbpx.analyses.gaps.figure import MOST_PAIRS, loss_name, pair_name
from rbpx.display.chart.sheet import Entry, Sheet, decimal, named, span, state
from rbpx.display.section import Section, Sources, doubts_of, interval
from rbpx.display.tables import UNKNOWN, short

__all__ = ["section"]


def section(found: Sequence[Gaps], sources: Sources) -> Section:
    """All pairs of one family."""
    statuses = [
        (f"{loss_name(loss)} of {pair_name(gaps, loss)}", loss.gap.fit.status) for gaps in found for loss in gaps.gaps
    ]
    return Section(
        "gaps",
        found[0].group.first.family,
        tuple(_sentences(found)),
        tuple(drawn.figures(found, sources.fit_ids)),
        (_table(found),),
        doubts_of(statuses),
    )


def _sentences(found: Sequence[Gaps]) -> list[str]:
    """Of each pair its cross-entropy, or its first loss."""
    said = []
    for gaps in found[:MOST_PAIRS]:
        losses = [loss for loss in gaps.gaps if loss.gap.delta is not None]
        loss = next((loss for loss in losses if loss.law == "cross_entropy"), losses[0] if losses else None)
        if loss is not None:
            said.append(_sentence(gaps, loss))
    if len(found) > MOST_PAIRS:
        said.append(f"{len(found) - MOST_PAIRS} more pairs are in the figure of all, and in the table.")
    return said


def _sentence(gaps: Gaps, loss: LossGap) -> str:
    gap, (hard, easy) = loss.gap, pair_name(gaps, loss).split(" / ")
    how = {"closes": "closes with size", "opens": "opens with size", "constant": "is not seen to change with size"}
    named = loss_name(loss) if loss.law == "rbp" else loss_name(loss).capitalize()
    return (
        f"{named}: {hard} is harder than {easy}, by a factor of "
        f"{interval(gap.ratio, gap.ratio_lo, gap.ratio_hi)}; the gap {how.get(gap.verdict or '', 'is unknown')}, "
        f"δ = {interval(gap.delta, gap.delta_lo, gap.delta_hi)}."
    )


def _table(found: Sequence[Gaps]) -> Sheet:
    rows = []
    for gaps in found:
        for loss in gaps.gaps:
            gap = loss.gap
            rows.append(
                [
                    named(pair_name(gaps, loss)),
                    named(loss_name(loss)),
                    decimal(gap.ratio, 3),
                    span(gap.ratio_lo, gap.ratio_hi, 3),
                    decimal(gap.delta),
                    span(gap.delta_lo, gap.delta_hi),
                    named(gap.verdict),
                    _closed(loss),
                    state(gap.fit.status),
                ]
            )
    columns = [("A / B", "pair"), ("loss", "loss"), ("L_A / L_B", "ratio"), ("95 % of it", "ratio_lo ratio_hi")]
    columns += [("δ", "delta"), ("95 %", "delta_lo delta_hi"), ("gap", "gap"), ("closed at ln S", "ln_S_closed")]
    note = "L_A / L_B = G·(S / S_ref)^δ, A the harder text; δ < 0: the gap closes."
    return Sheet.of("pairs", "Gaps of all pairs", [*columns, ("status", "status")], rows, note)


def _closed(loss: LossGap) -> Entry:
    value = loss.gap.ln_S_closed
    return Entry(UNKNOWN if value is None else short(value), (value,))
