"""Draws attempts: -ln pass@k against k with what beta foretells, exponents against size, and what ranks bound."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Mark,
    Origin,
    Scale,
    Undrawn,
    bars,
    drawn,
    line,
    points,
    scale_of,
    spread,
)
from rbpx.display.view import View, decimal, place, text, whole, with_ends
from rbpx.laws.numeric import neg_ln
from rbpx.questions.attempts.analysis import LEAST_SQUARES, Attempts, Exponent, RunAttempts
from rbpx.questions.attempts.forecasts import FARTHER, forecast
from rbpx.questions.attempts.passing import Counted, grid_to
from rbpx.questions.question import one_by_one
from rbpx.runs.group import MEASURED
from rbpx.runs.origin import from_fits, spelled

_Point = tuple[str, int, float]
_POINTS: Final = 16  # of a curve
_SHARES: Final = (0.5, 0.65, 0.8, 0.95)  # of items below those that are drawn alone
_DRAWN: Final = {LEAST_SQUARES: "least squares, all k", "beta": "tail, beta", "kumaraswamy": "tail, Kumaraswamy"}
CURVES: Final = View[_Point](
    "passes",
    text("size", "size", lambda row: row[0]),
    whole("k", "k", lambda row: row[1]),
    decimal("−ln pass@k", "neg_ln_pass", lambda row: row[2]),
)
EXPONENTS: Final = View[tuple[RunAttempts, str, Exponent]](
    "exponents",
    text("by", "by", lambda row: row[1]),
    text("size", "size", lambda row: row[0].label),
    place(lambda row: row[0].run),
    with_ends("exponent", "alpha", lambda row: row[2].alpha),
)
RANKS: Final = View[tuple[str, int, float]](
    "ranks",
    text("what", "what", lambda row: row[0]),
    whole("k", "k", lambda row: row[1]),
    decimal("share", "share", lambda row: row[2]),
)


@one_by_one
def figures(result: Attempts, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """Draw all three."""
    yield _curves(result)
    yield _exponents(result, fit_ids)
    if any(of.bounds for of in result.runs):
        yield _ranks(result)


def _origin(result: Attempts) -> Origin:
    """The counts, or the log-probabilities of the items of the largest run."""
    group = result.group
    if group.first.source == MEASURED:
        sql = spelled("item_scores", run_id=result.runs[-1].run.run_id, ties=group.ties.value)
    else:
        ids = ", ".join(f"'{run_id}'" for run_id in group.run_ids)
        sql = f"SELECT size, item, n_samples, n_correct FROM observations\nWHERE run_id IN ({ids})"
    return Origin(sql, tuple(group.run_ids))


def _curves(result: Attempts) -> Figure | Undrawn:
    title = "−ln pass@k against k"
    rows, foretold = list[_Point](), list[dict[str, float | str | None]]()
    chosen = spread(result.runs, MOST_SERIES)
    for of in chosen:
        ks = spread(grid_to(of.items.most), _POINTS)
        y_K = neg_ln(of.items.passes(ks).mean(axis=0))
        known = [(k, float(y)) for k, y in zip(ks, y_K, strict=True) if 0 < y < np.inf]
        rows += [(of.label, k, y) for k, y in known]
        if isinstance(of.items, Counted) and known:
            foretold += [{"size": of.label, "k": known[-1][0], "neg_ln_pass": known[-1][1]}]
            for k in (int(k) for k in np.geomspace(of.items.most, of.items.most * FARTHER, 5)[1:]):
                passes = forecast("beta", of.items, k).passes
                if passes.value is not None and 0 < passes.value < 1:
                    foretold.append({"size": of.label, "k": k, "neg_ln_pass": float(neg_ln(passes.value))})
    if not rows:
        return Undrawn("passes", title, "Every item is right in all attempts, or none is: try others.")
    least = min([y for _, _, y in rows] + [float(each["neg_ln_pass"] or 0.0) for each in foretold])
    marks = [*_of_items(chosen[-1], least), line(), points(look={"size": 18})]
    said = [f"{_slope(of)} for {of.label}" for of in spread(chosen, 2) if _slope(of) is not None]
    beyond = " Dashes: what a beta distribution over items foretells." if foretold else ""
    if foretold:
        marks.append(Mark("line", foretold, look={"strokeDash": [3, 3]}))
    chart = Chart(
        Scale("k", "k, attempts", log=True), Scale("neg_ln_pass", "−ln pass@k", log=True), tuple(marks), "size", "size"
    )
    exponents = f", with exponents {' and '.join(said)}" if said else ""
    return drawn(
        CURVES.table(title, rows),
        chart,
        f"Falling curves for {result.group.title}{exponents}.",
        f"Thin: single items of {chosen[-1].label}, which fail exponentially in k; all together fall as a power "
        f"while hard ones are left.{beyond}",
        _origin(result),
    )


def _of_items(of: RunAttempts, least: float) -> list[Mark]:
    """A few items of one run, as far down as the curves of all go."""
    ks = spread(grid_to(of.items.most), 3 * _POINTS)
    passes_IK = of.items.passes(ks)
    order = np.argsort(passes_IK[:, 0])
    marks = []
    for item in order[[int(share * (len(order) - 1)) for share in _SHARES]]:
        y_K = neg_ln(passes_IK[item])
        kept = [{"k": k, "neg_ln_pass": float(y)} for k, y in zip(ks, y_K, strict=True) if least <= y < np.inf]
        if len(kept) > 1:
            marks.append(line(kept, plain=True, look={"strokeWidth": 0.8, "opacity": 0.6}))
    return marks


def _slope(of: RunAttempts) -> str | None:
    alpha = next(each for each in of.exponents if each.how == LEAST_SQUARES).alpha.value
    return None if alpha is None else f"{alpha:.3f}"


def _exponents(result: Attempts, fit_ids: Sequence[str]) -> Figure | Undrawn:
    title, axis = "Exponents of attempts", result.group.axis
    rows = [
        (of, _DRAWN[each.how], each)
        for how in _DRAWN
        for of in result.runs
        for each in of.exponents
        if each.how == how and each.alpha.value is not None
    ]
    if not rows:
        return Undrawn("exponents", title, "No model has an exponent; the column status says why.")
    first, last = rows[0], [row for row in rows if row[1] == rows[0][1]][-1]
    chart = Chart(
        scale_of(axis), Scale("alpha", "exponent", form=".2f"), (bars("alpha_lo", "alpha_hi"), line(), points()), "by"
    )
    return drawn(
        EXPONENTS.table(title, rows, axis=axis),
        chart,
        f"By least squares {_ends(first)} and {_ends(last)}.",
        "By least squares: that of −ln pass@k over all k that were measured. Tails: with which 1 − pass@k falls in "
        "the end, by two distributions of the chance of an item. Bars: 95 % over items.",
        from_fits(fit_ids, result.group),
    )


def _ends(row: tuple[RunAttempts, str, Exponent]) -> str:
    return f"{row[2].alpha.value:.3f} at {row[0].label}"


def _ranks(result: Attempts) -> Figure | Undrawn:
    of = result.runs[-1]
    names = {"exact_match": "exact match at k", "passes": "pass@k", "upper": "no more than", "lower": "no less than"}
    rows = [
        (name, each.k, float(value))
        for key, name in names.items()
        for each in of.bounds
        if (value := getattr(each, key)) is not None
    ]
    chart = Chart(Scale("k", "k", log=True), Scale("share", "share of items", zero=True), (line(), points()), "what")
    return drawn(
        RANKS.table("Ranks and attempts", rows),
        chart,
        f"Exact match at k and pass@k of {of.label} rise with k between the two bounds.",
        "One forward pass gives exact match at k, k samples give pass@k. The bounds hold for any model.",
        _origin(result),
    )
