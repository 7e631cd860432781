"""Decides what to train next by one quantity."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from rbpx.display.vocabulary import short, spoken
from rbpx.errors import RbpxError
from rbpx.laws.intervals.estimate import NO_ESTIMATE, flat
from rbpx.laws.names import Axis
from rbpx.laws.power.predicted import ROUNDED
from rbpx.laws.prediction.calibration import error_in_sd
from rbpx.laws.prediction.prediction import COMBINED, WITHOUT_LARGEST
from rbpx.laws.surface.averaged import (
    FAR_COMPUTE,
    BudgetTest,
    backtest_budgets,
    forms_to_mix,
    missed_by_budgets,
    predict_averaged,
)
from rbpx.laws.surface.checks import held_out
from rbpx.laws.surface.decision import BestRun, best_run, best_run_with_serving, irreducible
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.next_runs import TENFOLD, best_values, candidates, next_runs, predictions
from rbpx.laws.surface.surface import optimum
from rbpx.questions.decide import DecideKeys
from rbpx.runs.group import Group
from rbpx.runs.points.outliers import outlier_rows
from rbpx.runs.points.surfaces import (
    MOST_REPLICATES,
    Trained,
    asked_forms,
    doubts_of_points,
    judged_alone,
    refuse_routed,
)
from rbpx.status import Status, status_keys
from rbpx.store.store import Record

_NEXT: Final = 3  # runs by default
_LONG: Final = 2 * ROUNDED  # times the largest D / S


class Decision(NamedTuple):
    """The answer about one quantity.

    `rows` are of the kinds runs, best, served, asked, outlier, largest, next. Where smaller runs do not predict the
    largest, the first four are repeated without these.
    """

    trained: Trained
    fits: Sequence[Surface]
    budget_tests: Sequence[BudgetTest]
    rows: Sequence[Record]

    def of_kind(self, *kinds: str, method: str = COMBINED) -> list[Record]:
        """Its rows of some kinds, by default from all runs."""
        return [row for row in self.rows if row["kind"] in kinds and row.get("method", method) == method]


def decide(group: Group, trained: Trained, request: DecideKeys) -> Decision:
    """Decides by one quantity."""
    refuse_routed(trained)
    runs, seed = trained.runs, request.seed
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    forms, n_replicates = forms_to_mix(runs), min(request.resamples, MOST_REPLICATES)
    asks_next = request.next is not None
    fits = [fit_surface(runs, form, n_replicates=n_replicates, collinear=asks_next, **options) for form in forms]
    form = min(fits, key=lambda fit: math.inf if fit.bic is None else fit.bic)
    budget_tests = backtest_budgets(runs, forms, **options)
    reasons = doubts_of_points(group, trained, form)
    named = {**group.names(), "law": trained.law, "k": trained.k, "form": form.form}
    is_fitted, is_line = any(fit.surface is not None for fit in fits), Status.collinear_design in reasons
    tells_apart = is_fitted and not is_line
    E = irreducible(fits, seed) if tells_apart else NO_ESTIMATE
    rows = [_row("runs", named | {"method": COMBINED}, reasons, n_points=form.n_points, n_runs=form.n_runs, E=E)]
    last = [*outlier_rows(group, [trained]), *_largest(named, budget_tests)]
    if not is_fitted and set(form.reasons) != {Status.collinear_design}:
        return Decision(trained, fits, budget_tests, rows + last)
    wanted = request.flops or [form.only_budget or TENFOLD * float(runs.along(Axis.C).max())]
    rows += _answers(named | {"method": COMBINED}, fits, budget_tests, reasons, wanted, request)
    asked = asked_forms(group, forms, request)
    for fit in [fit for fit in fits if fit.form in asked]:
        rows += _by_form(named, group, trained, fit, wanted, request)
    without = trained.without_largest
    if without is not None:
        fits_of_rest = [fit_surface(without.runs, each, n_replicates=0, **options) for each in forms]
        if any(fit.surface is not None for fit in fits_of_rest):
            of_rest, E_of_rest = named | {"method": WITHOUT_LARGEST}, irreducible(fits_of_rest, seed)
            counts = {"n_points": len(without.runs.S_N), "n_runs": without.runs.n_groups}
            rows.append(_row("runs", of_rest, reasons, **counts, E=E_of_rest))
            tests = backtest_budgets(without.runs, forms, **options)
            rows += _answers(of_rest, fits_of_rest, tests, reasons, wanted, request)
    return Decision(trained, fits, budget_tests, [*rows, *last, *_next(named, fits, wanted, tells_apart, request)])


def _answers(
    named: Record,
    fits: Sequence[Surface],
    budget_tests: Sequence[BudgetTest],
    reasons: Sequence[Status],
    wanted: Sequence[float],
    request: DecideKeys,
) -> Iterator[Record]:
    runs, seed, points = fits[0].runs, request.seed, request.points_to_predict()
    T, within = request.inference_tokens, request.inference_within
    reasons = [*reasons, *missed_by_budgets(budget_tests)]
    found: list[tuple[str, BestRun | None]] = []
    if any(map(fits[0].finds_best, wanted)):
        found += [("best", best_run(fits, C, budget_tests, seed)) for C in wanted]
        if T:
            C = wanted[0]
            served = best_run(fits, C, budget_tests, seed, T) if within else best_run_with_serving(fits, C, T, seed)
            found.append(("served", served))
    for kind, best in found:
        if best is not None:
            serves: Record = {"T": T, "within": within} if kind == "served" else {}
            other = "beyond" if serves else "ratio_beyond"
            doubts = beyond(best.beyond, best.ratio_beyond if serves else 1.0)
            doubts += [] if best.S.value else [Status.unreachable]
            yield _row(kind, named, [*reasons, *doubts], **vars(best) | {other: None}, **serves)
    over, most = predict_averaged(fits, points, budget_tests) if points else [], float(runs.along(Axis.C).max())
    for (S, D), at in zip(points, over, strict=True):
        doubts = beyond(6 * S * D / most, D / S / float((runs.D_N / runs.S_N).max()))
        yield _row("asked", named, [*reasons, *doubts], S=S, D=D, y=at.y, widened=at.widened)


def _by_form(
    named: Record, group: Group, trained: Trained, fit: Surface, wanted: Sequence[float], request: DecideKeys
) -> Iterator[Record]:
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    n_replicates = min(request.resamples, MOST_REPLICATES)
    tests = held_out(fit.runs, fit.form, n_replicates, **options)
    reasons, own = judged_alone(group, trained, fit, tests), named | {"form": fit.form, "method": fit.form}
    same = replace(fit.runs, y_BN=None)  # a new run is read on the same documents
    alone = fit_surface(same, fit.form, n_replicates=n_replicates, **options).surface
    most = float(fit.runs.along(Axis.C).max())
    yield _row("runs", own, reasons, n_points=fit.n_points, n_runs=fit.n_runs, E=fit.constants.get("E", NO_ESTIMATE))
    if fit.surface is None or alone is None:
        return
    best = [] if fit.unidentified else [optimum(fit.surface, C) for C in wanted if fit.finds_best(C)]
    for each in best:
        S, D = each.S.value, each.D.value
        y = NO_ESTIMATE if S is None or D is None else alone.predict(S, D, new_run=True)
        yield _row("best", own, [*reasons, *beyond(each.C / most)], **vars(each) | {"y": y})
    for S, D in request.points_to_predict():
        doubts = [*reasons, *beyond(6 * S * D / most)]
        yield _row("asked", own, doubts, S=S, D=D, y=alone.predict(S, D, new_run=True))


def _row(kind: str, named: Record, doubts: Sequence[Status], **values: Any) -> Record:
    return {"kind": kind, **named, **flat(values), **status_keys(doubts)}


def beyond(farther: float, longer: float = 1.0) -> list[Status]:
    """Warns of an extrapolation, by its factors of compute and of D / S."""
    return [Status.beyond] if farther > FAR_COMPUTE or longer > _LONG else []


def _largest(named: Record, budget_tests: Sequence[BudgetTest]) -> Iterator[Record]:
    nearest = min(budget_tests, key=lambda test: (test.gap, -int(test.fitted_N.sum())), default=None)
    for test in () if nearest is None else nearest.held_out:
        off = error_in_sd(test.predicted, test.measured)
        if off is not None:
            at: Record = {"S": test.S, "D": test.D, "measured": test.measured, "in_sd": off, "held": test.is_inside}
            yield {"kind": "largest", **named, **at, **flat({"y": test.predicted})}


def _next(
    named: Record, fits: Sequence[Surface], budgets: Sequence[float], tells_apart: bool, request: DecideKeys
) -> Iterator[Record]:
    runs, points = fits[0].runs, request.points_to_predict()
    C_N = runs.along(Axis.C)
    most, asks = float(C_N.max()), request.next is not None
    flops = most if not asks else request.flops[0] if request.flops else math.inf
    if not len(candidates(runs, flops)[0]) or not (tells_apart or asks):  # off their line it is unbounded
        if asks:
            raise RbpxError(
                f"flops={flops:g} pays for no run that informs: the least that there is took {C_N.min():.3g}"
            )
        return
    budgets = [TENFOLD * most] if asks else budgets
    wanted, target = best_values(runs, budgets), f"for the best run of {', '.join(map(short, budgets))} FLOPs"
    if asks and points:
        wanted, target = (
            predictions(points),
            f"at {', '.join(f'S = {spoken(S, 3)}, D = {spoken(D, 3)}' for S, D in points)}",
        )
    plans = next_runs(fits, wanted, request.next or _NEXT, flops, request.seed)
    for plan in plans if asks else plans[-1:]:
        of_plan = {
            "kind": "next",
            **named,
            "target": f"the prediction {target}",
            "plan": plan.name,
            "next_narrows": plan.next_narrows,
        }
        yield from [of_plan | {"rank": n, **run} for n, run in enumerate(plan.runs, 1)] or [of_plan]
