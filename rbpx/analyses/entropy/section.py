"""Cross-entropy of one group taken apart, told."""

from rbpx.analyses.entropy import figure as drawn
from rbpx.analyses.entropy.analysis import TERMS, Entropies
from rbpx.analyses.entropy.figure import TERM_NAMES
from rbpx.display.chart.sheet import Sheet, decimal, named, span, state
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]


def section(found: Entropies, sources: Sources) -> Section:
    """Shares of the terms, and their laws."""
    return Section(
        "entropy",
        "Cross-entropy taken apart",
        tuple(_sentences(found)),
        tuple(drawn.figures(found, sources.fit_ids)),
        (_laws(found),),
        doubts_of((_name(law.law), law.fit.status) for law in found.all_laws),
    )


def _sentences(found: Entropies) -> list[str]:
    last = found.runs[-1]
    terms = ", ".join(f"{TERM_NAMES[name]} {last.terms[name]:.3f}" for name in TERMS)
    said = [f"At {last.run.size}, {last.cross_entropy_nats:.3f} nats are {terms}."]
    laws = {law.law: law.fit for law in found.laws}
    told = [
        f"{_name(name)} {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi)}"
        for name in ("cross_entropy", "error_entropy")
        if (fit := laws[name]).alpha is not None
    ]
    return [*said, f"Exponents: {'; '.join(told)}."] if told else said


def _name(law: str) -> str:
    for ending, words in (("_share", ", share"), ("_corrected", ", corrected")):
        if law.endswith(ending):
            return _name(law.removesuffix(ending)) + words
    return TERM_NAMES.get(law, law.replace("_", "-"))


def _laws(found: Entropies) -> Sheet:
    rows = [
        [
            named(_name(law.law)),
            decimal(law.fit.alpha),
            span(law.fit.alpha_lo, law.fit.alpha_hi),
            decimal(law.fit.r2),
            state(law.fit.status),
        ]
        for law in found.all_laws
    ]
    columns = [("law", "law"), ("α", "alpha"), ("95 %", "alpha_lo alpha_hi"), ("R²", "r2"), ("status", "status")]
    note = "Corrected: error-entropy without most of the bias of counting (jackknife over documents)."
    return Sheet.of("laws", "Laws of the terms", columns, rows, note)
