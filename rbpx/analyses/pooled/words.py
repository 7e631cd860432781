"""Pooled laws in sentences: the shared exponent, whether it is shared, and what the residuals about it are."""

from collections.abc import Sequence

from rbpx.analyses.pooled.analysis import Pooled, PooledLaw
from rbpx.display.numbers import number
from rbpx.display.section import interval
from rbpx.display.vocabulary import law_title
from rbpx.laws.families.pooled import PooledFit
from rbpx.laws.names import Method

__all__ = ["residuals", "sentences", "title"]


def title(pooled: Pooled, law: PooledLaw) -> str:
    """A law on its text."""
    return f"{law_title(law.law, law.k)} on {pooled.group.first.dataset}"


def sentences(results: Sequence[Pooled]) -> list[str]:
    """The shared exponent, what the families are worth and what the residuals show, a sentence for each law."""
    return [_sentence(title(pooled, law), law) for pooled in results for law in pooled.laws]


def _sentence(name: str, law: PooledLaw) -> str:
    first = law.fits[0]
    if first.alpha is None:
        return f"{name}: {first.status.remedy}"
    said = [_exponents(first), families_worth(law, first), *(residuals(fit) for fit in law.fits if fit.alpha is not None)]
    return f"{name}: α = {interval(first.alpha, first.alpha_lo, first.alpha_hi)}; {'; '.join(said)}."


def _exponents(fit: PooledFit) -> str:
    """Whether the families have one exponent."""
    if fit.exponents is None:
        return "equal exponents cannot be tested"
    differ = "exponents differ" in fit.reasons
    return f"{'exponents differ' if differ else 'exponents may be equal'} (p = {fit.exponents.p:.2g})"


def families_worth(law: PooledLaw, fit: PooledFit) -> str:
    """How many families these are worth."""
    n, rho = len(law.families), fit.mean_correlation
    if rho is None:
        return f"{n} families that share fewer than 4 sizes, so their residuals cannot be correlated"
    return f"{n} families whose residuals correlate by {rho:.2f} count as {number(fit.effective_families, 2)}"


def residuals(fit: PooledFit) -> str:
    """What the residuals about one form are."""
    return f"{'y = E + C · S^−α' if fit.method is Method.offset else 'y = C · S^−α'}: {fit.verdict}"
