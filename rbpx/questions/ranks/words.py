"""Says in sentences which distribution describes the ranks, what follows from it, and whether one gives all laws."""

from collections.abc import Iterator, Sequence
from typing import Final

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.vocabulary import number
from rbpx.errors import number_of
from rbpx.laws.ranks.shapes import RANK_FORMS
from rbpx.questions.ranks.analysis import Ranks
from rbpx.questions.ranks.compare import PAPER
from rbpx.store.store import Record

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
_SIGNS: Final = {"lognormal_mu": "μ", "lognormal_sigma": "σ"}


def sentences(ranks: Ranks) -> Iterator[str]:
    """The verdict, the trends of the published lognormal and its law of -ln RBP_1, then closure."""
    if ranks.totals:
        yield _verdict(ranks)
    for row in ranks.trends:
        trend, says = estimate_in(row, "alpha"), f"{_SIGNS[row['law']]} of the published fit"
        change = f"by {interval_of(trend.times(-1))} for each ln S"
        if trend.leaves_out_0:
            yield f"{says} changes {change}; R² is {row['r2'] or 0.0:.3f}."
        elif trend.ends is not None:
            yield f"{says} has no measurable trend in S: it changes {change}."
    for row in (law.row for law in ranks.derived):
        of, is_first = row["params"], (row["distribution"], row["law"], row["k"]) == (PAPER, "derived_rbp", 1)
        if is_first and of["level"] is not None and row["alpha"] is not None:
            yield (
                f"The published fit implies α = {row['alpha']:.3f} for −ln RBP_1; {of['measured']['alpha'] or 0.0:.3f} "
                f"is measured, a difference of {interval_of(estimate_in(of, 'alpha_more'))}. The implied level is "
                f"{of['level']:.2f} times the measured one."
            )
    if ranks.closure:
        yield from _closes([row for row in ranks.closure if row["kind"] == "form"], ranks.group.runs[-1].size)
    else:
        yield f"Whether all laws follow from one distribution was not tested: {ranks.without_closure}"


def form_label(row: Record) -> str:
    """The name of the form that a row of closure is about."""
    return RANK_FORMS[row["distribution"]].label


def _verdict(ranks: Ranks) -> str:
    """Which distribution describes the ranks, how far off the lognormal is, and whether its laws are the measured."""
    best = ranks.totals[0]
    name = best["distribution"]
    says = (
        f"Of the distributions over all ranks, {FORMS[name]} describes them best: it has the smallest AIC summed over "
        f"all sizes, and the smallest at {best['n_best']} of {number_of(len(ranks.group.runs), 'size')}"
    )
    behind = [row["params"].get("nats_behind") for row in ranks.rank_fits if row["distribution"] == _LOGNORMAL]
    lost = [each for each in behind if each is not None]
    if name != _LOGNORMAL and lost:
        says += f"; lognormal loses {number(min(lost), 3)} to {number(max(lost), 3)} nats per token to the best"
    met: dict[str, list[bool]] = {name: [], PAPER: []}
    for row in (law.row for law in ranks.derived):
        level, more = (estimate_in(row["params"], key).ends for key in ("level", "alpha_more"))
        if level is not None and more is not None:
            met[row["distribution"]].append(level[0] <= 1 <= level[1] and more[0] <= 0 <= more[1])
    of = [f"in {sum(laws)} of {len(laws)} laws that {FORMS[name]} implies" for name, laws in met.items() if laws]
    end = f". Exponent and level cannot be told from the measured ones {', and '.join(of)}." if of else "."
    return says + end


def _closes(forms: Sequence[Record], judge: str) -> Iterator[str]:
    """Whether the chosen form yields all laws, which others would, and the difference of exponents that it implies."""
    chosen, label = forms[0], form_label(forms[0])
    if chosen["error"] is None:
        return
    reach = "RBP at no k" if chosen["reach"] is None else f"RBP up to k = {chosen['reach']:,}"
    separate = "" if chosen["error_separate"] is None else f", separate laws by {chosen['error_separate']:.1%}"
    yield (
        f"{'All' if chosen['closes'] else 'Not all'} laws follow from {label} ({reach}). Chosen by how it predicts "
        f"{', '.join(chosen['chosen_on'])} from the sizes below, it has {chosen['n_inside']} of {chosen['n_scored']} "
        f"quantities of {judge}, which took no part in the choice, within their intervals and is off by "
        f"{chosen['error']:.1%}{separate}."
    )
    if others := [form_label(form) for form in forms[1:] if form["closes"]]:
        yield (
            f"Of the other forms, {'; '.join(others)} would have all within. That is known from {judge} alone, and "
            f"{number_of(len(forms), 'form')} were tried: let a larger size judge."
        )
    if chosen["difference"] is not None and chosen["difference_derived"] is not None:
        more = interval_of(estimate_in(chosen, "difference"))
        yield (
            f"The exponent of −ln RBP_1 minus that of cross-entropy is {more}; "
            f"{label} implies {chosen['difference_derived']:.3f}."
        )
