"""Puts gaps into sentences: which text is harder, what the gap does, and how testing many gaps affects that."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.section import interval_of
from rbpx.display.vocabulary import AXES, number
from rbpx.laws.power.intervals import ALPHA
from rbpx.questions.gaps.pairs import LossGap, Pair
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


def sentences(pairs: Sequence[Pair]) -> Iterator[str]:
    """One for each of the first pairs, on its cross-entropy or else its first loss."""
    for pair in pairs[:MOST_PAIRS]:
        losses = [loss for loss in pair.losses if loss.gap.delta.value is not None]
        yield from map(_sentence, sorted(losses, key=lambda loss: loss.law != "cross_entropy")[:1])
    if len(pairs) > MOST_PAIRS:
        yield f"{len(pairs) - MOST_PAIRS} more pairs are in the table."


def p_value(p: float | None) -> str:
    """A p value in three decimals."""
    return "<0.001" if p is not None and p < 0.0005 else number(p, 3)


def _sentence(loss: LossGap) -> str:
    gap = loss.gap
    does = _DOES[gap.verdict].format(grows=AXES[loss.a.group.axis].grows)
    if gap.bends and gap.verdict in ("closes", "opens"):
        does += " on average, but bends, so δ cannot be extrapolated"
    if gap.is_beyond:
        does += f"; it would be closed only beyond {REACH:g} times the sizes, if at all"
    return (
        f"{loss.name}: {loss.a.name} is harder than {loss.b.name}, by a factor of {interval_of(gap.ratio)}; the gap "
        f"{does}, δ = {interval_of(gap.delta)}, p after Holm {p_value(gap.p_adjusted)}."
    )


def multiplicity(pairs: Sequence[Pair], n_tested: int) -> str:
    """How the verdicts take into account that several gaps are tested."""
    bent = [loss.gap.bends for pair in pairs for loss in pair.losses if loss.gap.curvature is not None]
    said = (
        f"A gap closes or opens where p of δ = 0, adjusted for all {n_tested} gaps asked for (Holm), is "
        f"below {ALPHA:g}; it may close or open where only its own p is, as for 1 in 20 gaps without a trend; else no "
        "trend shows, and it is parallel."
    )
    chance = f"{ALPHA:g}, each tested by itself; chance alone would give {ALPHA * len(bent):.1f}"
    return f"{said} {sum(bent)} of {len(bent)} bend at {chance}." if bent else said
