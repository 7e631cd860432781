"""Puts together what runs in size and tokens say about the next one (verb decide)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.errors import RbpxError
from rbpx.laws.families.shift import Shift, fit_shift, is_surface
from rbpx.laws.intervals.estimate import Estimate, flat
from rbpx.laws.names import Axis
from rbpx.laws.predict.calibration import in_sd
from rbpx.laws.surface.averaged import BudgetTest, OverForms, backtest_budgets, forms_to_mix, predict_over_forms
from rbpx.laws.surface.checks import HeldOut
from rbpx.laws.surface.decision import Best, Served, best_of, irreducible, with_serving, within_total
from rbpx.laws.surface.fit import SurfaceFit, fit_surface
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
from rbpx.runs.fits import alike
from rbpx.runs.points.outliers import outlier_rows, tested_quantities
from rbpx.runs.points.surfaces import MOST_RESAMPLES, Trained, doubts_of_points, refuse_routed
from rbpx.runs.select.trainings import TrainingGroup, plain_beside
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record, Store

_NEXT: Final = 3  # runs, where nothing says how many
FAR: Final = 30  # times the most compute: beyond, a budget is an extrapolation that no backtest covers
LONG: Final = 2.0  # times the largest D / S


@dataclass(frozen=True, eq=False)
class Decision:
    """What is said about one quantity.

    Attributes:
        trained: its points.
        form: the form of those mixed that fits best.
        E: what no model gets below; unknown where size and tokens vary together, since it lies far off their line.
        budgets: what larger budgets showed beside what smaller ones announced.
        best: of each budget; none where size and tokens vary together.
        served: the least of training and serving; None where it was not asked for, or there is none.
        asked: the points that were asked for, with what a run would show.
        target: what the runs to train next narrow, in words.
        plans: these runs: the best use of what they may cost, after those that narrow most per FLOP if next= is typed.
        landscape: what pictures show of budgets; None where size and tokens vary together.
        worth: what the variant is worth beside models without one, along C; None of these, and where none are there.
        reasons: every status that holds for the points and forms.
    """

    trained: Trained
    form: SurfaceFit
    E: Estimate
    budgets: tuple[BudgetTest, ...]
    best: tuple[Best, ...]
    served: Served | None
    asked: tuple[tuple[float, float, OverForms], ...]
    target: str
    plans: tuple[Plan, ...]
    landscape: Landscape | None
    worth: Shift | None
    reasons: tuple[Status, ...]

    def reasons_at(self, farther: float, longer: float, unknown: Status | None = None) -> tuple[Status, ...]:
        """Every status that holds for a run.

        Args:
            farther: the factor by which its compute lies above that of all runs.
            longer: the same for its tokens per parameter.
            unknown: why there is no such run.
        """
        more = [Status.beyond] if farther > FAR or longer > LONG else []
        return in_order([*self.reasons, *more, *([] if unknown is None else [unknown])])

    @property
    def reasons_of_best(self) -> list[tuple[Status, ...]]:
        """Of the best of each budget; not_straddled where no size is the best."""
        unknown = [Status.not_straddled if best.S.value is None else None for best in self.best]
        return [self.reasons_at(best.beyond, 1.0, why) for best, why in zip(self.best, unknown, strict=True)]

    @property
    def reasons_of_served(self) -> tuple[Status, ...]:
        """Of the least of training and serving; none where it was not asked for.

        Without a size it is not_straddled, or unreachable where none smaller comes to the loss with more tokens.
        """
        served = self.served
        if served is None:
            return ()
        farther, unknown = 1.0, None  # how far the budget lies beyond is said of its best training
        if served.S.value is None:
            unknown = Status.not_straddled if served.within else Status.unreachable
        if served.within:
            training = served.C - 2 * (served.S.value or 0.0) * served.T
            farther = training / float(self.trained.runs.along(Axis.C).max())
        return self.reasons_at(farther, served.ratio_beyond, unknown)

    @property
    def reasons_of_asked(self) -> list[tuple[Status, ...]]:
        """Of the points that were asked for."""
        runs = self.trained.runs
        most, longest = float(runs.along(Axis.C).max()), float((runs.D_N / runs.S_N).max())
        return [self.reasons_at(6 * S * D / most, D / S / longest) for S, D, _ in self.asked]

    @property
    def largest(self) -> list[tuple[HeldOut, float]]:
        """The runs of the largest budget that smaller ones foretold, and how many standard deviations each is off."""
        nearest = min(self.budgets, key=lambda test: (test.gap, -int(test.fitted_N.sum())), default=None)
        if nearest is None:
            return []
        off = [(test, in_sd(test.predicted, test.measured)) for test in nearest.held_out]
        return [(test, each) for test, each in off if each is not None]


@dataclass(frozen=True, eq=False)
class Decisions:
    """What is said about one family on one text."""

    group: TrainingGroup
    of: tuple[Decision, ...]


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Decisions:
    """Decide by cross-entropy unless quantities are named."""
    quantities = tested_quantities(connection, group, request)
    if not request.laws.by_name:
        quantities = sorted(quantities, key=lambda each: each.law != "cross_entropy")[:1]
    plain = plain_beside(connection, request, group)
    beside = (
        {} if plain is None else {(each.law, each.k): each for each in tested_quantities(connection, plain, request)}
    )
    return Decisions(group, tuple(_decide(group, each, beside.get((each.law, each.k)), request) for each in quantities))


def _decide(group: TrainingGroup, trained: Trained, plain: Trained | None, request: Request) -> Decision:
    refuse_routed(trained)
    runs = trained.runs
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    forms, n_resamples = forms_to_mix(runs), min(request.resamples, MOST_RESAMPLES)
    fits = [fit_surface(runs, form, n_resamples=n_resamples, **options) for form in forms]
    known = [fit for fit in fits if fit.bic is not None]
    form = min(known, key=lambda fit: fit.bic or 0.0) if known else fits[0]
    (foretold,) = backtest_budgets([(runs, forms)], **options)
    reasons = list(doubts_of_points(group, trained, form))
    if all(fit.surface is None for fit in fits):
        return Decision(trained, form, Estimate(), foretold, (), None, (), "", (), None, None, in_order(reasons))
    most, points = float(runs.along(Axis.C).max()), request.points_to_predict()
    collinear = Status.collinear_design in reasons
    wanted = list(dict.fromkeys([*([request.flops] if request.flops else []), *request.budgets])) or [TENFOLD * most]
    found = [] if collinear else [best_of(fits, C, foretold, request.seed) for C in wanted]
    best = tuple(each for each in found if each is not None)
    served = None
    if request.inference_tokens and request.inference_within and not collinear:
        served = within_total(fits, wanted[0], request.inference_tokens, foretold, request.seed)
    elif request.inference_tokens and best and best[0].S.value is not None:
        served = with_serving(fits, wanted[0], request.inference_tokens, request.seed)
    asked = (
        [(*at, each) for at, each in zip(points, predict_over_forms(fits, points, foretold), strict=True)]
        if points
        else []
    )
    target, plans = "", list[Plan]()
    if request.next is not None:
        to_narrow = _to_narrow(runs, request)
        target, plans = to_narrow.name, next_runs(fits, to_narrow, request.next, _may_cost(runs, request), request.seed)
    elif not collinear and len(candidates(runs, request.flops or most)[0]):  # off the line of the runs it is unbounded
        to_narrow = best_values(runs, wanted)
        target, plans = to_narrow.name, next_runs(fits, to_narrow, _NEXT, request.flops or most, request.seed)[-1:]
    E = Estimate() if collinear else irreducible(fits, request.seed)
    around = None if collinear else landscape(fits, wanted, MOST_SERIES, foretold, request.seed)
    worth = None
    if plain is not None and is_surface(plain.runs, runs) and not (plain.runs.repeats or runs.repeats):
        worth = fit_shift(plain.runs, runs, Axis.C, **options)
    next_ones = target, tuple(plans)
    return Decision(
        trained, form, E, foretold, best, served, tuple(asked), *next_ones, around, worth, in_order(reasons)
    )


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


def keep(store: Store, decisions: Decisions) -> list[Record]:
    """Rows of each kind: runs, best, served, asked, worth, outlier, largest, next; nothing enters `fits`."""
    rows: list[Record] = []
    for each in decisions.of:
        named = {**decisions.group.names(), "law": each.trained.law, "k": each.trained.k, "form": each.form.form}
        counts = {"n_points": each.form.n_points, "n_runs": each.form.n_runs}
        rows.append({"kind": "runs", **named, **counts, **flat({"E": each.E}), **_doubts(each.reasons)})
        for best, of in zip(each.best, each.reasons_of_best, strict=True):
            rows.append({"kind": "best", **named, **flat(vars(best)), **_doubts(of)})
        if each.served is not None:
            rows.append({"kind": "served", **named, **flat(vars(each.served)), **_doubts(each.reasons_of_served)})
        for (S, D, over), of in zip(each.asked, each.reasons_of_asked, strict=True):
            rows.append({"kind": "asked", **named, "S": S, "D": D, **flat({"y": over.y}), **_doubts(of)})
        if each.worth is not None:
            start, end = each.worth.apart or (None, None)
            places: list[tuple[float | None, Estimate, Sequence[Status]]] = [
                (at.C, at.value, (at.status, *each.worth.reasons)) for at in each.worth.at
            ]
            for C, value, statuses in places or [(None, Estimate(), each.worth.reasons)]:
                at_C: Record = {"C": C, "apart_from": start, "apart_to": end, **_doubts(statuses)}
                rows.append({"kind": "worth", **named, **flat({"multiplier": value}), **at_C})
        rows += outlier_rows(decisions.group, [each.trained])
        for test, off in each.largest:
            at = {"S": test.S, "D": test.D, "measured": test.measured, "in_sd": off, "held": test.is_inside}
            rows.append({"kind": "largest", **named, **at, **flat({"y": test.predicted})})
        for plan in each.plans:
            of_plan = {"target": each.target, "plan": plan.name, "next_narrows": plan.next_narrows}
            ranked: list[Record] = [{"rank": n, **vars(run)} for n, run in enumerate(plan.runs, 1)]
            rows += [{"kind": "next", **named, **of_plan, **run} for run in ranked or [{}]]
    return alike(rows)


def _doubts(reasons: Sequence[Status]) -> Record:
    held = in_order(reasons)
    return {"status": first_of(held).value, "reasons": [reason.value for reason in held]}
