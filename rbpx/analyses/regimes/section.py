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
    if result.supported is None:
        return [f"Already at k = {result.regimes[0].k:,} α is not significantly above 0, so the law holds at no k."]
    last = result.regimes[-1].k
    sentences = [f"The law holds at every k of the grid up to {result.supported:,}: its interval of α lies above 0."]
    after = next((regime for regime in result.regimes if regime.k > result.supported), None)
    if after is None:
        return [f"The law holds at every k of the grid, up to {last:,}: each interval of α lies above 0."]
    if after.n_misses is not None:
        sentences.append(
            f"At the next k, {after.k:,}, {after.n_misses:,} tokens of the largest model have a larger rank: too few, "
            "or too scattered, to distinguish a slope from noise."
        )
    return sentences
