"""Puts together what runs in size and tokens say about the next one (verb decide)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.errors import RbpxError
from rbpx.laws.families.shift import Shift, fit_shift, is_surface
from rbpx.laws.intervals.estimate import Estimate, flat
from rbpx.laws.names import Axis
from rbpx.laws.prediction.calibration import in_sd
from rbpx.laws.surface.averaged import BudgetTest, OverForms, backtest_budgets, forms_to_mix, predict_over_forms
from rbpx.laws.surface.decision import Best, Served, best_of, irreducible, with_serving, within_total
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.landscape import Landscape, landscape
from rbpx.laws.surface.next_runs import (
    TENFOLD,
    Plan,
    Wanted,
    best_sizes,
    best_values,
    candidates,
    next_runs,
    predictions,
)
from rbpx.laws.surface.runs import Runs, six_S
from rbpx.runs.points.outliers import outlier_rows, tested_quantities
from rbpx.runs.points.surfaces import MOST_REPLICATES, Trained, doubts_of_points, refuse_routed
from rbpx.runs.select.trainings import TrainingGroup, plain_beside
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record

_NEXT: Final = 3  # runs, where nothing says how many
FAR: Final = 30  # times the most compute: beyond, a budget is an extrapolation that no backtest covers
LONG: Final = 2.0  # times the largest D / S


@dataclass(frozen=True, eq=False)
class Decision:
    """What is said about one quantity.

    Attributes:
        trained: its points.
        form: the form of those mixed that fits best.
        budgets: what larger budgets showed beside what smaller ones announced.
        best: of each budget; none where size and tokens vary together.
        rows: of each kind: runs, best, served, asked, worth, outlier, largest, next; E, which no model gets below, is
            unknown where size and tokens vary together, since it lies far off their line.
        target: what the runs to train next narrow, in words.
        plans: these runs: the best use of what they may cost, after those that narrow most per FLOP if next= is typed.
        landscape: what pictures show of budgets; None where size and tokens vary together.
        worth: what the variant is worth beside models without one, along C; None of these, and where none are there.
        reasons: every status that holds for the points and forms.
    """

    trained: Trained
    form: Surface
    budgets: tuple[BudgetTest, ...]
    best: Sequence[Best]
    rows: Sequence[Record]
    target: str
    plans: Sequence[Plan]
    landscape: Landscape | None
    worth: Shift | None
    reasons: tuple[Status, ...]

    def of_kind(self, kind: str) -> list[Record]:
        """Its rows of a kind."""
        return [row for row in self.rows if row["kind"] == kind]


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> list[Decision]:
    """Decide by cross-entropy unless quantities are named."""
    quantities = tested_quantities(connection, group, request)
    if not request.laws.by_name:
        quantities = sorted(quantities, key=lambda each: each.law != "cross_entropy")[:1]
    plain = plain_beside(connection, request, group)
    tested = [] if plain is None else tested_quantities(connection, plain, request)
    beside = {(each.law, each.k): each for each in tested}
    return [_decide(group, each, beside.get((each.law, each.k)), request) for each in quantities]


def _decide(group: TrainingGroup, trained: Trained, plain: Trained | None, request: Request) -> Decision:
    refuse_routed(trained)
    runs, seed, points = trained.runs, request.seed, request.points_to_predict()
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    forms, n_replicates = forms_to_mix(runs), min(request.resamples, MOST_REPLICATES)
    fits = [fit_surface(runs, form, n_replicates=n_replicates, **options) for form in forms]
    form = min(fits, key=lambda fit: math.inf if fit.bic is None else fit.bic)
    foretold = backtest_budgets(runs, forms, **options)
    reasons = doubts_of_points(group, trained, form)
    is_fitted = any(fit.surface is not None for fit in fits)
    tells_apart = is_fitted and Status.collinear_design not in reasons
    E, best, served, over, target, plans = Estimate(), list[Best](), None, list[OverForms](), "", list[Plan]()
    around = worth = None
    if is_fitted:
        most = float(runs.along(Axis.C).max())
        wanted = list(dict.fromkeys([*([request.flops] if request.flops else []), *request.budgets]))
        wanted = wanted or [TENFOLD * most]
        over = predict_over_forms(fits, points, foretold) if points else []
        if request.next is not None:
            to_narrow, flops = _to_narrow(runs, request), _may_cost(runs, request)
            target, plans = to_narrow.name, next_runs(fits, to_narrow, request.next, flops, seed)
        elif tells_apart and len(candidates(runs, request.flops or most)[0]):  # off their line it is unbounded
            to_narrow = best_values(runs, wanted)
            target, plans = to_narrow.name, next_runs(fits, to_narrow, _NEXT, request.flops or most, seed)[-1:]
        if plain is not None and is_surface(plain.runs, runs) and not (plain.runs.repeats or runs.repeats):
            worth = fit_shift(plain.runs, runs, Axis.C, **options)
    if tells_apart:
        E, around = irreducible(fits, seed), landscape(fits, wanted, MOST_SERIES, foretold, seed)
        best = [each for C in wanted if (each := best_of(fits, C, foretold, seed)) is not None]
        if request.inference_tokens and request.inference_within:
            served = within_total(fits, wanted[0], request.inference_tokens, foretold, seed)
        elif request.inference_tokens and best and best[0].S.value is not None:
            served = with_serving(fits, wanted[0], request.inference_tokens, seed)
    values: list[Record] = [{"kind": "runs", "n_points": form.n_points, "n_runs": form.n_runs, **flat({"E": E})}]
    values[0] |= _doubts(reasons)
    values += [{"kind": "best", **flat(vars(each)), **_doubts([*reasons, *doubts_of_best(each)])} for each in best]
    if served is not None:
        doubts = [*reasons, *doubts_of_served(served, runs)]
        values.append({"kind": "served", **flat(vars(served)), **_doubts(doubts)})
    for (S, D), at in zip(points if over else (), over, strict=True):
        farther, longer = 6 * S * D / most, D / S / float((runs.D_N / runs.S_N).max())
        doubted = _doubts([*reasons, *_beyond(farther, longer)])
        values.append({"kind": "asked", "S": S, "D": D, **flat({"y": at.y}), **doubted})
    values += [*_worth(worth), *outlier_rows(group, [trained]), *_largest(foretold)]
    for plan in plans:
        of_plan: Record = {"kind": "next", "target": target, "plan": plan.name, "next_narrows": plan.next_narrows}
        values += [of_plan | {"rank": n, **vars(run)} for n, run in enumerate(plan.runs, 1)] or [of_plan]
    named = {**group.names(), "law": trained.law, "k": trained.k, "form": form.form}
    rows = [{"kind": row["kind"]} | (row if row["kind"] == "outlier" else named | row) for row in values]
    return Decision(trained, form, foretold, best, rows, target, plans, around, worth, reasons)


def _beyond(farther: float, longer: float = 1.0) -> list[Status]:
    """Whether a run lies far off the runs, by the factors of its compute and its tokens per parameter beyond theirs."""
    return [Status.beyond] if farther > FAR or longer > LONG else []


def doubts_of_best(best: Best) -> list[Status]:
    """What is wrong with the best of a budget beside the points; not_straddled where no size is the best."""
    return [*_beyond(best.beyond), *([Status.not_straddled] if best.S.value is None else [])]


def doubts_of_served(served: Served, runs: Runs) -> list[Status]:
    """What is wrong with the least of training and serving beside the points.

    Without a size it is not_straddled, or unreachable where none smaller comes to the loss with more tokens.
    """
    farther = 1.0  # how far the budget lies beyond is said of its best training
    if served.within:
        training = served.C - 2 * (served.S.value or 0.0) * served.T
        farther = training / float(runs.along(Axis.C).max())
    none = Status.not_straddled if served.within else Status.unreachable
    return [*_beyond(farther, served.ratio_beyond), *([none] if served.S.value is None else [])]


def _worth(worth: Shift | None) -> Iterator[Record]:
    """What the variant is worth at each place, or that it is not known at any."""
    if worth is None:
        return
    start, end = worth.apart or (None, None)
    places: list[tuple[float | None, Estimate, list[Status]]]
    places = [(at.C, at.value, [at.status, *worth.reasons]) for at in worth.at]
    for C, value, statuses in places or [(None, Estimate(), [*worth.reasons])]:
        at_C: Record = {"C": C, "apart_from": start, "apart_to": end}
        yield {"kind": "worth", **flat({"multiplier": value}), **at_C, **_doubts(statuses)}


def _largest(budgets: Sequence[BudgetTest]) -> Iterator[Record]:
    """The runs of the largest budget that smaller ones foretold, and how many standard deviations each is off."""
    nearest = min(budgets, key=lambda test: (test.gap, -int(test.fitted_N.sum())), default=None)
    for test in () if nearest is None else nearest.held_out:
        off = in_sd(test.predicted, test.measured)
        if off is not None:
            at: Record = {"S": test.S, "D": test.D, "measured": test.measured, "in_sd": off, "held": test.is_inside}
            yield {"kind": "largest", **at, **flat({"y": test.predicted})}


def _to_narrow(runs: Runs, request: Request) -> Wanted:
    """What next=N runs narrow: predictions, else the best sizes of budgets, else the best loss of tenfold compute."""
    if request.points_to_predict():
        return predictions(request.points_to_predict())
    if request.budgets:
        return best_sizes(runs, request.budgets)
    return best_values(runs, [TENFOLD * float(runs.along(Axis.C).max())])


def _may_cost(runs: Runs, request: Request) -> float:
    """The FLOPs of next=N runs together.

    Raises:
        RbpxError: they pay for no run.
    """
    flops = math.inf if request.flops is None else request.flops
    if not len(candidates(runs, flops)[0]):
        least = float((six_S(runs.S_N) * runs.D_N).min())
        raise RbpxError(f"flops={flops:g} pays for no run that informs: the least that there is took {least:.3g}")
    return flops


def _doubts(reasons: Sequence[Status]) -> Record:
    held = in_order(reasons)
    return {"status": first_of(held).value, "reasons": [reason.value for reason in held]}
