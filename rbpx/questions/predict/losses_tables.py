"""Shows what models will show on one text by what they show on another: backtests, then predictions."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.chart.figure import Figure, Mark, Origin, Rows, Scale, Undrawn, line
from rbpx.display.chart.laws import series_figure
from rbpx.display.view import Table, View, magnitude, share, text, whole
from rbpx.display.vocabulary import law_title, significant
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.prediction.prediction import COMBINED
from rbpx.laws.prediction.verdict import SIGNIFICANT
from rbpx.questions.predict.losses import LossForesight, foretell
from rbpx.questions.predict.rows import INSIDE, LAW, STATUS, WIDER, predicted, tested, value_in, values
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import Group, grouped
from rbpx.runs.origin import spelled
from rbpx.runs.select.losses import PairedGroup, family_of
from rbpx.status import Status
from rbpx.store.store import Record

BACKTESTS: Final = View[Record](
    "backtest",
    LAW,
    text("fitted", "family"),
    whole("models", "n_fitted"),
    share("mean |error|", "mean_error"),
    INSIDE,
)
PREDICTIONS: Final = View[Record](
    "predictions",
    LAW,
    text("model", "model"),
    magnitude("x", "x", means="what the model shows on the other text"),
    text("by", "method", spare=2),
    text("fitted", "family"),
    predicted(partial(significant, digits=4)),
    share("|error|", "expected_error", means="to expect", spare=3),
    magnitude("outside", "beyond", means="how many times beyond the measured models", spare=4),
    STATUS,
)


def from_losses(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Foretell from another loss: a row for each prediction and each backtest; nothing is fitted that `fits` keeps."""
    assert isinstance(group, PairedGroup), "an axis on another text selects pairs"
    laws = foretell(connection, group, request)
    rows = alike([row for of in laws for row in _rows(group, of)])
    return Result([group], rows, [*_tables(group, laws)], [*_sentences(group, laws)], partial(_figures, group, laws))


def _rows(group: PairedGroup, of: LossForesight) -> Iterator[Record]:
    named = {"law": of.pairs.law, **group.names(), "k": of.pairs.k, "x_k": of.pairs.x_k}
    named |= {"family": of.family or " + ".join(of.pairs.families), "n_fitted": of.n_fitted}
    p = {"shared_p": of.shared and of.shared.p}
    rows = [*(row | p for _, row in of.told), *of.backtests]
    return (named | row for row in rows or [{"kind": "none", "status": Status.too_few_sizes}])


def _tables(group: PairedGroup, laws: Sequence[LossForesight]) -> Iterator[Table]:
    """The backtests of a group, then its predictions."""
    note = "Models of the smallest x, foretold by those of larger ones."
    note += " Of all families: each family, foretold by the others." if any(of.is_shared for of in laws) else ""
    rows = [_named(of) | {"n_fitted": of.n_fitted} | tested(of.backtests) for of in laws]
    yield BACKTESTS.table("Backtest", rows, group.title, note=note)
    rows = [
        _named(of) | row | {"model": None if run is None else f"{family_of(run)} {run.size}"}
        for of in laws
        for run, row in of.told
    ]
    if rows:
        xs = ", ".join(dict.fromkeys(_x_title(group, of) for of in laws))
        lines = [
            f"x is {xs}. A regression of y on x as measured, over forms, with the 95 % interval of one new model on "
            "the same text; it assumes nothing of how x errs.",
            *dict.fromkeys(line for of in laws for line in of.pairs.of_guessing),
        ]
        yield PREDICTIONS.table("Predictions from another loss", rows, group.title, note=" ".join(lines))


def _named(of: LossForesight) -> Record:
    return {"law": of.pairs.law, "k": of.pairs.k, "family": of.by}


def _x_title(group: PairedGroup, of: LossForesight) -> str:
    """What predictions are made from, in words."""
    return f"{law_title(group.on.law, of.pairs.x_k)} on {group.on.dataset}"


def _sentences(group: PairedGroup, laws: Sequence[LossForesight]) -> Iterator[str]:
    """How good the backtests are, whether families share a curve, and what there is to foretell."""
    found = [(of.title, tested(of.backtests)) for of in laws if of.backtests and not of.is_shared]
    if found:
        title, best = min(found, key=lambda each: float(each[1]["mean_error"]))
        inside, n = (sum(each[name] or 0 for _, each in found) for name in ("n_inside", "n_intervals"))
        yield (
            f"Fitted to models of large x and compared with those of smaller x, {title} was predicted best, "
            f"{best['mean_error']:.1%} off on average; the 95 % intervals contained {inside} of {n} values."
        )
    for title, p in ((of.title, of.shared.p) for of in laws if of.shared is not None):
        differ = p < SIGNIFICANT
        yield (
            f"{title}: the families {'do not share one curve' if differ else 'may share one curve'} (p = {p:.2g})"
            + ("; their own foretell them, and another family is as far off as these are." if differ else ".")
        )
    wider = max((row["widened"] for of in laws for _, row in of.told), default=1.0)
    if wider > WIDER:
        yield f"Fewer than four fifths of these intervals hold; those of predictions are up to {wider:.2g} times wider."
    if not any(of.told for of in laws):
        yield (
            f"Every model on {group.on.dataset} is on {group.first.dataset} too. To foretell another one, type what it "
            "shows there: x=2.9."
        )


def _figures(group: PairedGroup, laws: Sequence[LossForesight]) -> list[Figure | Undrawn]:
    """What was measured and what is foretold, with the band of new models, a figure for each quantity."""
    return [_figure(group, own) for own in grouped(laws, lambda of: id(of.pairs)).values()]


def _figure(group: PairedGroup, laws: Sequence[LossForesight]) -> Figure | Undrawn:
    first, pairs = laws[0], laws[0].pairs
    name = f"told-{pairs.law}{'' if pairs.k is None else f'-{pairs.k}'}".replace("_", "-")
    title = f"{first.title} foretold from {_x_title(group, first)}"
    if all(of.calibration is None for of in laws):
        return Undrawn(name, title, "It needs three models that have both.")
    measured = zip(pairs.family_N, pairs.x_N.tolist(), pairs.y_N.tolist(), strict=True)
    rows = [(family, x, Estimate(y)) for family, x, y in measured]
    told = [
        (f"foretold, {of.by if run is None else family_of(run)}", float(row["x"]), value_in(row))
        for of in laws
        for run, row in of.told
        if row["method"] == COMBINED
    ]
    lines = [row for of in laws if not of.is_shared or len(laws) == 1 for row in _along(of)]
    under = [Mark("band", lines), line(lines)] if lines else []
    words = (
        f"{first.title} of {len(rows)} models against {_x_title(group, first)}, and {len(told)} that are foretold.",
        "Lines and bands: the regression of y on x as measured, and where 95 % of new models would lie. Bars: "
        "predictions.",
    )
    origin = Origin(spelled("runs_of_text", dataset=group.first.dataset), tuple(group.run_ids))
    x, y = Scale("x", _x_title(group, first)), Scale("y", first.title)
    return series_figure(name, title, [*rows, *told], x, y, words, origin, under)


def _along(of: LossForesight) -> Rows:
    if of.calibration is None:
        return []
    x_T = [*of.pairs.x_N[of.pairs.of(of.family)].tolist(), *(row["x"] for _, row in of.told)]
    along, scatter = of.calibration.along(min(x_T), max(x_T)), of.pairs.scatter(of.calibration, of.family)
    series = of.family or of.pairs.families[0]
    return [{"series": series, "x": x, **values(of.pairs.as_y(y, scatter))} for x, y in along]
