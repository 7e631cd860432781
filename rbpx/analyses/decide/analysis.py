"""Puts together what runs in size and tokens say about the next one (verb decide)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.groups.fits import alike
from rbpx.groups.points.surfaces import MOST_RESAMPLES, Trained, doubts_of_points, refuse_routed, trained_quantities
from rbpx.groups.select.trainings import TrainingGroup
from rbpx.laws.intervals.estimate import Estimate, flat
from rbpx.laws.names import Axis
from rbpx.laws.predict.calibration import in_sd
from rbpx.laws.surface.averaged import BudgetTest, OverForms, backtest_budgets, forms_to_mix, predict_over_forms
from rbpx.laws.surface.checks import HeldOut
from rbpx.laws.surface.decision import Best, Served, best_of, irreducible, with_serving
from rbpx.laws.surface.fit import SurfaceFit, fit_surface
from rbpx.laws.surface.landscape import Landscape, landscape
from rbpx.laws.surface.next_runs import TENFOLD, Plan, best_values, candidates, next_runs
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record, Store

_NEXT: Final = 3  # runs, where nothing says how many
_FAR: Final = 30  # times the most compute: beyond, a budget is an extrapolation that no backtest covers
_LONG: Final = 2.0  # times the largest D / S


@dataclass(frozen=True, eq=False)
class Decision:
    """What is said about one quantity.

    Attributes:
        trained: its points.
        form: the form of those mixed that fits best.
        E: what no model gets below.
        budgets: what larger budgets showed beside what smaller ones announced.
        best: of each budget; none where size and tokens vary together.
        served: the least of training and serving; None where it was not asked for, or there is none.
        asked: the points that were asked for, with what a run would show.
        plans: runs to train next.
        landscape: what pictures show of budgets; None where size and tokens vary together.
        reasons: every status that holds.
    """

    trained: Trained
    form: SurfaceFit
    E: Estimate
    budgets: tuple[BudgetTest, ...]
    best: tuple[Best, ...]
    served: Served | None
    asked: tuple[tuple[float, float, OverForms], ...]
    plans: tuple[Plan, ...]
    landscape: Landscape | None
    reasons: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)

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
    quantities = trained_quantities(connection, group, request)
    if not request.laws.by_name:
        quantities = sorted(quantities, key=lambda each: each.law != "cross_entropy")[:1]
    return Decisions(group, tuple(_decide(group, trained, request) for trained in quantities))


def _decide(group: TrainingGroup, trained: Trained, request: Request) -> Decision:
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
        return Decision(trained, form, Estimate(), foretold, (), None, (), (), None, in_order(reasons))
    most, points = float(runs.along(Axis.C).max()), request.points_to_predict()
    collinear = Status.collinear_design in reasons
    wanted = list(dict.fromkeys([*([request.flops] if request.flops else []), *request.budgets])) or [TENFOLD * most]
    found = [] if collinear else [best_of(fits, C, foretold, request.seed) for C in wanted]
    best = tuple(each for each in found if each is not None)
    served = None
    if request.inference_tokens and best and best[0].S.value is not None:
        served = with_serving(fits, wanted[0], request.inference_tokens, request.seed)
        reasons += [Status.beyond] if served is not None and served.ratio_beyond > _LONG else []
    reasons += [Status.beyond] if any(each.beyond > _FAR for each in best) else []
    asked = (
        [(*at, each) for at, each in zip(points, predict_over_forms(fits, points, foretold), strict=True)]
        if points
        else []
    )
    spent = request.flops or most
    plans: Sequence[Plan] = []
    if not collinear and len(candidates(runs, spent)[0]):  # what leaves the line of the runs is unbounded there
        plans = next_runs(fits, best_values(runs, wanted), _NEXT, spent, request.seed)[-1:]
    E = irreducible(fits, request.seed)
    around = None if collinear else landscape(fits, wanted, MOST_SERIES, foretold, request.seed)
    return Decision(trained, form, E, foretold, best, served, tuple(asked), tuple(plans), around, in_order(reasons))


def keep(store: Store, decisions: Decisions) -> list[Record]:
    """Rows of each kind: best, served, asked, largest, next; nothing enters `fits`."""
    rows: list[Record] = []
    for each in decisions.of:
        named = {**decisions.group.names(), "law": each.trained.law, "k": each.trained.k, "form": each.form.form}
        about = {"status": each.status.value, "reasons": [reason.value for reason in each.reasons]}
        counts = {"n_points": each.form.n_points, "n_runs": each.form.n_runs}
        rows.append({"kind": "runs", **named, **counts, **flat({"E": each.E}), **about})
        rows += [{"kind": "best", **named, **flat(vars(best)), **about} for best in each.best]
        rows += [] if each.served is None else [{"kind": "served", **named, **flat(vars(each.served)), **about}]
        for S, D, over in each.asked:
            rows.append({"kind": "asked", **named, "S": S, "D": D, **flat({"y": over.y}), **about})
        for test, off in each.largest:
            at = {"S": test.S, "D": test.D, "measured": test.measured, "in_sd": off, "held": test.is_inside}
            rows.append({"kind": "largest", **named, **at, **flat({"y": test.predicted})})
        for plan in each.plans:
            rows += [{"kind": "next", **named, "rank": n, **vars(run)} for n, run in enumerate(plan.runs, 1)]
    return alike(rows)
