"""Draws -ln pass@k against k, with the predictions of the beta fit."""

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
    drawn,
    line,
    points,
    spread,
)
from rbpx.display.table import SIZE, table_of
from rbpx.display.vocabulary import whole
from rbpx.laws.numeric import neg_ln
from rbpx.questions.attempts.forecasts import BETA, FARTHER, forecast
from rbpx.questions.attempts.passing import CountedItems, Items, grid_to
from rbpx.runs.group import Group
from rbpx.runs.origin import spelled
from rbpx.store.store import Record

_POINTS: Final = 16  # of a curve
_SHARES: Final = (0.5, 0.65, 0.8, 0.95)  # shares of items that lie below the items drawn individually
CURVES: Final = table_of("passes", SIZE, ("k", "k", whole), ("−ln pass@k", "neg_ln_pass", ".4f"))


def figures(group: Group, items: Mapping[str, Items]) -> Iterator[Figure | Undrawn]:
    """The figure of each group's runs, by size."""
    title, rows, predicted = "−ln pass@k against k", list[Record](), list[Record]()
    chosen = spread([*items], MOST_SERIES)
    for label in chosen:
        of = items[label]
        ks = spread(grid_to(of.most), _POINTS)
        known = _falling(ks, neg_ln(of.passes(ks).mean(axis=0)), size=label)
        rows += known
        if isinstance(of, CountedItems) and known:
            ks = [int(k) for k in np.geomspace(of.most, of.most * FARTHER, 5)[1:]]
            passes = [forecast(BETA, of, k).value or np.nan for k in ks]
            predicted += [known[-1], *_falling(ks, neg_ln(passes), size=label)]
    if not rows:
        yield Undrawn("passes", title, "Every item is right in all attempts, or none is: try others.")
        return
    least, dashes = min(row["neg_ln_pass"] for row in rows + predicted), {"strokeDash": [3, 3]}
    marks = [*_of_items(items[chosen[-1]], least), line(), points(look={"size": 18})]
    marks += [Mark("line", predicted, look=dashes)] if predicted else []
    beyond = " Dashes: what a beta distribution over items predicts." if predicted else ""
    k, y = Scale("k", "k, attempts", log=True), Scale("neg_ln_pass", "−ln pass@k", log=True)
    sql = "SELECT size, item, n_samples, n_correct FROM observations"
    if group.is_measured:
        sql = spelled("item_scores", run_id=group.runs[-1].run_id, ties=group.ties.value)
    yield drawn(
        CURVES.of(title, rows),
        Chart(k, y, tuple(marks), "size", "size"),
        f"Falling curves for {group.title}.",
        f"Thin: single items of {chosen[-1]}, which fail exponentially in k; all together fall as a power "
        f"while hard ones are left.{beyond}",
        Origin(sql, tuple(group.run_ids)),
    )


def _falling(ks: Sequence[int], y_K: Iterable[float], least: float = 0.0, **names: str) -> list[Record]:
    known = [(k, float(y)) for k, y in zip(ks, y_K, strict=True) if 0 < y < np.inf and y >= least]
    return [{**names, "k": k, "neg_ln_pass": y} for k, y in known]


def _of_items(of: Items, least: float) -> Iterator[Mark]:
    ks = spread(grid_to(of.most), 3 * _POINTS)
    passes_IK = of.passes(ks)
    order = np.argsort(passes_IK[:, 0])
    for item in order[[int(share * (len(order) - 1)) for share in _SHARES]]:
        kept = _falling(ks, neg_ln(passes_IK[item]), least)
        if len(kept) > 1:
            yield line(kept, plain=True, look={"strokeWidth": 0.8, "opacity": 0.6})
