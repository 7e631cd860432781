"""The distribution of the ranks in sentences: which form fits best, how it changes with S, what follows from it."""

from collections.abc import Sequence
from typing import Final

from rbpx.analyses.ranks.analysis import PAPER, Ranks
from rbpx.counts import number_of
from rbpx.display.section import interval, interval_of
from rbpx.laws.power import PowerLawFit

FORMS: Final = {
    "lognormal_paper": "lognormal (published fit)",
    "lognormal_full": "lognormal",
    "power_law": "power law",
    "power_law_cutoff": "truncated power law",
    "zipf_mandelbrot": "Zipf–Mandelbrot",
    "weibull": "Weibull",
    "negative_binomial": "negative binomial",
    "lognormal_inflated": "lognormal, share at rank 1",
}
_SIGNS: Final = {"mu": "μ", "sigma": "σ"}


def sentences(results: Sequence[Ranks]) -> list[str]:
    """The form with the smallest AIC, the trends of the published one, and its law of -ln RBP_1."""
    return [sentence for ranks in results for sentence in (*_of_forms(ranks), *_of_trends(ranks), *_of_law(ranks))]


def _of_forms(ranks: Ranks) -> list[str]:
    return [
        f"Of the distributions over all ranks, {FORMS[total.distribution]} is the one with the smallest AIC over all "
        f"sizes (it has the smallest at {total.n_best} of {number_of(len(ranks.runs), 'size')})."
        for total in ranks.totals[:1]
    ]


def _of_trends(ranks: Ranks) -> list[str]:
    return [
        _trend(_SIGNS[name], trend, trend.alpha, trend.alpha_lo, trend.alpha_hi)
        for name, trend in ranks.trends.items()
        if trend.alpha is not None and trend.alpha_lo is not None and trend.alpha_hi is not None
    ]


def _trend(sign: str, trend: PowerLawFit, alpha: float, lo: float, hi: float) -> str:
    change = f"by {interval(-alpha, -hi, -lo)} for each ln S"
    if lo <= 0 <= hi:
        return f"{sign} of the published fit has no measurable trend in S: it changes {change}."
    return f"{sign} of the published fit changes {change}; R² is {trend.r2 or 0.0:.3f}."


def _of_law(ranks: Ranks) -> list[str]:
    return [
        f"From the published fit follows α = {closure.derived.alpha:.3f} of −ln RBP_1, where "
        f"{closure.measured.alpha or 0.0:.3f} is measured: a difference of {interval_of(closure.ratio.exponent)}. Its "
        f"level is {closure.level.value:.2f} times the measured one."
        for closure in ranks.closures
        if closure.distribution == PAPER and closure.quantity == "rbp" and closure.k == 1
        if closure.level.value is not None and closure.derived.alpha is not None
    ]
