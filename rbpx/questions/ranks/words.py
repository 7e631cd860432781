"""Says in sentences which distribution describes the ranks, what follows from it, and whether one gives all laws."""

from collections.abc import Iterator
from typing import Final

from rbpx.display.section import interval_of
from rbpx.display.vocabulary import number
from rbpx.errors import number_of
from rbpx.questions.question import one_by_one
from rbpx.questions.ranks.analysis import PAPER, Ranks
from rbpx.questions.ranks.closure import Closure

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
_LOGNORMAL: Final = "lognormal_full"
_SIGNS: Final = {"mu": "μ", "sigma": "σ"}


@one_by_one
def sentences(ranks: Ranks) -> Iterator[str]:
    """The verdict, the trends of the published lognormal and its law of -ln RBP_1, then closure."""
    if ranks.totals:
        yield _verdict(ranks)
    for name, trend in ranks.trends.items():
        if trend.alpha is not None and trend.exponent.ends is not None:
            says = f"{_SIGNS[name]} of the published fit"
            change = f"by {interval_of(trend.exponent.times(-1))} for each ln S"
            if trend.exponent.leaves_out_0:
                yield f"{says} changes {change}; R² is {trend.r2 or 0.0:.3f}."
            else:
                yield f"{says} has no measurable trend in S: it changes {change}."
    for law in ranks.derived:
        is_first = (law.distribution, law.quantity, law.k) == (PAPER, "rbp", 1)
        if is_first and law.level.value is not None and law.derived.alpha is not None:
            yield (
                f"The published fit implies α = {law.derived.alpha:.3f} for −ln RBP_1; {law.measured.alpha or 0.0:.3f} "
                f"is measured, a difference of {interval_of(law.ratio.exponent)}. The implied level is "
                f"{law.level.value:.2f} times the measured one."
            )
    if ranks.closure is None:
        yield f"Whether all laws follow from one distribution was not tested: {ranks.without_closure}"
    else:
        yield from _closes(ranks.closure, ranks.group.runs[-1].size)


def _verdict(ranks: Ranks) -> str:
    """Which distribution describes the ranks, how far off the lognormal is, and whether its laws are the measured."""
    best = ranks.totals[0]
    says = (
        f"Of the distributions over all ranks, {FORMS[best.distribution]} describes them best: it has the smallest AIC "
        f"summed over all sizes, and the smallest at {best.n_best} of {number_of(len(ranks.runs), 'size')}"
    )
    behind = [each.rival(_LOGNORMAL).behind for each in ranks.runs]
    lost = [each.value for each in behind if each is not None and each.value is not None]
    if best.distribution != _LOGNORMAL and lost:
        says += f"; lognormal loses {number(min(lost), 3)} to {number(max(lost), 3)} nats per token to the best"
    met: dict[str, list[bool]] = {best.distribution: [], PAPER: []}
    for law in ranks.derived:
        if law.meets is not None:
            met[law.distribution].append(law.meets)
    of = [f"in {sum(laws)} of {len(laws)} laws that {FORMS[name]} implies" for name, laws in met.items() if laws]
    end = f". Exponent and level cannot be told from the measured ones {', and '.join(of)}." if of else "."
    return says + end


def _closes(closure: Closure, judge: str) -> Iterator[str]:
    """Whether the chosen form yields all laws, which others would, and the difference of exponents that it implies."""
    chosen, measured = closure.forms[0], closure.exponents
    if chosen.error is None:
        return
    label = chosen.form.label
    reach = "RBP at no k" if closure.reach is None else f"RBP up to k = {closure.reach:,}"
    separate = "" if closure.separate is None else f", separate laws by {closure.separate:.1%}"
    yield (
        f"{'All' if chosen.closes else 'Not all'} laws follow from {label} ({reach}). Chosen by how it predicts "
        f"{', '.join(closure.chosen_on)} from the sizes below, it has {chosen.n_inside} of {chosen.n_scored} "
        f"quantities of {judge}, which took no part in the choice, within their intervals and is off by "
        f"{chosen.error:.1%}{separate}."
    )
    if others := [form.form.label for form in closure.forms[1:] if form.closes]:
        yield (
            f"Of the other forms, {'; '.join(others)} would have all within. That is known from {judge} alone, and "
            f"{number_of(len(closure.forms), 'form')} were tried: let a larger size judge."
        )
    if measured is not None and measured.alpha is not None and chosen.difference is not None:
        yield (
            f"The exponent of −ln RBP_1 minus that of cross-entropy is {interval_of(measured.exponent)}; "
            f"{label} implies {chosen.difference:.3f}."
        )
