"""Surfaces in size and tokens (verb surface): the trainings of a family in; each quantity's surface and optima out.

Source: arXiv 2203.15556 (chinchilla, the objective, IsoFLOP, the envelope), 2001.08361 (kaplan), 2305.16264
(data_constrained).
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import duckdb

from rbpx.analyses.surface.law import FormFit, SurfaceLaw, Surfaces, surface_laws
from rbpx.analyses.surface.words import compute
from rbpx.config.request import Request
from rbpx.groups.fits import keep_fits
from rbpx.groups.surface_fits import listed, surface_record
from rbpx.groups.surface_points import MOST_RESAMPLES, trained_quantities
from rbpx.groups.trainings import TrainingGroup
from rbpx.laws.interval import NO_ESTIMATE, by_name
from rbpx.laws.surface.isoflop import AlongC, IsoFlop
from rbpx.laws.surface.optimum import Optimum
from rbpx.store.store import Record, Store

_CONSTANTS: Final = ("A", "B", "E", "alpha", "beta")  # columns; all constants of a form stand in params
_BEST: Final = ("optima", "optima_with_head", "optima_as_stated", "isoflop", "isoflop_with_head", "envelope")


def analyse(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Surfaces:
    """Fit every requested form to every requested quantity of one group of trainings."""
    n_resamples = min(request.resamples, MOST_RESAMPLES)
    laws = surface_laws(trained_quantities(connection, group, request), group, request, n_resamples)
    return Surfaces(group, laws, n_resamples, request.unique_tokens)


def keep(store: Store, surfaces: Surfaces) -> list[Record]:
    """Write the surfaces of a group to `fits`, and return a row for each quantity and form."""
    fitted = [(law, form) for law in surfaces.laws for form in law.forms]
    records = keep_fits(store, [_record(surfaces, law, form) for law, form in fitted])
    return [_row(record, form) for record, (_, form) in zip(records, fitted, strict=True)]


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
        "isoflop": _isoflop(law, law.isoflop, compute(law)),
        "isoflop_with_head": _isoflop(law, law.isoflop_with_head, "6 N D"),
        "envelope": None if best is None else {"law": _along(best.law), "n_budgets": len(best.C)},
        "held_out": [
            {**asdict(test), "predicted": listed(test.predicted), "held": test.is_inside}
            for test in form.compared.held_out
        ],
    }
    return surface_record(surfaces.group, law.trained, form.fit, form.reasons, form.held_out_error, more)


def _row(record: Record, form: FormFit) -> Record:
    """The row that is printed: that of `fits`, with the constants and what they say in columns of their own."""
    a, b = form.split or (NO_ESTIMATE, NO_ESTIMATE)
    constants = {name: form.fit.constants.get(name, NO_ESTIMATE) for name in _CONSTANTS}
    own: Record = {"objective": form.fit.objective, "n_runs": form.fit.n_runs, **by_name(**constants, a=a, b=b)}
    own |= {"held_out_error": form.held_out_error, "reasons": [reason.value for reason in form.reasons]}
    return record | own | {name: record["params"][name] for name in _BEST}


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
