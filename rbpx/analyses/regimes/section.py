"""Regimes of k in the report: up to which k the law of one group holds."""

from rbpx.analyses.regimes.analysis import Regimes
from rbpx.analyses.regimes.figure import figures
from rbpx.display.section import Section, Sources, doubts_of

__all__ = ["section"]


def section(result: Regimes, sources: Sources) -> Section:
    """Exponent, R2 and noise against k."""
    named = ((f"k = {regime.k:,}", regime.law.fit.status) for regime in result.regimes)
    return Section(
        "regimes",
        "How far k reaches",
        tuple(_sentences(result)),
        tuple(figures(result, sources.fit_ids)),
        (),
        doubts_of(named),
    )


def _sentences(result: Regimes) -> list[str]:
    if not result.regimes:
        return ["RBP_k is not known at any k of the grid."]
    holds = ", ".join(f"{regime.k:,}" for regime in result.regimes if regime.stands)
    if result.supported is None:
        first = result.regimes[0]
        others = f"it holds at k = {holds}." if holds else "and at no other k of the grid."
        return [f"Already at k = {first.k:,} the law does not hold ({first.law.fit.status.label}); {others}"]
    after = next((regime for regime in result.regimes if regime.k > result.supported), None)
    if after is None:
        return [f"The law holds at every k of the grid, up to {result.regimes[-1].k:,}."]
    sentences = [f"The law holds at every k of the grid up to {result.supported:,}."]
    why = f"At the next k, {after.k:,}, it does not ({after.law.fit.status.label})"
    if after.n_misses is not None:
        why += f"; {after.n_misses:,} tokens of the largest model have a larger rank"
    return [*sentences, f"{why}."]
