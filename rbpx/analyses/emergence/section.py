"""Emergence in the report: how often N tokens in a row are right, and how far off independence is."""

import math

from rbpx.analyses.emergence.analysis import LAGS, LEVELS, Emergence, Emergences
from rbpx.analyses.emergence.crossing import Crossing
from rbpx.analyses.emergence.figure import figures
from rbpx.display.chart.sheet import Entry, Sheet, decimal, magnitude, span, state, whole
from rbpx.display.numbers import UNKNOWN, rough, short
from rbpx.display.section import Section, Sources, doubts_of

__all__ = ["section"]

_NOTABLE = 0.03  # a correlation below this is called hardly any


def section(result: Emergences, sources: Sources) -> Section:
    """A figure and a table of laws for each k."""
    statuses = [(f"k = {each.k:,}, N = {law.n}", law.fit.status) for each in result.by_k for law in each.laws]
    sheets = (_laws(result),) if result.by_k else ()
    return Section(
        "emergence",
        "Emergence: N tokens in a row",
        tuple(_sentences(result)),
        tuple(figures(result)),
        sheets,
        doubts_of(statuses),
    )


def _sentences(result: Emergences) -> list[str]:
    sentences = [_factor(result, each) for each in result.by_k]
    return [sentence for sentence in sentences if sentence is not None]


def _factor(result: Emergences, each: Emergence) -> str | None:
    """How far off independence is for the largest model, at the second window length or the only one."""
    largest = result.group.runs[-1]
    windows = [
        (n, p, alone)
        for n, p, alone in zip(each.lengths, each.measured_MN[-1], each.independent_MN[-1], strict=True)
        if n > 1 and math.isfinite(p) and math.isfinite(alone) and p > 0 and alone > 0
    ]
    if not windows:
        return None
    n, p, alone = windows[min(1, len(windows) - 1)]
    sentence = (
        f"k = {each.k:,}: {largest.size} has {p:.3g} of all windows of {n} tokens right; if tokens were independent, "
        f"it would be {alone:.3g}, {_times(p / alone)}"
    )
    if each.dependence and math.isfinite(each.dependence[-1].autocorrelation[0]):
        rho = each.dependence[-1].autocorrelation[LAGS.index(1)]
        how = "Hits cluster" if rho > _NOTABLE else "Hits repel" if rho < -_NOTABLE else "Hits hardly cluster"
        sentence += f". {how}: the correlation of adjacent tokens is {rho:.2f}"
    return f"{sentence}."


def _times(factor: float) -> str:
    if 0.95 < factor < 1.05:
        return "about as much"
    return f"{rough(factor)} times less" if factor > 1 else f"{rough(1 / factor)} times more"


def _laws(result: Emergences) -> Sheet:
    rows = []
    for each in result.by_k:
        for law in each.laws:
            fit = law.fit
            row = [whole(each.k), whole(law.n), decimal(fit.alpha), span(fit.alpha_lo, fit.alpha_hi), decimal(fit.r2)]
            rows.append([*row, *(_crossing(c) for c in law.crossings), state(fit.status)])
        joint = each.joint
        row = [whole(each.k), Entry("all", ("all",)), decimal(joint.alpha), span(joint.alpha_lo, joint.alpha_hi)]
        rows.append([*row, decimal(joint.r2_lnln), *(magnitude(None) for _ in LEVELS), state(joint.status)])
    columns = [("k", "k"), ("N", "n"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi"), ("R²", "r2")]
    columns += [(f"S at p = {level}", f"S_at_{level}") for level in LEVELS]
    note = "−ln p = C·S^−α for each N; all: −ln p = C·N·S^−α for every N. S at p: where p reaches that level."
    return Sheet.of("laws", "Laws of windows", [*columns, ("status", "status")], rows, note)


def _crossing(crossing: Crossing) -> Entry:
    S = crossing.S
    is_finite = S is not None and math.isfinite(S)
    return Entry(short(S) if is_finite else UNKNOWN, (S if is_finite else None,))
