"""Puts gaps into sentences: which text is harder, what the gap does, and how testing many gaps affects that."""

from collections.abc import Sequence
from typing import Final

from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AXES, number
from rbpx.laws.power.intervals import ALPHA
from rbpx.questions.gaps.analysis import Gaps, LossGap
from rbpx.questions.gaps.shape import REACH

MOST_PAIRS: Final = 6  # with sentences and figures of their own: the 15 pairs of 6 texts would fill a page
_DOES: Final = {
    "closes": "closes {grows}",
    "opens": "opens {grows}",
    "may close": "may close {grows}, which does not hold up among all gaps tested",
    "may open": "may open {grows}, which does not hold up among all gaps tested",
    "turns": "turns round within the sizes, so there is no law here",
    "bends": "bends without a trend, so there is no law here",
    "parallel": "does not measurably change {grows}",
    None: "is unknown",
}


def sentences(results: Sequence[Gaps]) -> list[str]:
    """One for each of the first pairs, on its cross-entropy or else its first loss."""
    found = []
    for gaps in results[:MOST_PAIRS]:
        losses = [loss for loss in gaps.gaps if loss.gap.delta.value is not None]
        found += [_sentence(gaps, loss) for loss in sorted(losses, key=lambda loss: loss.law != "cross_entropy")[:1]]
    if len(results) > MOST_PAIRS:
        found.append(f"{len(results) - MOST_PAIRS} more pairs are in the table.")
    return found


def p_value(p: float | None) -> str:
    """A p value in three decimals."""
    return "<0.001" if p is not None and p < 0.0005 else number(p, 3)


def _sentence(gaps: Gaps, loss: LossGap) -> str:
    gap, (hard, easy) = loss.gap, gaps.sides(loss)
    does = _DOES[gap.verdict].format(grows=AXES[gaps.group.axis].grows)
    if gap.bends and gap.verdict in ("closes", "opens"):
        does += " on average, but bends, so δ cannot be extrapolated"
    if gap.is_beyond:
        does += f"; it would be closed only beyond {REACH:g} times the sizes, if at all"
    return (
        f"{loss.name}: {hard} is harder than {easy}, by a factor of {interval_of(gap.ratio)}; the gap {does}, "
        f"δ = {interval_of(gap.delta)}, p after Holm {p_value(gap.p_adjusted)}."
    )


def multiplicity(results: Sequence[Gaps]) -> str:
    """How the verdicts take into account that several gaps are tested."""
    tested = [loss.gap for gaps in results for loss in gaps.gaps if loss.gap.curvature is not None]
    said = (
        f"A gap closes or opens where p of δ = 0, adjusted for all {results[0].n_tested} gaps asked for (Holm), is "
        f"below {ALPHA:g}; it may close or open where only its own p is, as for 1 in 20 gaps without a trend; else no "
        "trend shows, and it is parallel."
    )
    if not tested:
        return said
    return (
        f"{said} {sum(gap.bends for gap in tested)} of {len(tested)} bend at {ALPHA:g}, each tested by itself; chance "
        f"alone would give {ALPHA * len(tested):.1f}."
    )
