"""The gaps between the texts of one family in the report."""

from collections.abc import Sequence

from rbpx.analyses.gaps.analysis import Gaps, LossGap
from rbpx.analyses.gaps.figure import MOST_PAIRS, figures, loss_name, pair_name
from rbpx.display.chart.sheet import Entry, Sheet, decimal, named, span, state
from rbpx.display.numbers import UNKNOWN, short
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]


def section(results: Sequence[Gaps], sources: Sources) -> Section:
    """All pairs of one family."""
    statuses = [
        (f"{loss_name(loss)} of {pair_name(gaps, loss)}", loss.gap.fit.status) for gaps in results for loss in gaps.gaps
    ]
    return Section(
        "gaps",
        results[0].group.first.family,
        tuple(_sentences(results)),
        tuple(figures(results, sources.fit_ids)),
        (_table(results),),
        doubts_of(statuses),
    )


def _sentences(results: Sequence[Gaps]) -> list[str]:
    """A sentence for each pair: on its cross-entropy, else on its first loss."""
    sentences = []
    for gaps in results[:MOST_PAIRS]:
        losses = [loss for loss in gaps.gaps if loss.gap.delta is not None]
        loss = next((loss for loss in losses if loss.law == "cross_entropy"), losses[0] if losses else None)
        if loss is not None:
            sentences.append(_sentence(gaps, loss))
    if len(results) > MOST_PAIRS:
        sentences.append(f"{len(results) - MOST_PAIRS} more pairs are in the figure of all pairs and in the table.")
    return sentences


def _sentence(gaps: Gaps, loss: LossGap) -> str:
    gap, (hard, easy) = loss.gap, pair_name(gaps, loss).split(" / ")
    how = {"closes": "closes with size", "opens": "opens with size", "constant": "does not measurably change with size"}
    named = loss_name(loss) if loss.law == "rbp" else loss_name(loss).capitalize()
    return (
        f"{named}: {hard} is harder than {easy}, by a factor of "
        f"{interval(gap.ratio, gap.ratio_lo, gap.ratio_hi)}; the gap {how.get(gap.verdict or '', 'is unknown')}, "
        f"δ = {interval(gap.delta, gap.delta_lo, gap.delta_hi)}."
    )


def _table(results: Sequence[Gaps]) -> Sheet:
    rows = []
    for gaps in results:
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
