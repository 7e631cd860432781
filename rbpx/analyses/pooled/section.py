"""The families of each text with one exponent, in the report."""

from collections.abc import Sequence

from rbpx.analyses.pooled.analysis import Pooled, PooledLaw
from rbpx.analyses.pooled.figure import figures
from rbpx.analyses.pooled.words import exponents, form_name, residuals, worth
from rbpx.display.chart.sheet import Cell, Sheet, decimal, named, sheet_of, span, state
from rbpx.display.names import law_title
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]


def section(results: Sequence[Pooled], sources: Sources) -> Section:
    """All texts that a family shares with others."""
    statuses = [
        (f"{law_title(law.law, law.k)}, {form_name(fit)}, on {pooled.group.first.dataset}", fit.status)
        for pooled in results
        for law in pooled.laws
        for fit in law.fits
    ]
    return Section(
        "pooled",
        f"One exponent for {results[0].families}",
        tuple(_sentence(pooled, law) for pooled in results for law in pooled.laws),
        tuple(figures(results, sources.fit_ids)),
        (_table(results),),
        doubts_of(statuses),
    )


def _sentence(pooled: Pooled, law: PooledLaw) -> str:
    first, on = law.fits[0], f"{law_title(law.law, law.k)} on {pooled.group.first.dataset}"
    if first.alpha is None:
        return f"{on}: {first.status.remedy}"
    said = [exponents(first), worth(law, first), *(residuals(fit) for fit in law.fits if fit.alpha is not None)]
    return f"{on}: α = {interval(first.alpha, first.alpha_lo, first.alpha_hi)}; {'; '.join(said)}."


def _table(results: Sequence[Pooled]) -> Sheet:
    rows: list[list[Cell]] = []
    for pooled in results:
        for law in pooled.laws:
            of = [named(pooled.group.first.dataset), named(law_title(law.law, law.k))]
            for family, own in zip(law.families, law.own, strict=True):
                alpha = [decimal(own.alpha), span(own.alpha_lo, own.alpha_hi)]
                rows.append([*of, named(family), *alpha, *[decimal(None)] * 3, state(own.status)])
            for fit in law.fits:
                alpha = [decimal(fit.alpha), span(fit.alpha_lo, fit.alpha_hi)]
                more = [decimal(fit.E, 3), decimal(fit.mean_correlation, 2), decimal(fit.effective_families, 2)]
                rows.append([*of, named(form_name(fit)), *alpha, *more, state(fit.status)])
    columns = [("text", "dataset"), ("law", "law"), ("family", "family"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi")]
    columns += [("E", "E"), ("ρ", "mean_correlation"), ("worth", "effective_families"), ("status", "status")]
    note = "ρ: mean correlation of the residuals at the same sizes; worth: how many independent families these are."
    return sheet_of("pooled", "Own exponents and the shared one", columns, rows, note)
