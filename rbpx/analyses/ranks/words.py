"""Says in sentences which distribution fits the ranks best, how it changes with S, and what follows from it."""

from collections.abc import Iterator
from typing import Final

from rbpx.analyses.question import one_by_one
from rbpx.analyses.ranks.analysis import PAPER, Ranks
from rbpx.display.section import interval_of
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
            f"Of the distributions over all ranks, {FORMS[total.distribution]} has the smallest AIC summed over all "
            f"sizes, and the smallest at {total.n_best} of {number_of(len(ranks.runs), 'size')}."
        )
    for name, trend in ranks.trends.items():
        if trend.alpha is not None and trend.exponent.ends is not None:
            says = f"{_SIGNS[name]} of the published fit"
            change = f"by {interval_of(trend.exponent.times(-1))} for each ln S"
            if trend.exponent.leaves_out_0:
                yield f"{says} changes {change}; R² is {trend.r2 or 0.0:.3f}."
            else:
                yield f"{says} has no measurable trend in S: it changes {change}."
    for law in ranks.closures:
        is_first = (law.distribution, law.quantity, law.k) == (PAPER, "rbp", 1)
        if is_first and law.level.value is not None and law.derived.alpha is not None:
            yield (
                f"The published fit implies α = {law.derived.alpha:.3f} for −ln RBP_1; {law.measured.alpha or 0.0:.3f} "
                f"is measured, a difference of {interval_of(law.ratio.exponent)}. The implied level is "
                f"{law.level.value:.2f} times the measured one."
            )
