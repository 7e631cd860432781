"""Up to which k the law of one group stands, told."""

from rbpx.analyses.regimes import figure as drawn
from rbpx.analyses.regimes.analysis import Regimes
from rbpx.display.section import Section, Sources, doubts_of

__all__ = ["section"]


def section(found: Regimes, sources: Sources) -> Section:
    """Exponent, R2 and noise against k."""
    named = ((f"k = {regime.k:,}", regime.law.fit.status) for regime in found.regimes)
    return Section(
        "regimes",
        "How far k reaches",
        tuple(_sentences(found)),
        tuple(drawn.figures(found, sources.fit_ids)),
        (),
        doubts_of(named),
    )


def _sentences(found: Regimes) -> list[str]:
    if found.supported is None:
        return [f"At k = {found.regimes[0].k:,} α is not told from 0 already, so the law stands at no k."]
    last = found.regimes[-1].k
    said = [f"The law stands at every k of the grid up to {found.supported:,}: its interval of α lies above 0."]
    after = next((regime for regime in found.regimes if regime.k > found.supported), None)
    if after is None:
        return [f"The law stands at every k of the grid, up to {last:,}: each interval of α lies above 0."]
    if after.n_misses is not None:
        said.append(
            f"At the next k, {after.k:,}, {after.n_misses:,} tokens of the largest model have a larger rank: too few, "
            "or with too much scatter, to tell a slope from noise."
        )
    return said
