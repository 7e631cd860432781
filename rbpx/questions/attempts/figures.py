"""Draws attempts: -ln pass@k against k with what beta foretells, exponents against size, and what ranks bound."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from rbpx.questions.attempts.analysis import LEAST_SQUARES
from rbpx.questions.attempts.forecasts import FARTHER, forecast
from rbpx.questions.attempts.passing import Counted, Items, grid_to
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits, spelled
from rbpx.store.store import Record

_POINTS: Final = 16  # of a curve
_SHARES: Final = (0.5, 0.65, 0.8, 0.95)  # of items below those that are drawn alone
_DRAWN: Final = {LEAST_SQUARES: "least squares, all k", "beta": "tail, beta", "kumaraswamy": "tail, Kumaraswamy"}
CURVES: Final = View[Record](
    "passes", text("size", "size"), whole("k", "k"), decimal("−ln pass@k", "neg_ln_pass")
)  # fmt: skip
EXPONENTS: Final = View[Record](
    "exponents", text("by", "by"), text("size", "size"), place(), with_ends("exponent", "alpha")
)  # fmt: skip
RANKS: Final = View[Record]("ranks", text("what", "what"), whole("k", "k"), decimal("share", "share"))


def figures(group: Group, items: Mapping[str, Items], rows: Sequence[Record]) -> Iterator[Figure | Undrawn]:
    """Draw all three, of the items of each run by its size, and of the rows of the tables."""
    yield _curves(group, items, [row for row in rows if row.get("how") == LEAST_SQUARES])
    yield _exponents(group, rows)
    bounds = [row for row in rows if row["kind"] == "bound"]
    if bounds:
        yield _ranks(group, [row for row in bounds if row["size"] == bounds[-1]["size"]])


def _origin(group: Group) -> Origin:
    """The counts, or the log-probabilities of the items of the largest run."""
    if group.is_measured:
        sql = spelled("item_scores", run_id=group.runs[-1].run_id, ties=group.ties.value)
    else:
        ids = ", ".join(f"'{run_id}'" for run_id in group.run_ids)
        sql = f"SELECT size, item, n_samples, n_correct FROM observations\nWHERE run_id IN ({ids})"
    return Origin(sql, tuple(group.run_ids))


def _curves(group: Group, items: Mapping[str, Items], straight: Sequence[Record]) -> Figure | Undrawn:
    title, rows, foretold = "−ln pass@k against k", list[Record](), list[Record]()
    chosen = spread([*items], MOST_SERIES)
    for label in chosen:
        of = items[label]
        ks = spread(grid_to(of.most), _POINTS)
        known = _falling(ks, neg_ln(of.passes(ks).mean(axis=0)), size=label)
        rows += known
        if isinstance(of, Counted) and known:
            ks = [int(k) for k in np.geomspace(of.most, of.most * FARTHER, 5)[1:]]
            passes = [forecast("beta", of, k).value for k in ks]
            y_K = [math.nan if share is None or not share < 1 else float(neg_ln(share)) for share in passes]
            foretold += [known[-1], *_falling(ks, y_K, size=label)]
    if not rows:
        return Undrawn("passes", title, "Every item is right in all attempts, or none is: try others.")
    marks = [*_of_items(items[chosen[-1]], min(row["neg_ln_pass"] for row in rows + foretold))]
    marks += [line(), points(look={"size": 18})]
    if foretold:
        marks.append(Mark("line", foretold, look={"strokeDash": [3, 3]}))
    slopes = {row["size"]: row["alpha"] for row in straight}
    said = [f"{slopes[label]:.3f} for {label}" for label in spread(chosen, 2) if slopes[label] is not None]
    beyond = " Dashes: what a beta distribution over items foretells." if foretold else ""
    k, y = Scale("k", "k, attempts", log=True), Scale("neg_ln_pass", "−ln pass@k", log=True)
    return drawn(
        CURVES.table(title, rows),
        Chart(k, y, tuple(marks), "size", "size"),
        f"Falling curves for {group.title}{', with exponents ' if said else ''}{' and '.join(said)}.",
        f"Thin: single items of {chosen[-1]}, which fail exponentially in k; all together fall as a power "
        f"while hard ones are left.{beyond}",
        _origin(group),
    )


def _falling(ks: Sequence[int], y_K: Iterable[float], least: float = 0.0, **names: str) -> list[Record]:
    """The points of a curve that lie on a logarithmic axis, above its least."""
    known = [(k, float(y)) for k, y in zip(ks, y_K, strict=True) if 0 < y < np.inf and y >= least]
    return [{**names, "k": k, "neg_ln_pass": y} for k, y in known]


def _of_items(of: Items, least: float) -> Iterator[Mark]:
    """A few items of one run, as far down as the curves of all go."""
    ks = spread(grid_to(of.most), 3 * _POINTS)
    passes_IK = of.passes(ks)
    order = np.argsort(passes_IK[:, 0])
    for item in order[[int(share * (len(order) - 1)) for share in _SHARES]]:
        kept = _falling(ks, neg_ln(passes_IK[item]), least)
        if len(kept) > 1:
            yield line(kept, plain=True, look={"strokeWidth": 0.8, "opacity": 0.6})


def _exponents(group: Group, rows: Sequence[Record]) -> Figure | Undrawn:
    title, axis = "Exponents of attempts", group.axis
    known = [row for row in rows if row["kind"] == "exponent" and row["alpha"] is not None]
    shown = [row | {"by": by} for how, by in _DRAWN.items() for row in known if row["how"] == how]
    if not shown:
        return Undrawn("exponents", title, "No model has an exponent; the column status says why.")
    first, last = shown[0], [row for row in shown if row["by"] == shown[0]["by"]][-1]
    marks = (bars("alpha_lo", "alpha_hi"), line(), points())
    return drawn(
        EXPONENTS.table(title, shown, axis=axis),
        Chart(scale_of(axis), Scale("alpha", "exponent", form=".2f"), marks, "by"),
        "By least squares {} and {}.".format(*(f"{row['alpha']:.3f} at {row['size']}" for row in (first, last))),
        "By least squares: that of −ln pass@k over all k that were measured. Tails: with which 1 − pass@k falls in "
        "the end, by two distributions of the chance of an item. Bars: 95 % over items.",
        from_fits([row["fit_id"] for row in rows if row["kind"] == "law"], group),
    )


def _ranks(group: Group, bounds: Sequence[Record]) -> Figure | Undrawn:
    names = {"exact_match": "exact match at k", "passes": "pass@k", "upper": "no more than", "lower": "no less than"}
    rows = [
        {"what": name, "k": row["k"], "share": row[key]}
        for key, name in names.items()
        for row in bounds
        if row[key] is not None
    ]
    chart = Chart(Scale("k", "k", log=True), Scale("share", "share of items", zero=True), (line(), points()), "what")
    return drawn(
        RANKS.table("Ranks and attempts", rows),
        chart,
        f"Exact match at k and pass@k of {bounds[-1]['size']} rise with k between the two bounds.",
        "One forward pass gives exact match at k, k samples give pass@k. The bounds hold for any model.",
        _origin(group),
    )
