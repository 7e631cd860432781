"""Fits surfaces in size and tokens to the trainings of a family, and finds the best of each budget (verb surface).

Source: arXiv 2203.15556 (chinchilla, the objective, IsoFLOP, the envelope), 2001.08361 (kaplan), 2305.16264
(data_constrained).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import NO_ESTIMATE, by_name, flat
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import BudgetTest, backtest_budgets, forms_to_mix
from rbpx.laws.surface.checks import Compared, against_axes, compare_each, mean_error
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.isoflop import AlongC, Chosen, envelope, isoflop, lined_up, reached_budgets
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import Optimum, optima, split
from rbpx.runs.fits import naming
from rbpx.runs.points.outliers import tested_quantities
from rbpx.runs.points.surfaces import (
    MOST_REPLICATES,
    Trained,
    doubts_of_points,
    flops_as_stated,
    flops_used,
    flops_with_head,
    listed,
    surface_record,
    with_constants,
)
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status
from rbpx.store.store import Record

_CONSTANTS: Final = ("A", "B", "E", "alpha", "beta")  # columns; all constants of a form stand in params
_UNUSABLE: Final = {Status.collinear_design, Status.not_identified}


@dataclass(frozen=True, eq=False)
class FormFit:
    """One form of one quantity: its fit, and its row of `fits` with what follows from the fit in columns."""

    fit: Surface
    row: Record

    @property
    def optima(self) -> list[Record]:
        """The best of each budget, C as sources state it where any does.

        None where the design cannot tell size from tokens; without numbers where no point depends on a constant.
        """
        found: list[Record] = self.row["optima_as_stated"] or self.row["optima"]
        return found


@dataclass(frozen=True, eq=False)
class SurfaceLaw:
    """One quantity.

    Attributes:
        trained: its points.
        forms: those asked for, in order.
        foretold: larger budgets, foretold from smaller ones over all forms.
    """

    trained: Trained
    forms: tuple[FormFit, ...]
    foretold: tuple[BudgetTest, ...]

    @property
    def best(self) -> FormFit:
        """The form with the least AIC; the first one where none has any."""
        return _least_aic(self.forms)

    @property
    def optimal(self) -> FormFit | None:
        """The best of the forms that tell size from tokens and whose constants are all identified; None without one."""
        usable = [each for each in self.forms if each.fit.surface and not _UNUSABLE & set(each.row["reasons"])]
        return _least_aic(usable) if usable else None


def _least_aic(forms: Sequence[FormFit]) -> FormFit:
    return min(forms, key=lambda each: math.inf if each.fit.aic is None else each.fit.aic)


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> list[SurfaceLaw]:
    """Fit every requested form to each quantity of a group, and find the best of each budget in every known way."""
    quantities = tested_quantities(connection, group, request)
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    with_constants(request.form, request.pins)
    with naming(group.title):
        return [_law(group, trained, request, options) for trained in quantities]


def _law(group: TrainingGroup, trained: Trained, request: Request, options: dict[str, Any]) -> SurfaceLaw:
    runs, pins = trained.runs, request.pins
    fits = compare_each(runs, request.form, _replicate_weights(request), pins=pins, over=request.over, **options)
    # The engine of predictions has no badly tuned runs.
    tests = backtest_budgets(runs, forms_to_mix(runs, pins), pins, **options) if request.over == 1 else ()
    ways = _without_form(trained, request.budgets)
    return SurfaceLaw(trained, tuple(_form(group, trained, fit, ways, request) for fit in fits), tests)


def _replicate_weights(request: Request) -> int:
    return min(request.resamples, MOST_REPLICATES)


def compute(trained: Trained) -> str:
    """What C is, in words: as sources state it, 6 S D, or a mixture of both."""
    n, all_of_them = trained.n_stated, len(trained.members)
    if n == 0:
        return "6 S D"
    return "stated" if n == all_of_them else f"stated for {n} of {number_of(all_of_them, 'point')}, else 6 S D"


def _without_form(trained: Trained, asked: Sequence[float]) -> Record:
    """The best of each budget by a parabola, and the best size of those trained; None where a value is not positive.

    `isoflop` and `envelope` are along C as sources state it, else 6 S D; `isoflop_with_head` along 6 N D, N all
    parameters, and None where these are not known.
    """
    runs, C_N, with_head = trained.runs, trained.C_N, flops_with_head(trained.members)
    if not len(runs.y_N) or not (runs.y_N > 0).all():
        return dict.fromkeys(("isoflop", "isoflop_with_head", "envelope"))
    per_token, lowest = flops_as_stated(trained) or flops_used(trained.members), envelope(runs, C_N=C_N)
    counted = with_head and _isoflop(runs, asked, with_head, runs.D_N * with_head(runs.S_N), "6 N D")
    return {
        "isoflop": _isoflop(runs, asked, per_token, C_N, compute(trained)),
        "isoflop_with_head": counted,
        "envelope": {"law": _along(lowest.law), "n_budgets": len(lowest.C)},
    }


def _isoflop(
    runs: Runs, asked: Sequence[float], flops_per_token: Callable[[Floats], Floats], C_N: Floats, compute: str
) -> Record:
    """Parabolas through the runs of the budgets that are asked for, else of those at which runs line up, if any."""
    together = () if asked else lined_up(runs, C_N)
    chosen = Chosen.asked if asked else Chosen.lined_up if together else Chosen.evenly_spaced
    found = isoflop(runs, asked or together or reached_budgets(runs, C_N=C_N), flops_per_token, C_N)
    budgets = [flat(vars(each)) | {"n_sizes": len(each.sizes)} for each in found.budgets]
    return {"budgets": budgets, "law": _along(found.law), "C": compute, "chosen": chosen.value}


def budgets_of(isoflop: Record | None) -> list[Record]:
    """The budgets that IsoFLOP looked at; none where it could not."""
    return [] if isoflop is None else isoflop["budgets"]


def _along(law: AlongC | None) -> Record | None:
    return None if law is None else flat(vars(law))


def _form(group: TrainingGroup, trained: Trained, compared: Compared, ways: Record, request: Request) -> FormFit:
    """One form with its row; the best of a budget has only so many unique tokens if they are asked for."""
    fit, surface, members, error = compared.fit, compared.fit.surface, trained.members, mean_error(compared.held_out)
    reasons = doubts_of_points(group, trained, fit)
    is_identified = Status.not_identified not in reasons
    reached = [each["C"] for each in budgets_of(ways["isoflop"])]
    budgets = request.budgets or [*reached, 10 * max(trained.C_N.tolist(), default=1.0)]

    def best(flops_per_token: Callable[[Floats], Floats] | None) -> list[Record]:
        if surface is None or flops_per_token is None or Status.collinear_design in reasons:
            return []
        found = [Optimum(C, NO_ESTIMATE, NO_ESTIMATE, NO_ESTIMATE) for C in budgets]
        found = optima(surface, budgets, flops_per_token, request.unique_tokens) if is_identified else found
        return [flat(vars(each)) for each in found]

    by_budget: Record = {"optima": best(flops_used(members)), "optima_with_head": best(flops_with_head(members))}
    by_budget |= {"optima_as_stated": best(flops_as_stated(trained)), **ways}
    a = b = NO_ESTIMATE
    if surface is not None and by_budget["optima"] and is_identified and {"alpha", "beta"} <= fit.constants.keys():
        a, b = split(surface)
    # What is left of badly tuned runs says nothing of the form.
    against = () if surface is None or fit.over != 1 else against_axes(surface, trained.runs)
    more: Record = {
        "resamples": _replicate_weights(request),
        "unique_tokens": request.unique_tokens,
        "against": [vars(of) | {"slope": listed(of.slope), "curvature": listed(of.curvature)} for of in against],
        "exponents_of_optimum": None if a is NO_ESTIMATE else {"a": listed(a), "b": listed(b)},
        "held_out": [
            vars(test) | {"predicted": listed(test.predicted), "held": test.is_inside} for test in compared.held_out
        ],
        **by_budget,
        **({"frontier": [cell.row() for cell in trained.cells]} if trained.cells else {}),
    }
    row = surface_record(group, trained, fit, reasons, error, more)
    row |= {"objective": fit.objective, "n_runs": fit.n_runs}
    row |= by_name(**{name: fit.constants.get(name, NO_ESTIMATE) for name in _CONSTANTS}, a=a, b=b)
    row |= {"held_out_error": error, "reasons": row["params"]["reasons"]}
    if fit.design is not None:
        ratio_N = fit.runs.D_N / fit.runs.S_N
        row |= {"least_D_per_S": float(ratio_N.min()), "greatest_D_per_S": float(ratio_N.max()), **vars(fit.design)}
    return FormFit(fit, row | by_budget)
