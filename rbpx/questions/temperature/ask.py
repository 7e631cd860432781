"""Answers the question temperature: the T* that a text prefers for each run, and the law of cross-entropy at it.

`measure` has stored the losses of each document at a few temperatures. T* is found anew for each bootstrap replicate,
with the same replicates for every size.

Shapes: B bootstrap replicates, D documents, N sizes, J nodes of beta = 1 / T.
"""

from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.chart.figure import spread
from rbpx.display.law_columns import backtest, constant, determination, estimate_in, exponent
from rbpx.display.section import interval_of
from rbpx.display.view import View, decimal, state, text, with_ends
from rbpx.display.vocabulary import law_title, number, signed
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Recipe, by_name, estimate
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.temperature import minimum
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.questions.temperature.figures import PREFERRED, figures, missing, unmeasured
from rbpx.questions.temperature.measure import measure
from rbpx.runs.fits import fit_all, fit_record
from rbpx.runs.group import Group, Run, labels_of
from rbpx.runs.points.sizes import Points
from rbpx.runs.points.tempered import Curves, loss_curves
from rbpx.runs.select.selections import in_size
from rbpx.runs.shifts import shift, shift_law
from rbpx.status import Status
from rbpx.store.store import Record

_BRIEF: Final = 5  # sizes that a terminal shows
_LAWS: Final = ("cross_entropy", "cross_entropy_at_temperature")
RUNS: Final = View[Record](
    "temperatures",
    *PREFERRED.columns,
    decimal("CE", "cross_entropy_nats"),
    with_ends("CE at T*", "cross_entropy_at_temperature_nats", ends_spare=1),
    with_ends("difference", "difference_nats", None, signed, ends_spare=3),
    state(),
)
LAWS: Final = View[Record](
    "laws",
    text("law", "law"),
    exponent(means="of their ratio it is the difference"),
    constant(spare=3),
    determination(ends_spare=4),
    backtest(spare=2),
    state(),
)


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Finds T* of each run whose losses the store holds, and fits the laws at T = 1 and at T*."""
    curves = [(run, loss_curves(connection, run.run_id, group.n_documents)) for run in group.runs]
    known = [(run, each) for run, each in curves if each is not None]
    if not known:
        return Result([group], sentences=[missing(group)], figures=partial(unmeasured, group))
    weights_BD, runs, T = group.weights(request), [run for run, _ in known], 1 / known[0][1].beta_J
    found = [_tempered(group, run, each, weights_BD) for run, each in known]
    rows = [row for row, *_ in found]
    doubt = Status.one_document if group.n_resampled == 1 else None
    limits = doubt if all(row["status"] == Status.ok.value for row in rows) else Status.at_limit
    series = [
        Points(law, None, tuple(runs), np.array([row[f"{law}_nats"] for row in rows]), y_BN, of, group.n_effective)
        for law, of, y_BN in (
            (_LAWS[0], doubt, np.column_stack([raw_B for _, raw_B, _ in found])),
            (_LAWS[1], limits, np.column_stack([best_B for *_, best_B in found])),
        )
    ]
    raw, best = fit_all(series, Method.ols)
    ratio = shift_law(group, *series).difference if len(found) >= 3 else None
    own: Record = {name: [row[name] for row in rows] for name in by_name(temperature=NO_ESTIMATE)}
    own |= by_name(alpha_difference=NO_ESTIMATE if ratio is None else ratio.alpha)
    laws = [fit_record(group, raw, request.resamples)]
    laws += [fit_record(group, best, request.resamples, own | {"alpha_raw": raw.fit.alpha.value})]

    shown = [
        row | {"size": label, "non_embedding_params": row["S"], "x": run.x}
        for run, label, row in zip(runs, labels_of(runs), rows, strict=True)
    ]
    of_laws = [row | {"law": law_title(row["law"])} for row in laws]
    of_laws += [] if ratio is None else [{**ratio.columns(), "law": "their ratio", "params": ratio.record()}]
    at = [row["run_id"] for row in spread(rows, _BRIEF)]
    title = "The temperature T* with the least cross-entropy, nats"
    return Result(
        [group],
        [*({"kind": "run", **group.names(), **row} for row in rows), *({"kind": "law", **law} for law in laws)],
        [
            RUNS.table(title, shown, group.title, brief=lambda row: row["run_id"] in at),
            LAWS.table("Laws of cross-entropy", of_laws, group.title, brief=False),
        ],
        [_sentence(rows[-1], T, raw.fit, best.fit, ratio)],
        partial(figures, group, shown, (("T = 1", raw.fit), ("T*", best.fit)), [law["fit_id"] for law in laws]),
        laws[1:],  # the first is kept by `fit`
    )


def _tempered(group: Group, run: Run, curves: Curves, weights_BD: Floats) -> tuple[Record, Floats, Floats]:
    """Returns the row of one run, and cross-entropy (nats) of each replicate at T = 1 and at its own T*.

    T* has an interval over documents; it is None at an edge of the searched range.
    """
    beta_J, n = curves.beta_J, group.n_effective
    loss_X3J = curves.replicates(np.vstack([np.ones(len(curves.n_D)), weights_BD]))
    (beta, *_), (best, *_) = (beta_X, best_X) = minimum(loss_X3J, beta_J)
    raw_X, inside = loss_X3J[:, 0, beta_J == 1][:, 0], beta_J[0] < beta < beta_J[-1]
    row: Record = {"run_id": run.run_id, "size": run.size, "S": run.non_embedding_params}
    row |= by_name(
        temperature=estimate(1 / beta, 1 / beta_X[1:], n, Recipe.uncentred) if inside else NO_ESTIMATE,
        cross_entropy_nats=estimate(raw_X[0], raw_X[1:], n, Recipe.uncentred),
        cross_entropy_at_temperature_nats=estimate(best, best_X[1:], n, Recipe.uncentred),
        difference_nats=shift(raw_X[0], best, raw_X[1:], best_X[1:], n).difference,
    )
    return row | {"status": (Status.ok if inside else Status.at_limit).value}, raw_X[1:], best_X[1:]


def _sentence(last: Record, T: Floats, raw: PowerLaw, best: PowerLaw, ratio: PowerLaw | None) -> str:
    if last["temperature"] is None:
        says = f"{last['size']} prefers a temperature outside the {T.min():g} to {T.max():g} that were measured"
    else:
        best_T, gain = interval_of(estimate_in(last, "temperature")), -(last["difference_nats"] or 0.0)
        says = f"{last['size']} does best at T = {best_T}, where its cross-entropy is {gain:.4f} nats lower"
    if ratio is None or ratio.alpha.value is None:
        return f"{says}."
    return (
        f"{says}; with each size at its T the exponent of cross-entropy is {number(best.alpha.value)} instead of "
        f"{number(raw.alpha.value)}, a difference of {interval_of(ratio.alpha, 4)} by calibration."
    )


QUESTION = of_each(answer, measure=measure, select=partial(in_size, along=False))
