"""The distribution of the ranks in sentences: which form fits best, how it changes with S, what follows from it."""

from collections.abc import Iterator
from typing import Final

from rbpx.analyses.question import one_by_one
from rbpx.analyses.ranks.analysis import PAPER, Ranks
from rbpx.display.section import interval, interval_of
from rbpx.errors import number_of

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


@one_by_one
def sentences(ranks: Ranks) -> Iterator[str]:
    """The form with the smallest AIC, the trends of the published one, and its law of -ln RBP_1."""
    for total in ranks.totals[:1]:
        yield (
            f"Of the distributions over all ranks, {FORMS[total.distribution]} is the one with the smallest AIC over "
            f"all sizes (it has the smallest at {total.n_best} of {number_of(len(ranks.runs), 'size')})."
        )
    for name, trend in ranks.trends.items():
        if trend.alpha is not None and trend.exponent.ends is not None:
            lo, hi = trend.exponent.ends
            says = f"{_SIGNS[name]} of the published fit"
            change = f"by {interval(-trend.alpha, -hi, -lo)} for each ln S"
            if lo <= 0 <= hi:
                yield f"{says} has no measurable trend in S: it changes {change}."
            else:
                yield f"{says} changes {change}; R² is {trend.r2 or 0.0:.3f}."
    for law in ranks.closures:
        is_first = (law.distribution, law.quantity, law.k) == (PAPER, "rbp", 1)
        if is_first and law.level.value is not None and law.derived.alpha is not None:
            yield (
                f"From the published fit follows α = {law.derived.alpha:.3f} of −ln RBP_1, where "
                f"{law.measured.alpha or 0.0:.3f} is measured: a difference of {interval_of(law.ratio.exponent)}. Its "
                f"level is {law.level.value:.2f} times the measured one."
            )
