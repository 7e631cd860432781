"""Shows the distribution of the ranks as tables: rival forms, the published lognormal, and the laws they imply."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from rbpx.analyses.question import Question, each, one_by_one
from rbpx.analyses.ranks.analysis import PAPER, Closure, Ranks, RunRanks, Total, analyse, keep
from rbpx.analyses.ranks.compare import Rival
from rbpx.analyses.ranks.figures import figures
from rbpx.analyses.ranks.words import FORMS, sentences
from rbpx.display.view import Cell, Column, Table, View, behind, decimal, state, text, whole, with_ends, written
from rbpx.display.vocabulary import UNKNOWN, decimals, law_title, number
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.ranks.distribution import DISTRIBUTIONS
from rbpx.laws.ranks.family import FAMILIES

_Fitted = tuple[RunRanks, Rival]


@one_by_one
def tables(ranks: Ranks) -> Iterator[Table]:
    """All forms together and at each size, the published fit, then the laws that it and the best form imply."""
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
    for name in dict.fromkeys(closure.distribution for closure in ranks.closures):
        laws = [closure for closure in ranks.closures if closure.distribution == name]
        form = f"{FORMS[name]}{'' if name == PAPER else ', the smallest AIC'}"
        table = LAWS.table(f"α of laws, measured and derived: {form}", laws, about)
        yield replace(table, name=f"laws-{name.replace('_', '-')}")


def _thousands(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def _parameter(name: str) -> Callable[[_Fitted], Estimate]:
    def of(row: _Fitted) -> Estimate:
        return Estimate(row[1].fit.params.get(name), *row[1].interval.get(name, (None, None)))

    return of


def _difference_ends(closure: Closure) -> Cell:
    """The interval of a difference, or the status that says why there is none."""
    ratio, ends = closure.ratio, (closure.ratio.alpha_lo, closure.ratio.alpha_hi)
    if ratio.alpha_lo is None:
        return Cell((ratio.status.label,), ends, doubts=(ratio.status,))
    return Cell(tuple(number(end, 3) for end in ends), ends)


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
LAWS: Final = View[Closure](
    "laws",
    text("law", "quantity", lambda closure: law_title(closure.quantity, closure.k)),
    decimal("measured", "alpha_measured", lambda closure: closure.measured.alpha, 3),
    decimal("derived", "alpha_derived", lambda closure: closure.derived.alpha, 3),
    decimal(
        "excess", "difference", lambda closure: closure.ratio.alpha, 3,
        "α derived − α measured, below 0 where the derived law is flatter; interval over documents and models",
    ),
    Column("95 %", ("difference_lo", "difference_hi"), _difference_ends),
    with_ends(
        "level", "level", lambda closure: closure.level, decimals(2),
        "derived over measured at the geometric mean of the sizes; exact closure would be 1, and an excess of 0",
    ),
    decimal(
        "approx.", "alpha_approximated",
        lambda closure: None if closure.approximated is None else closure.approximated.alpha, 3,
        "α by the paper's approximation of the sums", 1,
    ),
)  # fmt: skip
QUESTION = Question(each(analyse), keep, tables, sentences, figures, says_all=True)
