"""Shows attempts: pass@k, exponents, what is foretold and how well, laws, bounds, and what attempts are worth."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from rbpx.display.law_columns import backtest, constant, determination, exponent
from rbpx.display.view import Table, View, decimal, ends, error, place, share, state, text, whole, with_ends, written
from rbpx.display.vocabulary import UNKNOWN, law_title, number, rough, short, significant
from rbpx.laws.exchange import STEP, Exchange
from rbpx.questions.attempts.analysis import (
    DISCRETE,
    LEAST_SQUARES,
    Attempts,
    Exponent,
    Pass,
    RunAttempts,
    analyse,
    keep,
)
from rbpx.questions.attempts.bounds import Bound
from rbpx.questions.attempts.figures import figures
from rbpx.questions.attempts.forecasts import Forecast, Hidden
from rbpx.questions.attempts.words import sentences
from rbpx.questions.question import of_parts, one_by_one
from rbpx.runs.fits import Law
from rbpx.runs.select.ways import in_size

WAYS: Final = {
    LEAST_SQUARES: "least squares",
    "beta": "beta",
    "kumaraswamy": "Kumaraswamy",
    DISCRETE: "discretised",
}
_Of = tuple[str, RunAttempts]


def _probability(value: float | None) -> str:
    return UNKNOWN if value is None else significant(value, 3)


PASSES: Final = View[tuple[RunAttempts, Pass]](
    "passes",
    text("size", "size", lambda row: row[0].label),
    place(lambda row: row[0].run, spare=4),
    whole("items", "n_items", lambda row: len(row[0].items.names), spare=3),
    whole("k", "k", lambda row: row[1].k),
    with_ends(
        "pass@k", "passes", lambda row: row[1].passes, _probability,
        "mean over items of 1 − C(n − c, k) / C(n, k), or of 1 − (1 − p)^k where p is known; intervals over items and "
        "their samples",
    ),
    written(
        "± samples", "passes_stderr_of_samples", lambda row: row[1].of_samples, _probability,
        "standard error if these very items were tried again", 2,
    ),
    decimal(
        "slope", "slope_neg_ln", lambda row: row[1].slopes.neg_ln, 3,
        "local exponent of −ln pass@k, from k / √10 to k √10 as far as there are samples", 1,
    ),
    decimal(
        "of failures", "slope_failures", lambda row: row[1].slopes.failures, 3,
        "the same of 1 − pass@k, which tends to a of the tail for k far above b", 1,
    ),
)  # fmt: skip
EXPONENTS: Final = View[tuple[RunAttempts, Exponent]](
    "exponents",
    text("size", "size", lambda row: row[0].label),
    text("by", "how", lambda row: WAYS[row[1].how]),
    with_ends(
        "exponent", "alpha", lambda row: row[1].alpha, lambda value: significant(value, 3),
        "by least squares that of −ln pass@k over these k; else a of the tail: the density of p is ~ p^(a − 1) "
        "near 0, and 1 − pass@k falls as k^−a in the end",
    ),
    ends("k_from k_to", lambda row: row[1].k, short, "of k", "where it speaks of: beta's from k far above b", 1),
    written("b", "b", lambda row: row[1].b.value, lambda value: significant(value, 3), spare=2),
    decimal("AIC", "aic", lambda row: row[1].aic, 1, "of beta and Kumaraswamy; the smaller fits better", 3),
    decimal(
        "p of fit", "fit_p", lambda row: row[1].fit_p, 2,
        "how often items drawn from it lie as far from it as these", 1,
    ),
    state(lambda row: row[1].reasons or row[1].status),
)  # fmt: skip
FORECASTS: Final = View[tuple[RunAttempts, Forecast]](
    "forecasts",
    text("size", "size", lambda row: row[0].label),
    whole("k", "k", lambda row: row[1].k),
    text("by", "way", lambda row: WAYS[row[1].way]),
    with_ends(
        "pass@k", "passes", lambda row: row[1].passes, _probability,
        "of these very items, each with the chance that its own counts leave it; intervals allow for that and for the "
        "constants, under that distribution",
    ),
)  # fmt: skip
HIDDEN: Final = View[Hidden](
    "hidden",
    text("by", "way", lambda row: WAYS[row.way]),
    whole("models", "n_models", lambda row: row.n_models),
    whole("samples left", "n_samples", lambda row: row.n_samples, "of each item; pass@k is foretold at a hundredfold"),
    share("error", "error", lambda row: row.error, means="mean of |foretold / measured − 1| of −ln pass@k"),
    error("bias", "bias", lambda row: row.bias, "mean of foretold / measured − 1"),
    share("inside", "inside", lambda row: row.inside, means="of the 95 % intervals, those that hold what was measured"),
)
LAWS: Final = View[Law](
    "laws",
    text("of", "law", lambda law: law_title(law.law, law.k)),
    exponent(lambda law: law.fit, means="falls as {x}^−α; below 0: grows"),
    constant(lambda law: law.fit, spare=3),
    determination(lambda law: law.fit, spare=1, ends_spare=4),
    backtest(lambda law: law.fit, spare=2),
    state(lambda law: law.fit.reasons or law.fit.status),
)
BOUNDS: Final = View[tuple[RunAttempts, Bound]](
    "bounds",
    text("size", "size", lambda row: row[0].label),
    whole("k", "k", lambda row: row[1].k),
    decimal(
        "p > 1/(k + 1)", "likely", lambda row: row[1].likely, 3, "share of items; all of them are exact matches at k", 2
    ),
    decimal("exact match", "exact_match", lambda row: row[1].exact_match, 3, "all tokens have a rank of at most k"),
    decimal("pass@k", "passes", lambda row: row[1].passes, 3, "of k independent samples"),
    written(
        "at least", "lower", lambda row: row[1].lower, _probability,
        "mean over exact matches at 1 of 1 − (1 − V^−n)^k, n the tokens of the item", 1,
    ),
    decimal(
        "at most", "upper", lambda row: row[1].upper, 3, "u + (1 − u) exact match, u = 1 − (k / (k + 1))^k", 1
    ),
)  # fmt: skip
WORTH: Final = View[tuple[RunAttempts, str, Exchange]](
    "worth",
    text("size", "size", lambda row: row[0].label),
    text("of", "of", lambda row: row[1]),
    with_ends(
        "{x} times", "factor", lambda row: row[2], rough,
        means=f"the factor in {{x}} by which to do with one what this model does with {STEP}: {STEP}^(α_k / α_{{x}}), "
        f"α_k between 1 and {STEP}, α_{{x}} of the law at 1; – for the upper end: no {{x}} is known to suffice",
    ),
    written("rate", "rate", lambda row: -row[2].rate, lambda value: number(value, 2), "d ln {x} / d ln k", 1),
)  # fmt: skip


@one_by_one
def tables(result: Attempts) -> Iterator[Table]:
    """The tables of one group."""
    group, runs = result.group, result.runs
    about, axis = group.title, group.axis
    of_T = f"temperature {result.T:g}: a lower bound of being right."
    note = f"Probabilities are those of the exact reference answer at {of_T}"
    yield PASSES.table(
        "Pass@k", [(of, each) for of in runs for each in of.passes], about, axis, note if group.is_measured else ""
    )
    yield EXPONENTS.table("Exponents in k", [(of, each) for of in runs for each in of.exponents], about)
    foretold = [(of, each) for of in runs for each in of.forecasts]
    if foretold:
        yield FORECASTS.table("Pass@k at more attempts", foretold, about)
    if result.hidden:
        cluster = (
            "Each model with all but a hundredth of its samples hidden, five times. Models on the same items are one "
            "cluster: other items may be foretold better or worse."
        )
        yield HIDDEN.table("Forecasts with samples hidden", result.hidden, about, note=cluster)
    if result.laws:
        yield LAWS.table(f"Laws of attempts in {axis.value}", result.laws, about, axis)
    worth = [
        (of, name, exchange)
        for of in runs
        for name, exchange in ((f"{STEP} attempts", of.exchange), (f"rank {STEP}", of.of_ranks))
        if exchange is not None
    ]
    if worth:
        yield WORTH.table(f"What {STEP} attempts are worth in {axis.value}", worth, about, axis)
    bounds = [(of, each) for of in runs for each in of.bounds]
    if bounds:
        yield BOUNDS.table("Ranks and attempts", bounds, about, note=f"Ties {group.ties.value}.")


QUESTION = of_parts(analyse, keep, tables, sentences, figures, select=partial(in_size, needs_law=False))
