"""Pooled laws in words, for the terminal and the report."""

from rbpx.analyses.pooled.analysis import PooledLaw
from rbpx.display.numbers import number
from rbpx.laws.names import Method
from rbpx.laws.pooled import PooledFit

__all__ = ["exponents", "form_name", "residuals", "worth"]


def form_name(fit: PooledFit) -> str:
    """A pooled law in a column of families."""
    return "pooled, with E" if fit.method is Method.offset else "pooled"


def exponents(fit: PooledFit) -> str:
    """Whether the families have one exponent."""
    if fit.exponents is None:
        return "equal exponents cannot be tested"
    differ = "exponents differ" in fit.reasons
    return f"{'exponents differ' if differ else 'exponents may be equal'} (p = {fit.exponents.p:.2g})"


def worth(law: PooledLaw, fit: PooledFit) -> str:
    """How many families these are worth."""
    n, rho = len(law.families), fit.mean_correlation
    if rho is None:
        return f"{n} families that share fewer than 4 sizes, so their residuals cannot be correlated"
    return f"{n} families whose residuals correlate by {rho:.2f} count as {number(fit.effective_families, 2)}"


def residuals(fit: PooledFit) -> str:
    """What the residuals about one form are."""
    return f"{'y = E + C S^-alpha' if fit.method is Method.offset else 'y = C S^-alpha'}: {fit.verdict}"
