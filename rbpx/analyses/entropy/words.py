"""The decomposition of cross-entropy in sentences."""

from collections.abc import Sequence

from rbpx.analyses.entropy.analysis import TERMS, Entropies
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import law_title


def sentences(results: Sequence[Entropies]) -> list[str]:
    """The terms of the last model, and the exponents of cross-entropy and of error-entropy."""
    return [sentence for entropies in results for sentence in _of_group(entropies)]


def _of_group(entropies: Entropies) -> list[str]:
    last = entropies.runs[-1]
    terms = ", ".join(f"{law_title(name)} {last.terms[name]:.3f}" for name in TERMS)
    exponents = [
        f"{law_title(law.law)} {interval_of(law.fit.exponent)}"
        for law in entropies.laws
        if law.law in ("cross_entropy", "error_entropy") and law.fit.alpha is not None
    ]
    of_laws = [f"Exponents: {'; '.join(exponents)}."] if exponents else []
    return [f"At {last.run.size}, cross-entropy is {last.cross_entropy_nats:.3f} nats: {terms}.", *of_laws]
