"""The decomposition of cross-entropy in the report."""

from rbpx.analyses.entropy.analysis import TERMS, Entropies
from rbpx.analyses.entropy.figure import figures
from rbpx.display.chart.law_sheet import law_sheet
from rbpx.display.names import law_name
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]

_CORRECTED = "Corrected: error-entropy with most of the bias of counting removed (jackknife over documents)."


def section(result: Entropies, sources: Sources) -> Section:
    """The shares of the terms, and their laws."""
    return Section(
        "entropy",
        "Cross-entropy taken apart",
        tuple(_sentences(result)),
        tuple(figures(result, sources.fit_ids)),
        (law_sheet("Laws of the terms", ((law.law, law.fit) for law in result.all_laws), _CORRECTED),),
        doubts_of((law_name(law.law), law.fit.status) for law in result.all_laws),
    )


def _sentences(result: Entropies) -> list[str]:
    last = result.runs[-1]
    terms = ", ".join(f"{law_name(name)} {last.terms[name]:.3f}" for name in TERMS)
    at_largest = f"At {last.run.size}, cross-entropy is {last.cross_entropy_nats:.3f} nats: {terms}."
    laws = {law.law: law.fit for law in result.laws}
    exponents = [
        f"{law_name(name)} {interval(fit.alpha, fit.alpha_lo, fit.alpha_hi)}"
        for name in ("cross_entropy", "error_entropy")
        if (fit := laws[name]).alpha is not None
    ]
    return [at_largest, f"Exponents: {'; '.join(exponents)}."] if exponents else [at_largest]
