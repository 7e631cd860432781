"""Answers how often attempts at items succeed: pass@k, exponents, forecasts, laws, bounds, what attempts are worth."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.law_columns import backtest, constant, determination, exponent
from rbpx.display.view import (
    Column,
    Table,
    View,
    decimal,
    ends,
    error,
    place,
    share,
    state,
    text,
    whole,
    with_ends,
    written,
)
from rbpx.display.vocabulary import UNKNOWN, law_title, number, rough, short, significant
from rbpx.laws.exchange import STEP
from rbpx.questions.attempts.analysis import DISCRETE, LEAST_SQUARES, exchanges, laws, rows_of_run, tried
from rbpx.questions.attempts.figures import figures
from rbpx.questions.attempts.forecasts import hide
from rbpx.questions.attempts.passing import Counted
from rbpx.questions.attempts.words import sentences
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.fits import alike, fit_record
from rbpx.runs.group import Group
from rbpx.runs.select.ways import in_size
from rbpx.store.store import Record


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Result]:
    """Look at the items of each group that has any."""
    return [found for group in groups for found in _of_group(connection, group, request)]


def _of_group(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Iterator[Result]:
    read = tried(connection, group, request)
    if not read:
        return
    of_runs = [[*rows_of_run(group, each, request)] for each in read]
    found = [*laws(group, read, of_runs)]
    for each, rows, worth in zip(read, of_runs, exchanges(group, read, found), strict=True):
        about = {name: rows[0][name] for name in (*group.names(), *each.run.names(), "n_items", "n_samples", "T")}
        rows += [about | row for row in worth]
    counted = [each.items for each in read if isinstance(each.items, Counted)]
    hidden = [{"kind": "hidden", **group.names(), **row} for row in hide(counted, request.seed)]
    own = {} if request.T == 1 else {"T": request.T}
    fits = [fit_record(group, law, request.resamples, own) for law in found]
    rows = [*(row for rows in of_runs for row in rows), *hidden, *({"kind": "law", **fit} for fit in fits)]
    labelled = [
        row | {"size": each.label, "x": each.run.x} for each, own in zip(read, of_runs, strict=True) for row in own
    ]
    shown = [*labelled, *hidden, *({"kind": "law", **fit} for fit in fits)]
    yield Result(
        [group],
        alike(rows),
        [*_tables(group, shown, request)],
        [*sentences(group, shown)],
        partial(figures, group, {each.label: each.items for each in read}, shown),
        fits,
    )


_WAYS: Final = {
    LEAST_SQUARES: "least squares",
    "beta": "beta",
    "kumaraswamy": "Kumaraswamy",
    DISCRETE: "discretised",
}
_SIZE: Final[Column[Record]] = text("size", "size")
_K: Final[Column[Record]] = whole("k", "k")


def _probability(value: float | None) -> str:
    return UNKNOWN if value is None else significant(value, 3)


def _way(key: str) -> Column[Record]:
    return text("by", key, lambda row: _WAYS[row[key]])


PASSES: Final = View[Record](
    "passes",
    _SIZE,
    place(spare=4),
    whole("items", "n_items", spare=3),
    _K,
    with_ends(
        "pass@k", "passes", None, _probability,
        "mean over items of 1 − C(n − c, k) / C(n, k), or of 1 − (1 − p)^k where p is known; intervals over items and "
        "their samples",
    ),
    written(
        "± samples", "passes_stderr_of_samples", None, _probability,
        "standard error if these very items were tried again", 2,
    ),
    decimal(
        "slope", "slope_neg_ln", None, 3,
        "local exponent of −ln pass@k, from k / √10 to k √10 as far as there are samples", 1,
    ),
    decimal(
        "of failures", "slope_failures", None, 3,
        "the same of 1 − pass@k, which tends to a of the tail for k far above b", 1,
    ),
)  # fmt: skip
EXPONENTS: Final = View[Record](
    "exponents",
    _SIZE,
    _way("how"),
    with_ends(
        "exponent", "alpha", None, _probability,
        "by least squares that of −ln pass@k over these k; else a of the tail: the density of p is ~ p^(a − 1) "
        "near 0, and 1 − pass@k falls as k^−a in the end",
    ),
    ends("k_from k_to", None, short, "of k", "where it speaks of: beta's from k far above b", 1),
    written("b", "b", None, _probability, spare=2),
    decimal("AIC", "aic", None, 1, "of beta and Kumaraswamy; the smaller fits better", 3),
    decimal("p of fit", "fit_p", None, 2, "how often items drawn from it lie as far from it as these", 1),
    state(),
)  # fmt: skip
FORECASTS: Final = View[Record](
    "forecasts",
    _SIZE,
    _K,
    _way("way"),
    with_ends(
        "pass@k", "passes", None, _probability,
        "of these very items, each with the chance that its own counts leave it; intervals allow for that and for the "
        "constants, under that distribution",
    ),
)  # fmt: skip
HIDDEN: Final = View[Record](
    "hidden",
    _way("way"),
    whole("models", "n_models"),
    whole("samples left", "n_samples", None, "of each item; pass@k is foretold at a hundredfold"),
    share("error", "error", means="mean of |foretold / measured − 1| of −ln pass@k"),
    error("bias", "bias", None, "mean of foretold / measured − 1"),
    share("inside", "inside", means="of the 95 % intervals, those that hold what was measured"),
)
LAWS: Final = View[Record](
    "laws",
    text("of", "law", lambda row: law_title(row["law"], row["k"])),
    exponent(means="falls as {x}^−α; below 0: grows"),
    constant(spare=3),
    determination(spare=1, ends_spare=4),
    backtest(spare=2),
    state(),
)
WORTH: Final = View[Record](
    "worth",
    _SIZE,
    text("of", "of", lambda row: f"{STEP} attempts" if row["of"] == "attempts" else f"rank {STEP}"),
    written(
        "{x} times", "factor", None, rough,
        f"the factor in {{x}} by which to do with one what this model does with {STEP}: {STEP}^(α_k / α_{{x}}), "
        f"α_k between 1 and {STEP}, α_{{x}} of the law at 1; – for the upper end: no {{x}} is known to suffice",
    ),
    ends("factor_lo factor_hi", lambda row: (row["lo"], row["hi"]), rough),
    written("rate", "rate", lambda row: -row["rate"], lambda value: number(value, 2), "d ln {x} / d ln k", 1),
)  # fmt: skip
BOUNDS: Final = View[Record](
    "bounds",
    _SIZE,
    _K,
    decimal("p > 1/(k + 1)", "likely", None, 3, "share of items; all of them are exact matches at k", 2),
    decimal("exact match", "exact_match", None, 3, "all tokens have a rank of at most k"),
    decimal("pass@k", "passes", None, 3, "of k independent samples"),
    written(
        "at least", "lower", None, _probability, "mean over exact matches at 1 of 1 − (1 − V^−n)^k, n the tokens of "
        "the item", 1,
    ),
    decimal("at most", "upper", None, 3, "u + (1 − u) exact match, u = 1 − (k / (k + 1))^k", 1),
)  # fmt: skip


def _tables(group: Group, rows: Sequence[Record], request: Request) -> Iterator[Table]:
    """The tables of one group; those of what it has none of are left out, but for the first two."""
    of_p = (
        f"Probabilities are those of the exact reference answer at temperature {request.T:g}: a lower bound of being "
    )
    cluster = (
        "Each model with all but a hundredth of its samples hidden, five times. Models on the same items are one "
        "cluster: other items may be foretold better or worse."
    )
    axis = group.axis.value
    for kind, view, title, note in (
        ("pass", PASSES, "Pass@k", f"{of_p}right." if group.is_measured else ""),
        ("exponent", EXPONENTS, "Exponents in k", ""),
        ("forecast", FORECASTS, "Pass@k at more attempts", ""),
        ("hidden", HIDDEN, "Forecasts with samples hidden", cluster),
        ("law", LAWS, f"Laws of attempts in {axis}", ""),
        ("exchange", WORTH, f"What {STEP} attempts are worth in {axis}", ""),
        ("bound", BOUNDS, "Ranks and attempts", f"Ties {group.ties.value}."),
    ):
        of_kind = [row for row in rows if row["kind"] == kind]
        if of_kind or kind in ("pass", "exponent"):
            yield view.table(title, of_kind, group.title, group.axis, note)


QUESTION = Question(answer, select=partial(in_size, needs_law=False))
