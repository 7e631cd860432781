"""Finds the temperature T* that a text prefers for each run, and the law of cross-entropy at it.

A temperature divides the logits: it moves every probability and no rank. No store holds logits, so `measure` has put
the losses of each document at a few temperatures into the store before. T* is found anew for each resample of the
documents, the same resamples for every size.

Shapes: B resamples, D documents, N sizes, J nodes of beta = 1 / T.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.law_columns import backtest, constant, determination, exponent
from rbpx.display.section import interval, interval_of
from rbpx.display.view import View, decimal, state, text, with_ends
from rbpx.display.vocabulary import law_title, number, signed
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Recipe, by_name, estimate
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.temperature import minimum
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.questions.temperature.figures import PREFERRED, Curve, figures, unmeasured
from rbpx.questions.temperature.measure import measure
from rbpx.runs.fits import fit_all, fit_record
from rbpx.runs.group import Group, Run, labels_of
from rbpx.runs.points.sizes import Points
from rbpx.runs.points.tempered import Curves, loss_curves
from rbpx.runs.select.ways import in_size
from rbpx.runs.shifts import shift, shift_law
from rbpx.status import Status
from rbpx.store.store import Record

LAW: Final = "cross_entropy_at_temperature"
RUNS: Final = View[Record](
    "temperatures",
    *PREFERRED.columns,
    decimal("CE", "cross_entropy_nats", means="nats per token"),
    with_ends("at T*", "cross_entropy_at_temperature_nats", ends_spare=1),
    with_ends("difference", "difference_nats", None, signed, "CE at T* minus CE; no rank moves", ends_spare=3),
    state(),
)
LAWS: Final = View[Record](
    "laws",
    text("law", "law"),
    exponent(means="over documents and models; α of their ratio is the difference"),
    constant(spare=3),
    determination(ends_spare=4),
    backtest(spare=2),
    state(),
)


class Tempered(NamedTuple):
    """One run.

    Attributes:
        run: the run.
        row: T*, with its interval over documents, all None at an edge of the range searched; cross-entropy (nats) at
            T = 1 and at T*, and the second minus the first.
        raw_B: cross-entropy at T = 1 of each resample.
        best_B: the same at T*.
        curve: the nodes of beta, and mean loss (nats per token) there, its slope and its curvature in beta.
    """

    run: Run
    row: Record
    raw_B: Floats
    best_B: Floats
    curve: Curve


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Find T* of each run whose losses the store holds, and fit the laws at T = 1 and at T*."""
    weights_BD = group.weights(request)
    curves = [(run, loss_curves(connection, run.run_id, group.n_documents)) for run in group.runs]
    found = [_tempered(group, run, each, weights_BD) for run, each in curves if each is not None]
    if not found:
        nothing = "Nothing was measured at other temperatures."
        return Result([group], sentences=[nothing], figures=partial(unmeasured, group))
    series, rows = _points(group, found), [each.row for each in found]
    raw, best = fit_all(series, Method.ols)
    ratio = shift_law(group, *series).difference if len(found) >= 3 else None
    own: Record = {name: [row[name] for row in rows] for name in by_name(temperature=NO_ESTIMATE)}
    own |= by_name(alpha_difference=NO_ESTIMATE if ratio is None else ratio.alpha)
    laws = [fit_record(group, raw, request.resamples)]
    laws += [fit_record(group, best, request.resamples, own | {"alpha_raw": raw.fit.alpha.value})]

    labelled = zip([each.run for each in found], labels_of([each.run for each in found]), rows, strict=True)
    shown = [row | {"size": label, "non_embedding_params": row["S"], "x": run.x} for run, label, row in labelled]
    of_laws = [row | {"law": law_title(row["law"])} for row in laws]
    of_laws += [] if ratio is None else [{**ratio.columns(), "law": "their ratio", "params": ratio.record()}]
    costs = [(row, each.curve) for row, each in zip(shown, found, strict=True)]
    T = 1 / found[0].curve[0]
    note = f"T is searched from {T.min():g} to {T.max():g}; where T* lies outside, CE at T* is that at the nearer end."
    tables = [RUNS.table("Temperatures", shown, group.title, note=note)]
    tables += [LAWS.table("Laws of cross-entropy", of_laws, group.title)]
    return Result(
        [group],
        [*({"kind": "run", **group.names(), **row} for row in rows), *({"kind": "law", **law} for law in laws)],
        tables,
        [*_sentences(rows[-1], raw.fit, best.fit, ratio)],
        partial(figures, group, costs, (("T = 1", raw.fit), ("T*", best.fit)), [law["fit_id"] for law in laws]),
        laws[1:],  # the first is kept by `fit`
    )


def _tempered(group: Group, run: Run, curves: Curves, weights_BD: Floats) -> Tempered:
    beta_J, n = curves.beta_J, group.n_resampled
    loss_13J, loss_B3J = curves.replicates(np.ones((1, len(curves.n_D)))), curves.replicates(weights_BD)
    beta, best = (float(value[0]) for value in minimum(loss_13J, beta_J))
    beta_B, best_B = minimum(loss_B3J, beta_J)
    (one,) = np.flatnonzero(beta_J == 1)
    raw, raw_B = float(loss_13J[0, 0, one]), loss_B3J[:, 0, one]
    inside = beta_J[0] < beta < beta_J[-1]
    row: Record = {"run_id": run.run_id, "size": run.size, "S": run.non_embedding_params}
    row |= by_name(
        temperature=estimate(1 / beta, 1 / beta_B, n, Recipe.uncentred) if inside else NO_ESTIMATE,
        cross_entropy_nats=estimate(raw, raw_B, n, Recipe.uncentred),
        cross_entropy_at_temperature_nats=estimate(best, best_B, n, Recipe.uncentred),
        difference_nats=shift(raw, best, raw_B, best_B, n).difference,
    )
    row["status"] = (Status.ok if inside else Status.at_limit).value
    return Tempered(run, row, raw_B, best_B, (beta_J, loss_13J[0]))


def _points(group: Group, found: Sequence[Tempered]) -> list[Points]:
    """Cross-entropy at T = 1 and at T*, with what is known to be wrong with it."""
    doubt = Status.one_document if group.n_resampled == 1 else None
    limits = doubt if all(each.row["status"] == Status.ok.value for each in found) else Status.at_limit
    points = []
    for law, name, of in (("cross_entropy", "raw_B", doubt), (LAW, "best_B", limits)):
        y_N = np.array([each.row[f"{law}_nats"] for each in found])
        y_BN = np.column_stack([getattr(each, name) for each in found])
        points.append(Points(law, None, tuple(each.run for each in found), y_N, y_BN, of, group.n_resampled))
    return points


def _sentences(last: Record, raw: PowerLaw, best: PowerLaw, ratio: PowerLaw | None) -> Iterator[str]:
    """What the largest size prefers and gains, and how much of the law is calibration."""
    if last["temperature"] is None:
        yield f"{last['size']} prefers a temperature outside those that were measured."
    else:
        T, gain = (
            interval(*(last[name] for name in by_name(temperature=NO_ESTIMATE))),
            -(last["difference_nats"] or 0.0),
        )
        yield f"{last['size']} does best at T = {T}; its cross-entropy is {gain:.4f} nats lower there."
    if ratio is not None and ratio.alpha.value is not None:
        yield (
            f"The exponent of cross-entropy is {number(raw.alpha.value)} as measured and {number(best.alpha.value)} at "
            f"the temperature of each size, a difference of {interval_of(ratio.alpha, 4)}: that much of the law is "
            "calibration. No rank moves."
        )


QUESTION = of_each(answer, measure=measure, select=partial(in_size, along=False))
