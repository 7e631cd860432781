"""Fits surfaces in size and tokens to the trainings of a family, and finds the best model of each budget.

Source: arXiv 2203.15556 (chinchilla, the objective), 2001.08361 (kaplan), 2305.16264 (data_constrained).
"""

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import duckdb

from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import NO_ESTIMATE, by_name, flat
from rbpx.laws.surface.averaged import backtest_budgets, forms_to_mix
from rbpx.laws.surface.checks import against_axes, held_out, mean_error
from rbpx.laws.surface.decision import best_run
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors
from rbpx.laws.surface.next_runs import TENFOLD
from rbpx.laws.surface.surface import Optimum, optimum, split
from rbpx.questions.surface import SurfaceKeys
from rbpx.runs.fits import naming
from rbpx.runs.group import Group
from rbpx.runs.points.outliers import tested_quantities
from rbpx.runs.points.surfaces import (
    MOST_REPLICATES,
    PerToken,
    Trained,
    doubts_of_points,
    flops_as_stated,
    flops_used,
    flops_with_head,
    listed,
    refuse_routed,
    surface_record,
    with_constants,
)
from rbpx.status import Status
from rbpx.store.store import Record

_CONSTANTS: Final = ("A", "B", "E", "alpha", "beta")  # columns; params has all constants of a form


class FormFit(NamedTuple):
    """One form of one quantity: its fit, and its row of `fits` with results in columns."""

    fit: Surface
    row: Record

    @property
    def optima(self) -> list[Record]:
        """The best model of each budget, with C as sources state it where any does.

        Empty where size and tokens cannot be separated; without numbers where a constant is not identified.
        """
        found: list[Record] = self.row["optima_as_stated"] or self.row["optima"]
        return found


class SurfaceLaw(NamedTuple):
    """One quantity: its points, the requested forms in order, and whether they were typed."""

    trained: Trained
    forms: Sequence[FormFit]
    asks_form: bool

    @property
    def best(self) -> FormFit:
        """The form with the least AIC, or the first."""
        return _least_aic(self.forms)

    @property
    def optimal(self) -> FormFit | None:
        """That among those with an identified optimum, if any."""
        usable = [each for each in self.forms if any(at["S"] is not None for at in each.optima)]
        return _least_aic(usable) if usable else None


def _least_aic(forms: Sequence[FormFit]) -> FormFit:
    return min(forms, key=lambda each: math.inf if each.fit.aic is None else each.fit.aic)


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: SurfaceKeys) -> list[SurfaceLaw]:
    """Fits every requested form to each quantity of a group; the best of a budget is of each form typed, or of all."""
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    with_constants(request.form, request.pins)
    laws = []
    with naming(group.title):
        for trained in tested_quantities(connection, group, request):
            forms = [_form(group, trained, form, options, request) for form in request.form]
            laws.append(SurfaceLaw(trained, forms, request.typed["form"] is not None))
    return laws


def C_label(trained: Trained) -> str:
    """Says what C is: as sources state it, 6 S D, or a mixture."""
    n, all_of_them = trained.n_stated, len(trained.members)
    if n == 0:
        return "6 S D"
    return "stated" if n == all_of_them else f"stated for {n} of {number_of(all_of_them, 'point')}, else 6 S D"


def _best_runs(trained: Trained, options: dict[str, Any], request: SurfaceKeys) -> list[Record]:
    runs, n_replicates = trained.runs, min(request.resamples, MOST_REPLICATES)
    refuse_routed(trained)
    forms = forms_to_mix(runs, request.pins)
    fits = [fit_surface_with_priors(runs, form, request.pins, n_replicates, **options) for form in forms]
    if all(fit.surface is None for fit in fits):
        return []
    tests = backtest_budgets(runs, forms, request.pins, **options)
    return [flat(vars(best_run(fits, C, tests, request.seed))) for C in request.flops]


def _form(group: Group, trained: Trained, form: str, options: dict[str, Any], request: SurfaceKeys) -> FormFit:
    runs, members, n_replicates = trained.runs, trained.members, min(request.resamples, MOST_REPLICATES)
    fit = fit_surface_with_priors(runs, form, request.pins, n_replicates, **options)
    tests = held_out(runs, form, n_replicates, request.pins, **options)
    surface, error, asks_form = fit.surface, mean_error(tests), request.typed["form"] is not None
    reasons = doubts_of_points(group, trained, fit)
    is_identified, is_line = not fit.unidentified, Status.collinear_design in reasons
    budgets = request.flops or [fit.only_budget or TENFOLD * max(trained.C_N.tolist(), default=1.0)]

    def best(flops_per_token: PerToken | None) -> list[Record]:
        known = [C for C in budgets if fit.finds_best(C)]
        if surface is None or flops_per_token is None or not known or not asks_form:
            return []
        found = [Optimum(C, NO_ESTIMATE, NO_ESTIMATE, NO_ESTIMATE) for C in known]
        found = [optimum(surface, C, flops_per_token, request.unique_tokens) for C in known] if is_identified else found
        return [flat(vars(each)) for each in found]

    by_budget: Record = {"optima": best(flops_used(members)), "optima_with_head": best(flops_with_head(members))}
    by_budget |= {"optima_as_stated": best(flops_as_stated(trained))}
    if not asks_form and any(map(fit.finds_best, request.flops)):
        by_budget["optima"] = _best_runs(trained, options, request)
    has_split = surface is not None and not is_line and is_identified and "beta" in fit.constants
    a, b = split(surface) if surface is not None and has_split else (NO_ESTIMATE, NO_ESTIMATE)
    against = () if surface is None else against_axes(surface, runs)
    more: Record = {
        "resamples": n_replicates,
        "unique_tokens": request.unique_tokens,
        "against": [{"axis": axis, "slope": listed(slope), "curvature": listed(bend)} for axis, slope, bend in against],
        "exponents_of_optimum": {"a": listed(a), "b": listed(b)} if has_split else None,
        "held_out": [test.record() for test in tests],
        **by_budget,
        **({"frontier": [cell.row() for cell in trained.cells]} if trained.cells else {}),
    }
    row = surface_record(group, trained, fit, tests, **more) | by_budget
    row |= by_name(**{name: fit.constants.get(name, NO_ESTIMATE) for name in _CONSTANTS}, a=a, b=b)
    row |= {"objective": fit.objective, "n_runs": fit.n_runs, "held_out_error": error}
    row |= {"reasons": row["params"]["reasons"]}
    if fit.design is not None:
        ratio_N = fit.runs.D_N / fit.runs.S_N
        row |= {"least_D_per_S": float(ratio_N.min()), "greatest_D_per_S": float(ratio_N.max()), **vars(fit.design)}
    return FormFit(fit, row)
