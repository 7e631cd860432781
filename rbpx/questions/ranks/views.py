"""Shows the ranks as tables: rival distributions, the published lognormal, the laws that they imply, and closure."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from rbpx.display.view import (
    Cell,
    Column,
    Table,
    View,
    behind,
    decimal,
    error,
    magnitude,
    share,
    state,
    text,
    whole,
    with_ends,
    written,
)
from rbpx.display.vocabulary import UNKNOWN, decimals, law_title, number, percent, short
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.ranks.distribution import DISTRIBUTIONS
from rbpx.laws.ranks.family import FAMILIES
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.questions.ranks.analysis import PAPER, Derived, Ranks, RunRanks, Total, analyse, keep
from rbpx.questions.ranks.compare import Rival
from rbpx.questions.ranks.figures import figures
from rbpx.questions.ranks.forms import FormResult, Held
from rbpx.questions.ranks.words import FORMS, sentences
from rbpx.runs.select.ways import in_size

_Fitted = tuple[RunRanks, Rival]


@one_by_one
def tables(ranks: Ranks) -> Iterator[Table]:
    """All distributions together and at each size, the published fit, the laws implied, then closure."""
    about, fitted = ranks.group.title, [(of, rival) for of in ranks.runs for rival in of.rivals]
    published, over_all = ([row for row in fitted if (row[1].fit.distribution == PAPER) is by] for by in (True, False))
    equations = "; ".join(f"{FORMS[name]}: {FAMILIES[name].equation}" for name in DISTRIBUTIONS)
    note = (
        f"Ties {ranks.group.ties.value}. Fitted by maximum likelihood to the ranks 1..V; the published fit is to ranks "
        f"from 2 up. The share of rank x is, up to a factor: {equations}."
    )
    totals = [(ranks, total) for total in ranks.totals]
    yield TOGETHER.table("Distributions of the ranks, all sizes together", totals, about)
    yield RIVALS.table("Distributions of the ranks over 1..V", over_all, about, note=note)
    yield PUBLISHED.table("Lognormal as published, ranks from 2 up", published, about)
    for name in dict.fromkeys(law.distribution for law in ranks.derived):
        laws = [law for law in ranks.derived if law.distribution == name]
        form = f"{FORMS[name]}{'' if name == PAPER else ', the smallest AIC'}"
        table = LAWS.table(f"α of laws, measured and derived: {form}", laws, about)
        yield replace(table, name=f"laws-{name.replace('_', '-')}")
    if ranks.closure is None:
        return
    runs, chosen = ranks.group.runs, ranks.closure.forms[0]
    smaller = [run.size for run in runs if run.non_embedding_params < runs[-1].non_embedding_params]
    title = f"Forms of the distribution of ranks: {runs[-1].size}, from {smaller[0]} to {smaller[-1]}"
    note = (
        "Each form is fitted to all sizes but the largest at once, with its parameters on lines in ln S. A form "
        "without kinds of tokens takes CE to be H(P)."
    )
    yield CLOSURE.table(title, ranks.closure.forms, about, note=note)
    yield CHOSEN.table(f"The chosen form, {chosen.form.label}: {chosen.form.equation}", chosen.held, about)


def _thousands(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def _parameter(name: str) -> Callable[[_Fitted], Estimate]:
    def of(row: _Fitted) -> Estimate:
        return Estimate(row[1].fit.params.get(name), *row[1].interval.get(name, (None, None)))

    return of


def _difference_ends(law: Derived) -> Cell:
    """The interval of a difference, or the status that says why there is none."""
    ratio, ends = law.ratio, (law.ratio.alpha_lo, law.ratio.alpha_hi)
    if ratio.alpha_lo is None:
        return Cell((ratio.status.label,), ends, doubts=(ratio.status,))
    return Cell(tuple(number(end, 3) for end in ends), ends)


def _error_of(quantity: str) -> Callable[[FormResult], float | None]:
    return lambda form: next((held.error for held in form.held if held.quantity == quantity), None)


def _inside(form: FormResult) -> Cell:
    return Cell((f"{form.n_inside}/{form.n_scored}",), (form.n_inside, form.n_scored))


def _own(held: Held) -> Estimate:
    own, lo, hi = (each / held.measured - 1 for each in (held.own, held.own_lo, held.own_hi))
    return Estimate(own, lo, hi)


_SIZE: Final[Column[_Fitted]] = text("size", "size", lambda row: row[0].run.size)
_DISTANCE: Final[Column[_Fitted]] = decimal(
    "distance", "distance", lambda row: row[1].fit.distance, means="largest difference of the two CDFs", spare=1
)
_AIC: Final[Column[_Fitted]] = written("AIC", "aic", lambda row: row[1].fit.aic, _thousands, spare=2)
_CONVERGED: Final = "converged"  # all that ok says of a distribution, which may be thousands of AIC behind another
_STATUS: Final[Column[_Fitted]] = state(lambda row: row[1].fit.status, _CONVERGED)
TOGETHER: Final = View[tuple[Ranks, Total]](
    "together",
    text("distribution", "distribution", lambda row: FORMS[row[1].distribution]),
    whole("parameters", "n_parameters", lambda row: FAMILIES[row[1].distribution].n_parameters),
    written(
        "AIC", "aic_above_least", lambda row: row[1].aic - min(total.aic for total in row[0].totals), _thousands,
        "summed over the sizes, minus the smallest; AIC and BIC treat tokens as independent, intervals do not",
    ),
    written(
        "BIC", "bic_above_least", lambda row: row[1].bic - min(total.bic for total in row[0].totals), _thousands
    ),
    whole("best at", "n_best", lambda row: row[1].n_best, "the number of sizes at which it has the smallest AIC"),
)  # fmt: skip
RIVALS: Final = View[_Fitted](
    "rivals",
    _SIZE,
    text("distribution", "distribution", lambda row: FORMS[row[1].fit.distribution]),
    behind("nats_behind", lambda row: row[1].behind, "nats per token that it loses to the most likely one"),
    _DISTANCE,
    _AIC,
    decimal("μ", "mu", lambda row: row[1].fit.params.get("mu"), 2, spare=3),
    decimal("σ", "sigma", lambda row: row[1].fit.params.get("sigma"), 2, spare=3),
    _STATUS,
)  # fmt: skip
PUBLISHED: Final = View[_Fitted](
    "published",
    _SIZE,
    whole("S", "non_embedding_params", lambda row: row[0].run.non_embedding_params, spare=3),
    whole("tokens", "n_tokens", lambda row: row[1].fit.params.get("n_tokens"), "those with a rank from 2 up", 4),
    with_ends("μ", "mu", _parameter("mu"), decimals(2)),
    with_ends("σ", "sigma", _parameter("sigma"), decimals(2)),
    decimal(
        "γ", "gamma", lambda row: row[0].rival("lognormal_full").fit.params.get("gamma_unconstrained"),
        means="free curvature of the lognormal over all ranks; at 0 or below no lognormal fits",
    ),
    _DISTANCE,
    _AIC,
    _STATUS,
)  # fmt: skip
LAWS: Final = View[Derived](
    "laws",
    text("law", "quantity", lambda law: law_title(law.quantity, law.k)),
    decimal("measured", "alpha_measured", lambda law: law.measured.alpha, 3),
    decimal("derived", "alpha_derived", lambda law: law.derived.alpha, 3),
    decimal(
        "excess", "difference", lambda law: law.ratio.alpha, 3,
        "α derived − α measured, below 0 where the derived law is flatter; interval over documents and models",
    ),
    Column("95 %", ("difference_lo", "difference_hi"), _difference_ends),
    with_ends(
        "level", "level", lambda law: law.level, decimals(2),
        "derived over measured at the geometric mean of the sizes; exact closure would be 1, and an excess of 0",
    ),
    decimal(
        "approx.", "alpha_approximated", lambda law: None if law.approximated is None else law.approximated.alpha, 3,
        "α by the paper's approximation of the sums", 1,
    ),
)  # fmt: skip
CLOSURE: Final = View[FormResult](
    "forms",
    text("form", "form", lambda form: form.form.label),
    whole("P", "n_parameters", lambda form: form.form.n_parameters, "parameters at one size", 5),
    share(
        "off", "error", lambda form: form.error,
        means="median error at the largest size, over −ln RBP_k up to the largest k whose law stands, H(P) and CE",
    ),
    share(
        "choice", "error_choice", lambda form: form.error_choice,
        means="median error of all quantities at the sizes that chose the first form, each predicted from those below",
    ),
    share("own fit", "error_own", lambda form: form.error_own, means="off when fitted to that size itself", spare=3),
    error("H(P)", "error_of_error_entropy", _error_of("error_entropy"), "error of error-entropy", 1),
    error("CE", "error_of_cross_entropy", _error_of("cross_entropy"), "error of cross-entropy", 1),
    Column("inside", ("n_inside", "n_scored"), _inside, "how many of these quantities lie within their 95 % intervals"),
    behind(
        "behind", lambda form: form.behind,
        "nats per token of the largest size that it loses to the most likely form; interval over documents", 2,
    ),
    decimal("α of −ln RBP_1", "alpha_rbp_1", lambda form: form.alpha_rbp_1, 3, "exponent that it implies", 4),
    decimal("α of CE", "alpha_cross_entropy", lambda form: form.alpha_cross_entropy, 3, spare=4),
    text("closes", "closes", lambda form: "yes" if form.closes else "no", "whether all are inside"),
    state(lambda form: form.status, _CONVERGED),
)  # fmt: skip
CHOSEN: Final = View[Held](
    "chosen",
    text("quantity", "quantity", lambda held: law_title(held.quantity, held.k)),
    magnitude("measured", "measured", lambda held: held.measured),
    with_ends(
        "predicted", "predicted", lambda held: Estimate(held.predicted, held.predicted_lo, held.predicted_hi), short,
        "from the smaller sizes; interval over documents and models",
    ),
    error("error", "error", lambda held: held.error),
    error(
        "separate", "error_separate",
        lambda held: None if held.separate is None else held.separate / held.measured - 1,
        "error of a law of this quantity alone", 1,
    ),
    with_ends("own fit", "error_own", _own, percent, "error of the form when fitted to the largest size itself", 2),
    text(
        "inside", "inside", lambda held: ("{}" if held.scored else "({})").format("yes" if held.inside else "no"),
        "in brackets where it does not count",
    ),
)  # fmt: skip
QUESTION = of_parts(each(analyse), keep, tables, sentences, figures, select=partial(in_size, along=False))
