"""Calibration of runs (verb temperature): T* of each run, cross-entropy at it, and its law beside the raw one.

Nothing is measured here: `measure` has put the losses at a few temperatures into the store, for each document. T* is
found again for each resample of the documents, the same ones for every size.
Shapes: B resamples, D documents, N sizes, J nodes of beta = 1 / T.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.groups.fits import Law, fit_all, fit_record
from rbpx.groups.group import Group, Run
from rbpx.groups.points import Points
from rbpx.groups.shifts import Shift, shift, shift_law
from rbpx.groups.temperatures import Curves, loss_curves
from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.interval import Estimate
from rbpx.laws.names import Method
from rbpx.laws.power_fit import PowerLawFit
from rbpx.laws.temperature import minimum
from rbpx.status import Status
from rbpx.store.store import Record, Store

Floats = npt.NDArray[np.float64]

LAW: Final = "cross_entropy_at_temperature"
_SAME_NATS: Final = 1e-2  # cross-entropy may differ by from the stored one, which 16 bits on another device reach


@dataclass(frozen=True, eq=False)
class RunTemperature:
    """One run.

    Attributes:
        run: which.
        temperature: T*, with its interval over documents; all None at an edge of what was searched.
        cross_entropy_nats: from T = 1 (`before`) to T* (`after`), nats, and the interval of the difference.
        at_one: cross-entropy at T = 1 with its interval.
        at_best: cross-entropy at T* with its interval.
        beta_J: the nodes.
        loss_3J: mean loss (nats a token) at the nodes, its slope and its curvature in beta.
        status: ok, or at_limit where T* lies beyond the nodes.
    """

    run: Run
    temperature: Estimate
    cross_entropy_nats: Shift
    at_one: Estimate
    at_best: Estimate
    beta_J: Floats
    loss_3J: Floats
    status: Status


@dataclass(frozen=True, eq=False)
class Temperatures:
    """The runs of one group in order of S; those whose losses were not measured are missing.

    Attributes:
        group: as selected.
        runs: those that were measured.
        raw: the law of cross-entropy at T = 1; None where nothing was measured.
        tempered: that of cross-entropy at T*.
        difference: of the exponents, T* minus raw.
        resamples: of the documents.
    """

    group: Group
    runs: tuple[RunTemperature, ...]
    raw: Law | None
    tempered: Law | None
    difference: PowerLawFit | None
    resamples: int


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Temperatures:
    """Find T* of each run whose losses the store holds, and fit the laws at T = 1 and at T*."""
    weights_BD = group.weights(request)
    measured: list[tuple[RunTemperature, Floats, Floats]] = []
    for run in group.runs:
        curves = loss_curves(connection, run.run_id, group.n_documents)
        if curves is not None:
            measured.append(_temperature(run, curves, weights_BD, group.n_resampled))
    runs = tuple(each for each, _, _ in measured)
    if not runs:
        return Temperatures(group, (), None, None, None, request.resamples)
    doubt = Status.one_document if group.n_resampled == 1 else None
    n = group.n_resampled
    raw = _points("cross_entropy", runs, [each.at_one for each in runs], [one_B for _, one_B, _ in measured], doubt, n)
    limits = Status.at_limit if any(each.status is not Status.ok for each in runs) else doubt
    best = _points(LAW, runs, [each.at_best for each in runs], [best_B for _, _, best_B in measured], limits, n)
    laws = fit_all([raw, best], Method.ols)
    difference = shift_law(group, raw, best).difference if len(runs) >= 3 else None
    return Temperatures(group, runs, laws[0], laws[1], difference, request.resamples)


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
        estimate(1 / beta, 1 / beta_B, n_resampled, Recipe.uncentred) if inside else Estimate(None, None, None),
        shift(raw, best, raw_B, best_B, n_resampled),
        estimate(raw, raw_B, n_resampled, Recipe.uncentred),
        estimate(best, best_B, n_resampled, Recipe.uncentred),
        beta_J,
        loss_13J[0],
        Status.ok if inside else Status.at_limit,
    )
    return found, raw_B, best_B


def _points(
    law: str,
    runs: Sequence[RunTemperature],
    values: Sequence[Estimate],
    resampled: Sequence[Floats],
    doubt: Status | None,
    n_documents: int | None,
) -> Points:
    y_N = np.array([each.value for each in values], dtype=np.float64)
    return Points(law, None, tuple(each.run for each in runs), y_N, np.column_stack(resampled), doubt, n_documents)


def check_same(run_id: str, again: pa.Table, facts: Record) -> None:
    """Refuse losses at T = 1 that are not those that the run has.

    Args:
        run_id: the run.
        again: its rows of `temperatures`, measured now.
        facts: its manifest.

    Raises:
        RbpxError: tokens differ, or cross-entropy by more than 0.01 nats.
    """
    raw = again.filter(pc.equal(again["beta"], 1.0))
    n_tokens, stored = pc.sum(raw["n_tokens"]).as_py(), facts["cross_entropy_nats"]
    nats = pc.sum(raw["sum_loss_nats"]).as_py() / n_tokens
    if n_tokens != facts["n_tokens"] or not abs(nats - stored) <= _SAME_NATS:
        raise RbpxError(
            f"run {run_id} has {facts['n_tokens']:,} tokens and a cross-entropy of {stored:.4f} nats; measured again "
            f"it has {n_tokens:,} and {nats:.4f}; look at versions and device with `show`, or measure the run anew"
        )


def keep(store: Store, result: Temperatures) -> list[Record]:
    """Write the law at T* to the store; return a row for each run, then one for each law, for programs."""
    names = result.group.names()
    rows: list[Record] = [{"kind": "run", **names, **_row(each)} for each in result.runs]
    if result.raw is None or result.tempered is None:
        return rows
    record = fit_record(result.group, result.tempered, result.resamples, _temperatures(result))
    store.write_record("fits", record["fit_id"], record)
    return [*rows, {"kind": "law", **fit_record(result.group, result.raw, result.resamples)}, {"kind": "law", **record}]


def _temperatures(result: Temperatures) -> Record:
    found, fit = [each.temperature for each in result.runs], result.difference
    return {
        "temperature": [each.value for each in found],
        "temperature_lo": [each.lo for each in found],
        "temperature_hi": [each.hi for each in found],
        "alpha_raw": None if result.raw is None else result.raw.fit.alpha,
        "alpha_difference": None if fit is None else fit.alpha,
        "alpha_difference_lo": None if fit is None else fit.alpha_lo,
        "alpha_difference_hi": None if fit is None else fit.alpha_hi,
    }


def _row(each: RunTemperature) -> Record:
    row: Record = {"run_id": each.run.run_id, "size": each.run.size, "S": each.run.non_embedding_params}
    estimates = {
        "temperature": each.temperature,
        "cross_entropy_nats": each.at_one,
        "cross_entropy_at_temperature_nats": each.at_best,
        "difference_nats": each.cross_entropy_nats.difference,
    }
    for name, value in estimates.items():
        row |= {name: value.value, f"{name}_lo": value.lo, f"{name}_hi": value.hi}
    return row | {"status": each.status.value}
