"""Fits surfaces in size and tokens to the trainings of a family, and finds the best of each budget (verb surface).

Source: arXiv 2203.15556 (chinchilla, the objective, IsoFLOP, the envelope), 2001.08361 (kaplan), 2305.16264
(data_constrained).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import duckdb

from rbpx.config.request import Request
from rbpx.errors import number_of
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, by_name
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import BudgetTest, backtest_budgets, forms_to_mix
from rbpx.laws.surface.checks import AgainstAxis, Compared, against_axes, compare_each, mean_error
from rbpx.laws.surface.fit import SurfaceFit
from rbpx.laws.surface.isoflop import (
    AlongC,
    Budget,
    Chosen,
    Envelope,
    IsoFlop,
    envelope,
    isoflop,
    lined_up,
    reached_budgets,
)
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import Optimum, optima, split
from rbpx.runs.fits import alike, keep_fits, naming, with_cells
from rbpx.runs.points.outliers import outlier_rows, tested_quantities
from rbpx.runs.points.surfaces import (
    MOST_RESAMPLES,
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
from rbpx.status import Doubted, Status
from rbpx.store.store import Record, Store

_CONSTANTS: Final = ("A", "B", "E", "alpha", "beta")  # columns; all constants of a form stand in params
_BEST: Final = ("optima", "optima_with_head", "optima_as_stated", "isoflop", "isoflop_with_head", "envelope")
_RATIOS: Final = ("least_D_per_S", "greatest_D_per_S")
_UNUSABLE: Final = {Status.collinear_design, Status.not_identified}
_SMALL: Final = 1.1  # of S: models with more parameters than that in all have a head that counts


@dataclass(frozen=True, eq=False)
class FormFit(Doubted):
    """One form of one quantity.

    Attributes:
        compared: its fit, and its predictions of the largest runs.
        reasons: every status that holds.
        against: what is left along each axis.
        optima: the best of each budget for C = 6 S D; empty where the design cannot tell size from tokens, without
            numbers where no point depends on a constant.
        with_head: the same where all parameters count, for C = 6 N D; empty where they are not known.
        as_stated: the same for C as sources state it; empty where none does.
        split: exponents of the best S and D in C; None where the form has none.
    """

    compared: Compared
    reasons: tuple[Status, ...]
    against: tuple[AgainstAxis, ...]
    optima: tuple[Optimum, ...] = ()
    with_head: tuple[Optimum, ...] = ()
    as_stated: tuple[Optimum, ...] = ()
    split: tuple[Estimate, Estimate] | None = None

    @property
    def fit(self) -> SurfaceFit:
        """The fit to all points."""
        return self.compared.fit

    @property
    def ratios(self) -> tuple[float, float] | None:
        """The least and the greatest D / S of the points; None without points."""
        if self.fit.design is None:
            return None
        ratio_N = self.fit.runs.D_N / self.fit.runs.S_N
        return float(ratio_N.min()), float(ratio_N.max())

    @property
    def shown(self) -> tuple[Optimum, ...]:
        """The best of each budget, C as sources state it where any does."""
        return self.as_stated or self.optima

    @property
    def held_out_error(self) -> float | None:
        """Mean of |error| at the largest S, D and C, each predicted from the others."""
        return mean_error(self.compared.held_out)


@dataclass(frozen=True, eq=False)
class SurfaceLaw:
    """One quantity.

    Attributes:
        trained: its points.
        forms: those asked for, in order.
        isoflop: the best of each budget by a parabola, C as sources state it, else 6 S D; None where a value is not
            positive.
        isoflop_with_head: the same along budgets C = 6 N D, N all parameters; None where they are not known.
        envelope: the best size of those trained, C as in `isoflop`; None as before.
        chosen: how the budgets were chosen.
        foretold: larger budgets, foretold from smaller ones over all forms.
    """

    trained: Trained
    forms: tuple[FormFit, ...]
    isoflop: IsoFlop | None
    isoflop_with_head: IsoFlop | None
    envelope: Envelope | None
    chosen: Chosen
    foretold: tuple[BudgetTest, ...]

    @property
    def compute(self) -> str:
        """What C is, in words: as sources state it, 6 S D, or a mixture of both."""
        n, all_of_them = self.trained.n_stated, len(self.trained.members)
        if n == 0:
            return "6 S D"
        return "stated" if n == all_of_them else f"stated for {n} of {number_of(all_of_them, 'point')}, else 6 S D"

    @property
    def head_counts(self) -> bool:
        """Whether some model has so many more parameters than S that 6 N D is nearer to its compute than 6 S D."""
        totals = [(run.total_params, run.non_embedding_params) for run in self.trained.members]
        return self.isoflop_with_head is not None and any(N is not None and N > _SMALL * S for N, S in totals)

    @property
    def flops_per_token(self) -> Callable[[Floats], Floats]:
        """Training FLOPs per token at a size, as figures count them: as stated, else with the head if it counts."""
        with_head = flops_with_head(self.trained.members) if self.head_counts else None
        return flops_as_stated(self.trained) or with_head or flops_used(self.trained.members)

    @property
    def pictured_budgets(self) -> Sequence[Budget]:
        """The IsoFLOP curves along such compute."""
        pictured = self.isoflop_with_head if self.head_counts and not self.trained.n_stated else self.isoflop
        return () if pictured is None else pictured.budgets

    @property
    def best(self) -> FormFit:
        """The form with the least AIC; the first one where none has any."""
        return _least_aic(self.forms)

    @property
    def optimal(self) -> FormFit | None:
        """The best of the forms that tell size from tokens and whose constants are all identified; None without one."""
        usable = [each for each in self.forms if each.fit.surface is not None and not _UNUSABLE & set(each.reasons)]
        return _least_aic(usable) if usable else None


def _least_aic(forms: Sequence[FormFit]) -> FormFit:
    known = [each for each in forms if each.fit.aic is not None]
    return min(known, key=lambda each: each.fit.aic or 0.0) if known else forms[0]


@dataclass(frozen=True, eq=False)
class Surfaces:
    """The surfaces of one family on one text; the best of a budget may use only so many `unique_tokens`."""

    group: TrainingGroup
    laws: tuple[SurfaceLaw, ...]
    resamples: int
    unique_tokens: float | None = None


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Surfaces:
    """Fit every requested form to each quantity of a group, and find the best of each budget in every known way."""
    n_resamples, quantities = min(request.resamples, MOST_RESAMPLES), tested_quantities(connection, group, request)
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    pins = request.pins
    with_constants(request.form, pins)
    with naming(group.title):
        several = [(each.runs, request.form) for each in quantities]
        compared = compare_each(several, n_resamples, pins=pins, over=request.over, **options)
        mixed = [(each.runs, forms_to_mix(each.runs, pins)) for each in quantities]
        # The engine of predictions has no badly tuned runs.
        foretold = backtest_budgets(mixed, pins, **options) if request.over == 1 else [()] * len(mixed)
    laws = tuple(_law(*each, group, request) for each in zip(quantities, compared, foretold, strict=True))
    return Surfaces(group, laws, n_resamples, request.unique_tokens)


def _law(
    trained: Trained,
    compared: Sequence[Compared],
    foretold: tuple[BudgetTest, ...],
    group: TrainingGroup,
    request: Request,
) -> SurfaceLaw:
    runs, C_N = trained.runs, trained.C_N
    is_positive = len(runs.y_N) > 0 and bool((runs.y_N > 0).all())
    asked = tuple(request.budgets)
    chosen, reached = _budgets(runs, asked, C_N) if is_positive else (Chosen.asked, asked)
    largest = float(C_N.max()) if len(C_N) else 1.0
    budgets = asked or (*reached, 10 * largest)
    forms = tuple(_form(each, trained, group, budgets, request.unique_tokens) for each in compared)
    if not is_positive:
        return SurfaceLaw(trained, forms, None, None, None, chosen, foretold)
    with_head, stated = flops_with_head(trained.members), flops_as_stated(trained) or flops_used(trained.members)
    counted = None
    if with_head is not None:
        of_head_N = runs.D_N * with_head(runs.S_N)
        counted = isoflop(runs, _budgets(runs, asked, of_head_N)[1], with_head, of_head_N)
    by_parabola, lowest = isoflop(runs, reached, stated, C_N), envelope(runs, C_N=C_N)
    return SurfaceLaw(trained, forms, by_parabola, counted, lowest, chosen, foretold)


def _budgets(runs: Runs, asked: tuple[float, ...], C_N: Floats) -> tuple[Chosen, tuple[float, ...]]:
    if asked:
        return Chosen.asked, asked
    together = lined_up(runs, C_N)
    return (Chosen.lined_up, together) if together else (Chosen.evenly_spaced, reached_budgets(runs, C_N=C_N))


def _form(
    compared: Compared, trained: Trained, group: TrainingGroup, budgets: Sequence[float], U: float | None
) -> FormFit:
    fit = compared.fit
    reasons = doubts_of_points(group, trained, fit)
    surface = fit.surface
    # What is left of badly tuned runs says nothing of the form.
    against = () if surface is None or fit.over != 1 else against_axes(surface, trained.runs)
    if surface is None or Status.collinear_design in reasons:
        return FormFit(compared, reasons, against)

    def best(flops_per_token: Callable[[Floats], Floats] | None) -> tuple[Optimum, ...]:
        if flops_per_token is None:
            return ()
        if Status.not_identified in reasons:
            return tuple(Optimum(C, NO_ESTIMATE, NO_ESTIMATE, NO_ESTIMATE) for C in budgets)
        return tuple(optima(surface, budgets, flops_per_token, U))

    is_split = {"alpha", "beta"} <= fit.constants.keys() and Status.not_identified not in reasons
    members = trained.members
    by = best(flops_used(members)), best(flops_with_head(members)), best(flops_as_stated(trained))
    return FormFit(compared, reasons, against, *by, split(surface) if is_split else None)


def keep(store: Store, surfaces: Surfaces) -> list[Record]:
    """Write the surfaces of a group to `fits`, and return a row for each quantity and form."""
    fitted = [(law, form) for law in surfaces.laws for form in law.forms]
    records = keep_fits(store, [_record(surfaces, law, form) for law, form in fitted])
    rows = [_row(record, form) for record, (_, form) in zip(records, fitted, strict=True)]
    rows = with_cells(surfaces.group, alike(rows), [cell for law in surfaces.laws for cell in law.trained.cells])
    outside = outlier_rows(surfaces.group, [law.trained for law in surfaces.laws])
    return alike([*({"kind": "law"} | row for row in rows), *outside]) if outside else rows


def _record(surfaces: Surfaces, law: SurfaceLaw, form: FormFit) -> Record:
    """The row of `fits`."""
    best = law.envelope
    more = {
        "resamples": surfaces.resamples,
        "unique_tokens": surfaces.unique_tokens,
        "against": [
            {"axis": each.axis.value, "slope": listed(each.slope), "curvature": listed(each.curvature)}
            for each in form.against
        ],
        "optima": _optima(form.optima),
        "optima_with_head": _optima(form.with_head),
        "optima_as_stated": _optima(form.as_stated),
        "exponents_of_optimum": None if form.split is None else dict(zip("ab", map(listed, form.split), strict=True)),
        "isoflop": _isoflop(law, law.isoflop, law.compute),
        "isoflop_with_head": _isoflop(law, law.isoflop_with_head, "6 N D"),
        "envelope": None if best is None else {"law": _along(best.law), "n_budgets": len(best.C)},
        "held_out": [
            {**asdict(test), "predicted": listed(test.predicted), "held": test.is_inside}
            for test in form.compared.held_out
        ],
    }
    if law.trained.cells:
        more["frontier"] = [cell.row() for cell in law.trained.cells]
    return surface_record(surfaces.group, law.trained, form.fit, form.reasons, form.held_out_error, more)


def _row(record: Record, form: FormFit) -> Record:
    """The row that is printed: that of `fits`, with the constants and what follows from them in their own columns."""
    a, b = form.split or (NO_ESTIMATE, NO_ESTIMATE)
    constants = {name: form.fit.constants.get(name, NO_ESTIMATE) for name in _CONSTANTS}
    own: Record = {"objective": form.fit.objective, "n_runs": form.fit.n_runs, **by_name(**constants, a=a, b=b)}
    own |= {"held_out_error": form.held_out_error, "reasons": [reason.value for reason in form.reasons]}
    ratios = {} if form.ratios is None else dict(zip(_RATIOS, form.ratios, strict=True))
    return record | own | ratios | (record["params"]["design"] or {}) | {name: record["params"][name] for name in _BEST}


def _optima(optima: Sequence[Optimum]) -> list[Record]:
    return [{"C": each.C, **by_name(S=each.S, D=each.D, y=each.y)} for each in optima]


def _isoflop(law: SurfaceLaw, isoflop: IsoFlop | None, compute: str) -> Record | None:
    if isoflop is None:
        return None
    budgets: list[Record] = []
    for each in isoflop.budgets:
        counts: Record = {"n_sizes": len(each.sizes), "n_interpolated": each.n_interpolated}
        of = {"C": each.C, **by_name(S=each.S, D=each.D), "y": each.y}
        budgets.append({**of, **counts, "status": each.status.value})
    return {"budgets": budgets, "law": _along(isoflop.law), "C": compute, "chosen": law.chosen.value}


def _along(along: AlongC | None) -> Record | None:
    if along is None:
        return None
    return {**by_name(a=along.a), "C_ref": along.C_ref, **by_name(S_ref=along.S_ref), "n_budgets": along.n_budgets}
