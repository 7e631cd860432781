"""The law in k in the report, and what a larger k is worth in size."""

from rbpx.analyses.klaw.analysis import STEP, KLaw, KLaws
from rbpx.analyses.klaw.figure import figures
from rbpx.display.chart.sheet import Entry, Sheet, decimal, magnitude, named, span, state, whole
from rbpx.display.numbers import UNKNOWN, rough
from rbpx.display.section import Section, Sources, doubts_of, interval
from rbpx.status import Status

__all__ = ["section"]


def section(result: KLaws, sources: Sources) -> Section:
    """-ln RBP_k against k, and the laws in k."""
    return Section(
        "k",
        "The law in k",
        tuple(_sentences(result)),
        tuple(figures(result)),
        (_laws(result),),
        doubts_of((law.run.size, law.fit.status) for law in result.laws),
    )


def _sentences(result: KLaws) -> list[str]:
    fitted = [law for law in result.laws if law.fit.alpha is not None]
    if not fitted:
        return []
    worst = min(fitted, key=lambda law: law.fit.r2 or 0.0)
    last = fitted[-1]
    sentences = [
        f"At fixed size −ln RBP_k falls with k too: for {last.run.size} as k^−α with α = "
        f"{interval(last.fit.alpha, last.fit.alpha_lo, last.fit.alpha_hi)}; R² is {worst.fit.r2:.3f} or more for all."
    ]
    bent = [law.run.size for law in fitted if Status.bends in law.fit.params["reasons"]]
    if bent:
        which = "every size" if len(bent) == len(fitted) else ", ".join(bent)
        sentences.append(
            f"Yet the points curve significantly at {which}, so α is the slope of the best line over these k and of no "
            "law."
        )
    exchanged = next((law for law in fitted if law.exchange is not None), None)
    if exchanged is not None and exchanged.exchange is not None:
        worth = exchanged.exchange
        until = f"to {rough(worth.hi)}" if worth.hi is not None else "and no size is known to be enough"
        sentences.append(
            f"To do at k = 1 what {exchanged.run.size} does at k = {STEP}, a model must be {rough(worth.factor)} times "
            f"larger (95 %: {rough(worth.lo)} {until})"
            + (f"; this is local, from k = 1 to {STEP} alone." if worth.is_local else ".")
        )
    return sentences


def _laws(result: KLaws) -> Sheet:
    rows = [_row(law) for law in result.laws]
    columns = [("size", "size"), ("S", "non_embedding_params"), ("α_k", "alpha"), ("95 %", "alpha_lo alpha_hi")]
    columns += [
        ("R²", "r2"),
        ("neighbours", "residual_autocorrelation"),
        (f"k = {STEP} is worth", "factor"),
        ("95 % of it", "factor_lo factor_hi"),
    ]
    note = (
        "95 %: over other documents, at all k together. Neighbours: correlation of the residuals of neighbouring k. "
        f"k = {STEP} is worth: how many times larger a model must be to do at k = 1 what this one does at k = {STEP}; "
        f"local, from k = 1 to {STEP} alone, where the law in k bends."
    )
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
        decimal(fit.params.get("residual_autocorrelation"), 2),
        factor,
        ends,
        state(fit.status),
    ]
