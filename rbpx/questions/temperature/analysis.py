"""Finds the temperature T* that a text prefers for each run, and the law of cross-entropy at it (verb temperature).

A temperature divides the logits: it moves every probability and no rank. No store holds logits, so `measure` has put
the losses of each document at a few temperatures into the store before. T* is found anew for each resample of the
documents, the same resamples for every size.

Shapes: B resamples, D documents, N sizes, J nodes of beta = 1 / T.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, by_name, estimate
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLawFit
from rbpx.laws.temperature import minimum
from rbpx.runs.fits import Law, fit_all, fit_record, keep_fits
from rbpx.runs.group import Group, Run
from rbpx.runs.points.sizes import Points
from rbpx.runs.points.tempered import Curves, loss_curves
from rbpx.runs.shifts import shift, shift_law
from rbpx.status import Status
from rbpx.store.store import Record, Store

LAW: Final = "cross_entropy_at_temperature"


@dataclass(frozen=True, eq=False)
class RunTemperature:
    """One run.

    Attributes:
        run: the run.
        temperature: T*, with its interval over documents; all None at an edge of the range searched.
        at_one: cross-entropy at T = 1, nats.
        at_best: cross-entropy at T*.
        difference: at T* minus at T = 1.
        beta_J: the nodes.
        loss_3J: mean loss (nats per token) at the nodes, its slope and its curvature in beta.
        status: ok, or at_limit where T* lies outside the nodes.
    """

    run: Run
    temperature: Estimate
    at_one: Estimate
    at_best: Estimate
    difference: Estimate
    beta_J: Floats
    loss_3J: Floats
    status: Status


@dataclass(frozen=True, eq=False)
class Temperatures:
    """The runs of one group in order of S; those whose losses were not measured are missing.

    Attributes:
        group: as selected.
        runs: those that were measured at other temperatures.
        laws: the laws of cross-entropy at T = 1 and at T*; none where nothing was measured.
        difference: the law of their ratio, whose exponent is that at T* minus the raw one.
        resamples: how often the documents were resampled.
    """

    group: Group
    runs: tuple[RunTemperature, ...]
    laws: tuple[Law, ...]
    difference: PowerLawFit | None
    resamples: int


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Temperatures:
    """Find T* of each run whose losses the store holds, and fit the laws at T = 1 and at T*."""
    weights_BD, n_resampled = group.weights(request), group.n_resampled
    runs, one_NB, best_NB = list[RunTemperature](), list[Floats](), list[Floats]()
    for run in group.runs:
        curves = loss_curves(connection, run.run_id, group.n_documents)
        if curves is not None:
            found, one_B, best_B = _temperature(run, curves, weights_BD, n_resampled)
            runs.append(found)
            one_NB.append(one_B)
            best_NB.append(best_B)
    if not runs:
        return Temperatures(group, (), (), None, request.resamples)

    def points(law: str, values: Sequence[Estimate], y_NB: Sequence[Floats], doubt: Status | None) -> Points:
        y_N = np.array([each.value for each in values], dtype=np.float64)
        return Points(law, None, tuple(each.run for each in runs), y_N, np.column_stack(y_NB), doubt, n_resampled)

    doubt = Status.one_document if n_resampled == 1 else None
    limits = Status.at_limit if any(each.status is not Status.ok for each in runs) else doubt
    raw = points("cross_entropy", [each.at_one for each in runs], one_NB, doubt)
    best = points(LAW, [each.at_best for each in runs], best_NB, limits)
    laws = tuple(fit_all([raw, best], Method.ols))
    difference = shift_law(group, raw, best).difference if len(runs) >= 3 else None
    return Temperatures(group, tuple(runs), laws, difference, request.resamples)


def _temperature(
    run: Run, curves: Curves, weights_BD: Floats, n_resampled: int
) -> tuple[RunTemperature, Floats, Floats]:
    """A run, and cross-entropy at T = 1 and at T* of each resample."""
    beta_J = curves.beta_J
    loss_13J = curves.resampled(np.ones((1, len(curves.n_D))))
    loss_B3J = curves.resampled(weights_BD)
    beta, best = (float(value[0]) for value in minimum(loss_13J, beta_J))
    beta_B, best_B = minimum(loss_B3J, beta_J)
    (one,) = np.flatnonzero(beta_J == 1)
    raw, raw_B = float(loss_13J[0, 0, one]), loss_B3J[:, 0, one]
    inside = beta_J[0] < beta < beta_J[-1]
    found = RunTemperature(
        run,
        estimate(1 / beta, 1 / beta_B, n_resampled, Recipe.uncentred) if inside else NO_ESTIMATE,
        estimate(raw, raw_B, n_resampled, Recipe.uncentred),
        estimate(best, best_B, n_resampled, Recipe.uncentred),
        shift(raw, best, raw_B, best_B, n_resampled).difference,
        beta_J,
        loss_13J[0],
        Status.ok if inside else Status.at_limit,
    )
    return found, raw_B, best_B


def keep(store: Store, result: Temperatures) -> list[Record]:
    """Write the law at T* to the store; return a row for each run, then one for each law, for programs."""
    rows: list[Record] = [{"kind": "run", **result.group.names(), **_row(each)} for each in result.runs]
    if not result.laws:
        return rows
    raw, tempered = result.laws
    found = [by_name(temperature=each.temperature) for each in result.runs]
    own: Record = {name: [of_run[name] for of_run in found] for name in found[0]}
    exponent = NO_ESTIMATE if result.difference is None else result.difference.exponent
    own |= {"alpha_raw": raw.fit.alpha, **by_name(alpha_difference=exponent)}
    kept = keep_fits(store, [fit_record(result.group, tempered, result.resamples, own)])
    laws = [fit_record(result.group, raw, result.resamples), *kept]
    return rows + [{"kind": "law", **law} for law in laws]


def _row(each: RunTemperature) -> Record:
    row = {"run_id": each.run.run_id, "size": each.run.size, "S": each.run.non_embedding_params}
    row |= by_name(temperature=each.temperature, cross_entropy_nats=each.at_one)
    row |= by_name(cross_entropy_at_temperature_nats=each.at_best, difference_nats=each.difference)
    return row | {"status": each.status.value}
