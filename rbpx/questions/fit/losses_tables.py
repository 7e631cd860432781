"""Shows loss to loss: what each model shows on both texts, the curves with their constants, and whether one is shared.

Source: arXiv 2411.12925, figure 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.chart.figure import Figure, Mark, Rows, Scale, Undrawn, line, spread
from rbpx.display.chart.laws import series_figure
from rbpx.display.section import interval_of
from rbpx.display.view import Column, Table, Value, View, decimal, error, share, state, text, whole, with_ends
from rbpx.display.vocabulary import law_title, short, significant
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.losses.noise import Source
from rbpx.laws.prediction.verdict import SIGNIFICANT
from rbpx.questions.fit.losses import FamilyCurve, LossLaw, LossLaws, analyse_losses, record_of_curve
from rbpx.questions.result import Result
from rbpx.runs.group import Group, Run, labels_of
from rbpx.runs.origin import from_fits
from rbpx.runs.select.losses import family_of
from rbpx.store.store import Record
from rbpx.typed import typed

_MOST: Final = 12  # models of a table
_Model = tuple[Run, str, int]  # with its label, and its place in the group
_FROM: Final = {
    Source.seeds: "estimated from models that were trained again with other seeds",
    Source.documents: "estimated from resampled documents",
    Source.assumed: "assumed: as many percent for both, each for itself",
}


def _digits(value: float | None) -> str:
    return significant(value, 3)


CURVES: Final = View[Record](
    "curves",
    text("law", "law", lambda row: law_title(row["law"], row["k"])),
    text("family", "curve"),
    whole("models", "n_points", spare=2),
    [with_ends(heading, name, None, _digits, spare=4 * (name == "K"), ends_spare=3 * name.startswith("E"))
     for heading, name in (("κ", "kappa"), ("K", "K"), ("E_x", "E_x"), ("E_y", "E_y"))],
    with_ends("slope", "slope", None, _digits, "of ln y by ln x, a straight line", 5),
    share("scatter", "scatter", None, 2, "of y about the curve, standard deviation", 1),
    error("backtest", "backtest_error", means="error of the best model, from all others"),
    share("mean |error|", "mean_backtest_error", means="over all backtests", spare=6),
    state(),
)  # fmt: skip


def of_losses(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Fit loss to loss: a row for each quantity and family, and one for all families."""
    laws = analyse_losses(connection, group, request)
    curves = [(law, curve) for law in laws.laws for curve in law.curves]
    fits = [record_of_curve(laws.group, law, curve) for law, curve in curves]
    named = [row | {"curve": _family(*of)} for row, of in zip(fits, curves, strict=True)]
    shown = [*_tables(laws, named)] if laws.laws else []
    return Result(
        [group], fits, shown, [*sentences(laws)], partial(figures, laws, [row["fit_id"] for row in fits]), fits
    )


def _family(law: LossLaw, curve: FamilyCurve) -> str:
    return curve.family or ("all" if len(law.pairs.families) > 1 else law.pairs.families[0])


def _tables(laws: LossLaws, rows: Sequence[Record]) -> Iterator[Table]:
    """What each model shows on both texts, then the curves."""
    yield _models(laws)
    sources = dict.fromkeys(_FROM[law.pairs.noise.source] for law in laws.laws)
    note = (
        f"x is {', '.join(dict.fromkeys(laws.x_title(law) for law in laws.laws))}. By errors in variables, whose "
        f"covariance is {'; '.join(sources)}."
    )
    note = " ".join([note, *dict.fromkeys(line for law in laws.laws for line in law.pairs.of_guessing)])
    title = "Loss to loss: y = E_y + K · (x − E_x)^κ"
    yield CURVES.table(title, rows, laws.group.title, note=note)


def _models(laws: LossLaws) -> Table:
    runs = laws.group.runs
    labels = labels_of(runs)
    rows: list[_Model] = spread(
        [(run, label, at) for at, (run, label) in enumerate(zip(runs, labels, strict=True))], _MOST
    )
    x_of = {laws.x_title(law): law for law in laws.laws}
    several: list[Column[_Model]] = [text("family", "family", lambda row: family_of(row[0]))]
    view = View[_Model](
        "models",
        several if len({family_of(run) for run in runs}) > 1 else [],
        text("size", "size", lambda row: row[1]),
        whole("S", "non_embedding_params", lambda row: row[0].non_embedding_params, spare=1),
        [_value(title, f"x_{at}" if at else "x", law, True, at) for at, (title, law) in enumerate(x_of.items())],
        [_value(law.title, _key(law), law, False, at) for at, law in enumerate(laws.laws)],
    )
    note = f"{len(rows)} of {len(runs)} models." if len(rows) < len(runs) else ""
    return view.table("What each model shows on both texts", rows, laws.group.title, note=note)


def _key(law: LossLaw) -> str:
    return law.pairs.law if law.pairs.k is None else f"{law.pairs.law}_{law.pairs.k}"


def _value(heading: str, key: str, law: LossLaw, is_x: bool, at: int) -> Column[_Model]:
    values = law.pairs.x_N if is_x else law.pairs.y_N
    known = {id(run): float(value) for run, value in zip(law.pairs.members, values, strict=True)}
    return decimal(heading, key, lambda row: known.get(id(row[0])), 4, spare=max(0, at - 1))


def sentences(laws: LossLaws) -> Iterator[str]:
    """The curve of each quantity, what its errors are taken to be, and whether families share it."""
    firsts = {law.pairs.law: law for law in reversed(laws.laws)}  # of several k the smallest
    for law in (law for law in laws.laws if law is firsts[law.pairs.law]):
        curve = law.curves[-1]
        kappa = curve.fit.constants["kappa"]
        named = f"{law.title} on {laws.group.first.dataset}{'' if law.pairs.chance is None else ', as odds,'}"
        if kappa.value is None:
            yield f"{named} against {laws.x_title(law)}: {curve.fit.n} models, and constants need 5."
            continue
        yield (
            f"{named} goes as (x − E_x)^κ of {laws.x_title(law)} with κ = {interval_of(kappa)}; models lie "
            f"{curve.fit.scatter or 0.0:.2%} off the curve."
        )
        if law.shared is not None:
            differ = law.shared.p < SIGNIFICANT
            yield (
                f"{law.shared.n_families} families {'do not share one curve' if differ else 'may share one curve'} "
                f"(p = {law.shared.p:.2g})."
            )
        if curve.kappas:
            without_x, without_y = curve.kappas
            why = "Nothing here says how x and y err together, as seeds would: equal errors in percent are assumed"
            if law.pairs.noise.source is Source.documents:
                why = (
                    f"Models lie {curve.fit.times_off or 0.0:.2g} times as far off as documents put them, and nothing "
                    "says that the rest of their errors is like that of documents, as is assumed"
                )
            yield (f"{why}. κ would be {without_x:.3g} if x had none, and {without_y:.3g} if y had none.")
        noise = law.pairs.noise
        if noise.source is not Source.assumed:
            yield (
                f"Errors of ln x are {short(noise.ratio)} times those of ln y, with a correlation of "
                f"{noise.correlation:.2f}, {_FROM[noise.source]}."
            )
    if laws.group.alone:
        asked = typed("predict", dataset=laws.group.first.dataset, axis=laws.group.on.value)
        yield f"{len(laws.group.alone)} more are on {laws.group.on.dataset} alone: {asked} foretells them."


def figures(laws: LossLaws, fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """One loss against the other for each quantity, with the curve of each family and the band of new models."""
    for law in laws.laws:
        yield _figure(laws, law, fit_ids)


def _figure(laws: LossLaws, law: LossLaw, fit_ids: Sequence[str]) -> Figure | Undrawn:
    pairs = law.pairs
    name, title = f"losses-{_key(law).replace('_', '-')}", f"{law.title} against {laws.x_title(law)}"
    if not len(pairs.x_N):
        return Undrawn(name, title, "No model has both.")
    rows = [
        (family, x, Estimate(y))
        for family, x, y in zip(pairs.family_N, pairs.x_N.tolist(), pairs.y_N.tolist(), strict=True)
    ]
    drawn = law.curves if len(law.curves) == 1 else law.curves[:-1]
    lines = [row for curve in drawn for row in _along(law, curve)]
    under = [Mark("band", lines), line(lines)] if lines else []
    kappas = "; ".join(f"{_family(law, curve)} {interval_of(curve.fit.constants['kappa'])}" for curve in drawn)
    words = (
        f"{law.title} of {len(rows)} models against {laws.x_title(law)}; κ of {kappas}.",
        "Lines: curves by errors in variables. Bands: where 95 % of new models of such an x would lie, by regression.",
    )
    x, y = Scale("x", laws.x_title(law)), Scale("y", law.title)
    return series_figure(name, title, rows, x, y, words, from_fits(fit_ids, laws.group), under)


def _along(law: LossLaw, curve: FamilyCurve) -> Rows:
    if curve.calibration is None:
        return []
    x_N = law.pairs.x_N[law.pairs.of(curve.family)]
    family = curve.family or law.pairs.families[0]
    rows: list[dict[str, Value]] = []
    scatter = law.pairs.scatter(curve.calibration, curve.family)
    for x, y in curve.calibration.along(float(x_N.min()), float(x_N.max())):
        best = curve.fit.curve
        of_curve = y if best is None else replace(y, value=float(np.exp(best.ln_at(np.log([x])))[0]))
        y = law.pairs.as_y(of_curve, scatter)
        rows.append({"series": family, "x": x, "y": y.value, "lo": y.lo, "hi": y.hi})
    return rows
