"""The law in k of one group and what a larger k is worth in size, told."""

from rbpx.analyses.klaw import figure as drawn
from rbpx.analyses.klaw.analysis import STEP, KLaw, KLaws
from rbpx.display.chart.sheet import Entry, Sheet, decimal, magnitude, named, span, state, whole
from rbpx.display.section import Section, Sources, doubts_of, interval
from rbpx.display.tables import UNKNOWN, rough

__all__ = ["section"]


def section(found: KLaws, sources: Sources) -> Section:
    """-ln RBP_k against k, and the laws in k."""
    named_statuses = ((law.run.size, law.fit.status) for law in found.laws)
    figures, doubts = tuple(drawn.figures(found)), doubts_of(named_statuses)
    return Section("k", "The law in k", tuple(_sentences(found)), figures, (_laws(found),), doubts)


def _sentences(found: KLaws) -> list[str]:
    known = [law for law in found.laws if law.fit.alpha is not None]
    if not known:
        return []
    worst = min(known, key=lambda law: law.fit.r2 or 0.0)
    last = known[-1]
    said = [
        f"At fixed size −ln RBP_k falls with k too: for {last.run.size} as k^−α with α = "
        f"{interval(last.fit.alpha, last.fit.alpha_lo, last.fit.alpha_hi)}; R² is {worst.fit.r2:.3f} or more."
    ]
    exchanged = next((law for law in known if law.exchange is not None), None)
    if exchanged is not None and exchanged.exchange is not None:
        worth = exchanged.exchange
        until = f"to {rough(worth.hi)}" if worth.hi is not None else "and no size is known to be enough"
        said.append(
            f"To do at k = 1 what {exchanged.run.size} does at k = {STEP}, a model must be {rough(worth.factor)} times "
            f"larger (95 %: {rough(worth.lo)} {until})."
        )
    return said


def _laws(found: KLaws) -> Sheet:
    rows = [_row(law) for law in found.laws]
    columns = [("size", "size"), ("S", "non_embedding_params"), ("α_k", "alpha"), ("95 %", "alpha_lo alpha_hi")]
    columns += [("R²", "r2"), (f"k = {STEP} is worth", "factor"), ("95 % of it", "factor_lo factor_hi")]
    note = f"k = {STEP} is worth: how many times larger a model does at k = 1 what this one does at k = {STEP}."
    return Sheet.of("laws", "Laws in k", [*columns, ("status", "status")], rows, note)


def _row(law: KLaw) -> list[Entry]:
    fit, worth = law.fit, law.exchange
    factor, ends = magnitude(None), span(None, None)
    if worth is not None:
        factor = magnitude(worth.factor)
        text = f"{rough(worth.lo)} to {rough(worth.hi)}" if worth.lo is not None else UNKNOWN
        ends = Entry(text, (worth.lo, worth.hi))
    return [
        named(law.run.size),
        whole(law.run.non_embedding_params),
        decimal(fit.alpha),
        span(fit.alpha_lo, fit.alpha_hi),
        decimal(fit.r2),
        factor,
        ends,
        state(fit.status),
    ]
