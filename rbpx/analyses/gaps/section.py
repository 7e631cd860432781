"""The gaps between the texts of one family in the report."""

from collections.abc import Sequence

from rbpx.analyses.gaps.analysis import Gaps, LossGap
from rbpx.analyses.gaps.cells import closed, multiplicity, p_value
from rbpx.analyses.gaps.figure import MOST_PAIRS, figures, loss_name, pair_name
from rbpx.analyses.gaps.shape import REACH
from rbpx.display.chart.sheet import Entry, Sheet, decimal, named, span, state
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]


def section(results: Sequence[Gaps], sources: Sources) -> Section:
    """All pairs of one family."""
    statuses = [
        (f"{loss_name(loss)} of {pair_name(gaps, loss)}", status)
        for gaps in results
        for loss in gaps.gaps
        for status in dict.fromkeys((loss.gap.fit.status, *loss.gap.reasons()))
    ]
    return Section(
        "gaps",
        "; ".join(dict.fromkeys(gaps.group.title_of_family for gaps in results)),
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
    sentences.append(multiplicity([loss.gap for gaps in results for loss in gaps.gaps]).replace("delta", "δ"))
    if len(results) > MOST_PAIRS:
        sentences.append(f"{len(results) - MOST_PAIRS} more pairs are in the figure of all pairs and in the table.")
    return sentences


def _sentence(gaps: Gaps, loss: LossGap) -> str:
    gap, (hard, easy) = loss.gap, pair_name(gaps, loss).split(" / ")
    named = loss_name(loss) if loss.law == "rbp" else loss_name(loss).capitalize()
    how = _HOW.get(gap.verdict or "", "is unknown")
    if gap.bends and gap.verdict in ("closes", "opens"):
        how += " on average, and bends, so δ is no law to extrapolate"
    if gap.is_beyond:
        how += f"; where it would be closed lies beyond {REACH:g} times the sizes, if there is such a size"
    return (
        f"{named}: {hard} is harder than {easy}, by a factor of "
        f"{interval(gap.ratio, gap.ratio_lo, gap.ratio_hi)}; the gap {how}, "
        f"δ = {interval(gap.delta, gap.delta_lo, gap.delta_hi)}, p = {p_value(gap.p_adjusted)} after Holm."
    )


_HOW = {
    "closes": "closes with size",
    "opens": "opens with size",
    "may close": "may close with size, which does not hold up among all gaps tested",
    "may open": "may open with size, which does not hold up among all gaps tested",
    "turns": "turns round within the sizes, so there is no law here",
    "bends": "bends without a trend, so there is no law here",
    "parallel": "does not measurably change with size",
}


def _table(results: Sequence[Gaps]) -> Sheet:
    rows = []
    for gaps in results:
        for loss in gaps.gaps:
            gap = loss.gap
            bent = None if gap.curvature is None else gap.curvature.p
            rows.append(
                [
                    named(pair_name(gaps, loss)),
                    named(loss_name(loss)),
                    decimal(gap.ratio, 3),
                    span(gap.ratio_lo, gap.ratio_hi, 3),
                    decimal(gap.delta),
                    span(gap.delta_lo, gap.delta_hi),
                    Entry(p_value(gap.p), (gap.p,)),
                    Entry(p_value(gap.p_adjusted), (gap.p_adjusted,)),
                    Entry(p_value(bent), (bent,)),
                    named(None if gap.form is None else gap.form.value),
                    named(gap.verdict),
                    _closed(loss),
                    state(gap.fit.status),
                ]
            )
    columns = [("A / B", "pair"), ("loss", "loss"), ("L_A / L_B", "ratio"), ("95 % of it", "ratio_lo ratio_hi")]
    columns += [("δ", "delta"), ("95 %", "delta_lo delta_hi"), ("p", "p"), ("p Holm", "p_adjusted")]
    columns += [("p bend", "curvature_p"), ("form", "form"), ("gap", "gap")]
    columns += [("closed at S", "ln_S_closed ln_S_closed_lo ln_S_closed_hi")]
    note = (
        "L_A / L_B = G·(S / S_ref)^δ, A the harder text; δ < 0: the gap closes. Form: power, if both losses are power "
        "laws; offset, if one has an irreducible part, so that the ratio is no power law. Beyond: more than "
        f"{REACH:g} times outside the sizes, if at all."
    )
    return Sheet.of("pairs", "Gaps of all pairs", [*columns, ("status", "status")], rows, note)


def _closed(loss: LossGap) -> Entry:
    gap = loss.gap
    return Entry(closed(gap), (gap.ln_S_closed, gap.ln_S_closed_lo, gap.ln_S_closed_hi))
