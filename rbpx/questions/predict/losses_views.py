"""Shows what models will show on one text by what they show on another: backtests, then predictions."""

from collections.abc import Iterator
from typing import Final

from rbpx.display.chart.figure import Figure, Mark, Origin, Rows, Scale, Undrawn, line
from rbpx.display.chart.laws import series_figure
from rbpx.display.view import Cell, Column, Table, View, magnitude, share, state, text, whole, with_ends
from rbpx.display.vocabulary import UNKNOWN, significant
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.predict.verdict import SIGNIFICANT
from rbpx.questions.predict.losses import LossForesight, LossForesights, ToldLoss
from rbpx.runs.group import Run
from rbpx.runs.origin import spelled
from rbpx.runs.select.losses import family_of

_Row = tuple[LossForesight, ToldLoss]


def _by(of: LossForesight) -> str:
    return of.family or ("all families" if of.is_shared else of.pairs.families[0])


def _digits(value: float | None) -> str:
    return significant(value, 4)


def _model(run: Run | None) -> str | None:
    return None if run is None else f"{family_of(run)} {run.size}"


def _held(of: LossForesight) -> Cell:
    n = len(of.held)
    return Cell((f"{sum(of.held)}/{n}",), (sum(of.held), n)) if n else Cell((UNKNOWN,), (None, None))


BACKTESTS: Final = View[LossForesight](
    "backtest",
    text("law", "law", lambda row: row.title),
    text("fitted", "family", _by),
    whole("models", "n_fitted", lambda row: row.n_fitted),
    share("mean |error|", "mean_error", lambda row: row.mean_error),
    Column("inside", ("n_inside", "n_intervals"), _held, "95 % intervals that contain the measured value"),
)

PREDICTIONS: Final = View[_Row](
    "predictions",
    text("law", "law", lambda row: row[0].title),
    text("model", "model", lambda row: _model(row[1].run)),
    magnitude("x", "x", lambda row: row[1].x, "what the model shows on the other text"),
    text("by", "method", lambda row: row[1].method, spare=2),
    text("fitted", "family", lambda row: _by(row[0])),
    with_ends("predicted", "y", lambda row: row[1].y, _digits),
    share("|error|", "expected_error", lambda row: row[1].expected_error, 1, "to expect", 3),
    magnitude("outside", "beyond", lambda row: row[1].beyond, "how many times beyond the measured models", 4),
    state(lambda row: row[1].status),
)  # fmt: skip


def tables(of: LossForesights) -> list[Table]:
    """The backtests of a group, then its predictions."""
    title = of.group.title
    several = any(each.is_shared for each in of.laws)
    note = "Models of the smallest x, foretold by those of larger ones." + (
        " Of all families: each family, foretold by the others." if several else ""
    )
    rows = [(law, told) for law in of.laws for told in law.predictions]
    found = [BACKTESTS.table("Backtest", of.laws, title, note=note)]
    if not rows:
        return found
    xs = ", ".join(dict.fromkeys(of.x_title(law) for law in of.laws))
    note = (
        f"x is {xs}. A regression of y on x as measured, over forms, with the 95 % interval of one new model on the "
        "same text; it assumes nothing of how x errs."
    )
    note = " ".join([note, *dict.fromkeys(line for law in of.laws for line in law.pairs.of_guessing)])
    return [*found, PREDICTIONS.table("Predictions from another loss", rows, title, note=note)]


def sentences(of: LossForesights) -> Iterator[str]:
    """How good the backtests are, whether families share a curve, and what there is to foretell."""
    tested = [law for law in of.laws if law.mean_error is not None and not law.is_shared]
    if tested:
        best = min(tested, key=lambda law: law.mean_error or 0.0)
        inside = [held for law in tested for held in law.held]
        yield (
            f"Fitted to models of large x and compared with those of smaller x, {best.title} was predicted best, "
            f"{best.mean_error:.1%} off on average; the 95 % intervals contained {sum(inside)} of {len(inside)} values."
        )
    for law in of.laws:
        if law.shared is not None:
            differ = law.shared.p < SIGNIFICANT
            yield (
                f"{law.title}: the families {'do not share one curve' if differ else 'may share one curve'} "
                f"(p = {law.shared.p:.2g})"
                + ("; their own foretell them, and another family is as far off as these are." if differ else ".")
            )
    wider = max((told.widened for law in of.laws for told in law.predictions), default=1.0)
    if wider > 1.05:
        yield f"Fewer than four fifths of these intervals hold; those of predictions are up to {wider:.2g} times wider."
    if not any(law.predictions for law in of.laws):
        yield (
            f"Every model on {of.group.on.dataset} is on {of.group.first.dataset} too. To foretell another one, type "
            "what it shows there: x=2.9."
        )


def figures(of: LossForesights) -> list[Figure | Undrawn]:
    """What was measured and what is foretold, with the band of new models, a figure for each quantity."""
    return [_figure(of, [each for each in of.laws if each.pairs is pairs]) for pairs in _quantities(of)]


def _quantities(of: LossForesights) -> list[object]:
    return list({id(law.pairs): law.pairs for law in of.laws}.values())


def _figure(of: LossForesights, laws: list[LossForesight]) -> Figure | Undrawn:
    first = laws[0]
    name = f"told-{first.pairs.law}{'' if first.pairs.k is None else f'-{first.pairs.k}'}".replace("_", "-")
    title = f"{first.title} foretold from {of.x_title(first)}"
    if all(law.calibration is None for law in laws):
        return Undrawn(name, title, "It needs three models that have both.")
    values = zip(first.pairs.family_N, first.pairs.x_N.tolist(), first.pairs.y_N.tolist(), strict=True)
    rows = [(family, x, Estimate(y)) for family, x, y in values]
    told = [
        (_named(law, each), each.x, each.y) for law in laws for each in law.predictions if each.method == "combined"
    ]
    lines = [row for law in laws if not law.is_shared or len(laws) == 1 for row in _along(law)]
    under = [Mark("band", lines), line(lines)] if lines else []
    words = (
        f"{first.title} of {len(rows)} models against {of.x_title(first)}, and {len(told)} that are foretold.",
        "Lines and bands: the regression of y on x as measured, and where 95 % of new models would lie. Bars: "
        "predictions.",
    )
    group = of.group
    origin = Origin(spelled("runs_of_text", dataset=group.first.dataset), tuple(group.run_ids))
    x, y = Scale("x", of.x_title(first)), Scale("y", first.title)
    return series_figure(name, title, [*rows, *told], x, y, words, origin, under)


def _named(law: LossForesight, told: ToldLoss) -> str:
    return f"foretold, {_by(law) if told.run is None else family_of(told.run)}"


def _along(law: LossForesight) -> Rows:
    if law.calibration is None:
        return []
    x_N = law.pairs.x_N[law.pairs.of(law.family)].tolist()
    x_T = [*x_N, *(told.x for told in law.predictions)]
    series = law.family or law.pairs.families[0]
    along = law.calibration.along(min(x_T), max(x_T))
    scatter = law.pairs.scatter(law.calibration, law.family)
    rows = [(x, law.pairs.as_y(y, scatter)) for x, y in along]
    return [{"series": series, "x": x, "y": y.value, "lo": y.lo, "hi": y.hi} for x, y in rows]
