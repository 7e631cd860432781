"""Emergence in the report: how often N tokens in a row are right, and how far off independence is."""

import math

from rbpx.analyses.emergence.analysis import LAGS, LEVELS, Emergence, Emergences
from rbpx.analyses.emergence.crossing import Crossing
from rbpx.analyses.emergence.figure import figures
from rbpx.analyses.emergence.pooled import PooledFit
from rbpx.display.chart.sheet import Cell, Sheet, decimal, entry, magnitude, sheet_of, span, state, whole
from rbpx.display.numbers import UNKNOWN, rough, short
from rbpx.display.section import Section, Sources, doubts_of, interval
from rbpx.laws.verdict import FAR
from rbpx.status import Status

__all__ = ["section"]

_WHAT_BENDS = {"drift": "the change of α with N", "curvature": "the curvature in ln S"}
_NOTABLE = 0.03  # a correlation below this is called hardly any


def section(result: Emergences, sources: Sources) -> Section:
    """A figure and a table of laws for each k."""
    statuses = [(f"k = {each.k:,}, N = {law.n}", law.fit.status) for each in result.by_k for law in each.laws]
    statuses += [(f"k = {each.k:,}, pooled", each.pooled.status) for each in result.by_k]
    statuses += [(f"k = {each.k:,}, C·N·S^−α", each.joint.status) for each in result.by_k]
    statuses += [
        (f"k = {each.k:,}, N = {law.n} at p = {c.share}", Status.beyond)
        for each in result.by_k
        for law in each.laws
        for c in law.crossings
        if c.is_beyond
    ]
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
    sentences = [said for each in result.by_k for said in (_factor(result, each), _pooled(each))]
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


def _pooled(each: Emergence) -> str | None:
    """The exponent that all window lengths have in common, or that they have none."""
    pooled = each.pooled
    if pooled.alpha is None:
        return None
    alpha = interval(pooled.alpha, pooled.alpha_lo, pooled.alpha_hi)
    if Status.no_trend in pooled.reasons:
        return f"k = {each.k:,}: no effect of size on windows shows: one exponent for all N is {alpha}."
    how = "falls" if pooled.alpha > 0 else "rises"
    sentence = f"k = {each.k:,}: with a constant for each N, −ln p {how} as S^−α with α = {alpha}"
    if pooled.bent:
        names = [_WHAT_BENDS.get(one.name, one.name.replace("alpha", "α")) for one in pooled.bent]
        sentence += f", an average and no law: {', '.join(names)}"
        sentence += f" {'differs' if len(pooled.bent) == 1 else 'differ'} significantly from what one law says"
    if pooled.dependent:
        slower = sum(one.estimate.value or 0.0 for one in pooled.dependent if one.name == _last(pooled)) < 0
        sentence += f". The constants do not grow as N{', but slower' if slower else ''}, so C·N·S^−α does not hold"
    return f"{sentence}."


def _last(pooled: PooledFit) -> str:
    """The name of the constant of the longest windows."""
    return pooled.growth[-1].name


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
        pooled, joint = each.pooled, each.joint
        for name, one, r2 in (("pooled", pooled, None), ("C·N", joint, joint.r2_lnln)):
            row = [whole(each.k), entry(name, (name,)), decimal(one.alpha), span(one.alpha_lo, one.alpha_hi)]
            rows.append([*row, decimal(r2), *(magnitude(None) for _ in LEVELS), state(one.status)])
    columns = [("k", "k"), ("N", "n"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi"), ("R²", "r2")]
    columns += [(f"S at p = {level}", f"S_at_{level}") for level in LEVELS]
    note = (
        "−ln p = C·S^−α for each N; pooled: one α for every N and a constant for each, from the counts of windows, "
        "p = 0 included; C·N: −ln p = C·N·S^−α, as if tokens were independent. S at p: where p reaches that level, "
        f"outside the sizes by the prediction over forms; beyond: more than {FAR} times outside the sizes."
    )
    return sheet_of("laws", "Laws of windows", [*columns, ("status", "status")], rows, note)


def _crossing(crossing: Crossing) -> Cell:
    S, lo = crossing.S, crossing.lo
    text = short(S) if S is not None else UNKNOWN if lo is None else f"from {short(lo)}"
    return entry(f"{text}, beyond" if crossing.is_beyond and crossing.has_numbers else text, (S,))
